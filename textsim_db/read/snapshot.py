"""Snapshots: reads on one connection or on two that see the same state of the database."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

import psycopg

from textsim_db.db.connections import errors_of_sqlalchemy, is_pooled
from textsim_db.db.engine import Connection, transaction
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import DatabaseError
from textsim_db.read import statements

if TYPE_CHECKING:
    from psycopg.abc import Params
    from sqlalchemy import Engine

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Lend a connection in a read-only transaction that sees one state of the database."""
    with transaction(engine) as connection:
        connection.execute(statements.ONE_STATE)
        yield connection


def fetch(
    connection: Connection,
    corpus: StoredCorpus,
    statement: LiteralString,
    parameters: Params | None = None,
) -> list[tuple[Any, ...]]:
    return connection.execute(corpus.statement(statement), parameters, binary=True).fetchall()


def fetch_arrays(
    connection: Connection,
    corpus: StoredCorpus,
    statement: LiteralString,
    parameters: Params | None = None,
) -> list[bytes]:
    """Return the arrays of a statement's only row, in the format of array_send; empty for NULL."""
    (row,) = fetch(connection, corpus, statement, parameters)
    return [data or b"" for data in row]


@contextmanager
def with_second(engine: Engine, first: Connection) -> Iterator[list[Connection]]:
    """Lend a second connection that sees the state of the first, so that two processors work.

    Yields both, or only the first if no second connection is possible: a pooler may have none left,
    or may lead to another server, and the server writes a file for the second one, which a full disk
    prevents.
    """
    with ExitStack() as stack:
        connections = [first]
        if not is_pooled(first) and _can_export(engine):
            (name,) = first.execute(statements.EXPORT_SNAPSHOT).fetchone() or ("",)
            with suppress(psycopg.Error, *errors_of_sqlalchemy("SQLAlchemyError"), DatabaseError):
                connections.append(stack.enter_context(_of_same_state(engine, name)))
        yield connections


def _can_export(engine: Engine) -> bool:
    """Try it on another connection, because an error would end the transaction of the first."""
    with (
        suppress(psycopg.Error, *errors_of_sqlalchemy("SQLAlchemyError"), DatabaseError),
        snapshot(engine) as connection,
    ):
        connection.execute(statements.EXPORT_SNAPSHOT)
        return True
    return False


@contextmanager
def _of_same_state(engine: Engine, name: str) -> Iterator[Connection]:
    with snapshot(engine) as connection:
        # SET accepts no parameters. The name is safe: it has only hexadecimal digits and hyphens.
        connection.execute(psycopg.sql.SQL(statements.IMPORT_SNAPSHOT).format(name))
        yield connection


def on_each(
    connections: Sequence[Connection],
    items: Sequence[Item],
    function: Callable[[Connection, Item], Result],
) -> Generator[Result, None, None]:
    """Yield function(connection, item) for each item in order, on all connections at once."""
    if len(connections) == 1 or len(items) == 1:
        yield from (function(connections[0], item) for item in items)
        return
    free: SimpleQueue[Connection] = SimpleQueue()
    for connection in connections:
        free.put(connection)

    def run(item: Item) -> Result:
        connection = free.get()
        try:
            return function(connection, item)
        finally:
            free.put(connection)

    with ThreadPoolExecutor(len(connections), "textsim-read") as pool:
        try:
            yield from pool.map(run, items)
        except BaseException:
            for connection in connections:
                connection.cancel_safe()
            raise
