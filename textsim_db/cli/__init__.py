"""The command line: one file per group of commands.

Commands import NumPy, Numba, SQLAlchemy and psycopg only when they run, so that --help is quick.
"""

from textsim_db.cli.commands import app, main

__all__ = ["app", "main"]
