"""Lends pooled connections: adapts them to our statements, and then restores their settings.

Adapted connections accept the parameters of binary_format, without importing NumPy. Their server-side
cursors are closed in the client even if their CLOSE fails.

A forked child opens its own connections. Two processes that share a socket would read each other's
results. And when a child closed a connection, or only ended, it would end the session of its parent.
"""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

import psycopg
from psycopg import errors as pg, pq
from psycopg.adapt import Dumper
from psycopg.rows import tuple_row

from textsim_db.db import cancellation
from textsim_db.db.cancellation import LentConnections

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.pool import PoolProxiedConnection

    from textsim_db.db.binary_format import Parameter


class _BinaryDumper(Dumper):
    format = pq.Format.BINARY

    def dump(self, obj: Parameter) -> bytes:
        return obj.data

    def get_key(self, obj: Parameter, format: Any) -> Any:  # noqa: A002 - the name psycopg uses
        return (type(obj), obj.oid)

    def upgrade(self, obj: Parameter, format: Any) -> Dumper:  # noqa: A002
        dumper = type(self)(type(obj))
        dumper.oid = obj.oid
        return dumper


def register(connection: psycopg.Connection[Any]) -> None:
    """Let a connection accept the parameters of binary_format; change nothing else."""
    connection.adapters.register_dumper("textsim_db.db.binary_format.Parameter", _BinaryDumper)


class ServerCursor(psycopg.ServerCursor[tuple[Any, ...]]):
    """A cursor that is closed even if its CLOSE is cancelled; that of psycopg stays open, and warns."""

    def close(self) -> None:
        try:
            super().close()
        except psycopg.Error:
            # The transaction has failed, and with it the server's cursor: this call sends nothing.
            super().close()
            raise


_engines: WeakSet[Engine] = WeakSet()
_connections: WeakSet[psycopg.Connection[Any]] = WeakSet()


def renew_after_fork(engine: Engine) -> None:
    """Give the engine a new pool in every child process that is forked from now on."""
    _engines.add(engine)


def _leave_connections_to_parent() -> None:
    """In a child process, replace every pool, and every socket by a socket without a peer.

    Then a connection in use raises DatabaseUnavailable in the child. And when the parent dies, the
    server notices it, because no child holds the socket open.
    """
    for engine in list(_engines):
        engine.dispose(close=False)
    dead, peer = socket.socketpair()
    peer.close()
    with dead:
        for connection in list(_connections):
            with suppress(psycopg.Error):  # a closed connection has no socket
                os.dup2(dead.fileno(), connection.fileno(), inheritable=False)
    _connections.clear()


os.register_at_fork(after_in_child=_leave_connections_to_parent)


Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[Any]
ENCODING = b"UTF8"
_DEFAULT_THRESHOLD = 5  # psycopg's
_POOLED = "textsim-db: behind a pooler"
_ATTRIBUTES = ("row_factory", "cursor_factory", "server_cursor_factory")
_OURS = (tuple_row, psycopg.Cursor, ServerCursor)
_attributes_of = attrgetter(*_ATTRIBUTES)


@contextmanager
def lend(engine: Engine) -> Iterator[Connection]:
    """Lend a live connection of the pool in autocommit mode, adapted to our statements."""
    canceller = cancellation.current()
    if canceller is not None:
        canceller.check()
    lent = connect(engine)
    while _is_hung_up(cast(Connection, lent.driver_connection)):
        lent.invalidate()
        lent.close()
        lent = connect(engine)
    try:
        with (
            adapted(lent) as connection,
            _noted(cancellation.of_worker(), lent),
            _noted(canceller, lent),
        ):
            yield connection
    except pg.ReadOnlySqlTransaction:
        # A session keeps the setting of the database with which it began; only a new one can write.
        lent.invalidate()
        raise
    finally:
        lent.close()


def _noted(
    connections: LentConnections | None, lent: PoolProxiedConnection
) -> AbstractContextManager[None]:
    return nullcontext() if connections is None else connections.lending(lent)


