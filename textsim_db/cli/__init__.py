"""cli: words of a shell in; tables, JSON and an exit status out. One file per group of commands.

A command never searches by itself: it calls a method of a corpus. Commands import NumPy, Numba,
SQLAlchemy and psycopg only when they run, so that --help is quick.
"""

from textsim_db.cli.commands import app, main

__all__ = ["app", "main"]
