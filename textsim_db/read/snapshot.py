"""One state of the database, for reads that belong together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine

from textsim_db.db.engine import Connection, transaction


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Lend a connection in a transaction that sees one state and writes nothing."""
    with transaction(engine) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield connection
