"""The command line: one file per group of commands.

Nothing here imports NumPy, Numba, SQLAlchemy or psycopg before a command runs, so that --help
answers at once.
"""

from textsim_db.cli.app import app, main

__all__ = ["app", "main"]