@contextmanager
def adapted(lent: PoolProxiedConnection, autocommit: bool = True) -> Iterator[Connection]:
    """Adapt a pooled connection to our statements, and restore its settings afterwards.

    The user's engine may have set row and cursor factories, or an encoding other than UTF-8. With
    another encoding the server would misread the UTF-8 that our binary COPY sends. If the settings
    cannot be restored, the connection is removed from the pool.
    """
    connection = cast(Connection, lent.driver_connection)
    end_transaction(connection)
    attributes = _attributes_of(connection)
    before = connection.autocommit, connection.prepare_threshold
    encoding = connection.pgconn.parameter_status(b"client_encoding") or ENCODING
    try:
        connection.autocommit = True
        _set_attributes(connection, _OURS)
        if encoding != ENCODING:
            _set_encoding(connection, ENCODING)
        if _POOLED not in lent.info:
            prepare(connection, lent.info)
        connection.prepare_threshold = prepare_threshold(connection, lent.info)
        if not autocommit:
            connection.autocommit = False
        yield connection
    finally:
        if is_idle(connection):
            if encoding != ENCODING:
                connection.autocommit = True
                _set_encoding(connection, encoding)
            _set_attributes(connection, attributes)
            connection.autocommit, connection.prepare_threshold = before
        elif lent.is_valid:  # the connection is lost, or still in a transaction
            lent.invalidate()


def errors_of_sqlalchemy(name: str) -> tuple[type[Any], ...]:
    """Return a class of errors, to catch it; none if nothing has imported SQLAlchemy yet."""
    module = sys.modules.get("sqlalchemy.exc")
    return () if module is None else (getattr(module, name),)


def connect(engine: Engine) -> PoolProxiedConnection:
    """Return a connection of the pool without changes; raises the driver's errors."""
    try:
        return engine.raw_connection()
    except psycopg.Error:
        raise
    except errors_of_sqlalchemy("DBAPIError") as error:
        raise cast("psycopg.Error", error.orig) from error


def prepare(connection: Connection, info: Any) -> None:
    """Prepare a new connection, and record in the pool's info whether it goes through a pooler."""
    _connections.add(connection)  # it is cut in each child process
    register(connection)
    info[_POOLED] = is_pooled(connection)


def prepare_threshold(connection: Connection, info: Any) -> int | None:
    """Return after how many executions a statement is prepared, or None for never.

    Behind a pooler the answer is None. There the next transaction may get another session, in which the
    prepared statement is missing or belongs to another client. But a threshold that the user has set is
    kept, because some poolers support prepared statements.
    """
    threshold = connection.prepare_threshold
    return None if info[_POOLED] and threshold == _DEFAULT_THRESHOLD else threshold


def is_pooled(connection: Connection) -> bool:
    """Return whether a pooler stands in between: then the process ids of the backend differ."""
    row = connection.execute("SELECT pg_catalog.pg_backend_pid()", prepare=False).fetchone()
    if not connection.autocommit:
        connection.rollback()
    return row != (connection.info.backend_pid,)


def end_transaction(connection: Connection) -> None:
    """Commit a transaction that an event listener of the user's engine left open, such as SET."""
    if not is_idle(connection):
        connection.commit()


def is_idle(connection: Connection) -> bool:
    return connection.pgconn.transaction_status == pq.TransactionStatus.IDLE


def _set_attributes(connection: Connection, values: tuple[Any, ...]) -> None:
    if _attributes_of(connection) != values:
        for name, value in zip(_ATTRIBUTES, values, strict=True):
            setattr(connection, name, value)


def _set_encoding(connection: Connection, encoding: bytes) -> None:
    statement = "SELECT pg_catalog.set_config('client_encoding', %s, false)"
    connection.execute(statement, [encoding.decode()], prepare=False)


def _is_hung_up(connection: Connection) -> bool:
    """Return whether an idle connection holds the server's last message or an end of file."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return False
    # The message may also be a notice, so only now an empty statement is sent.
    return connection.pgconn.exec_(b"").status != pq.ExecStatus.EMPTY_QUERY
