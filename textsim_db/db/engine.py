"""Makes engines, lends their connections, limits how long they wait, and translates errors."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, LiteralString, cast

import psycopg
from psycopg import errors as pg, sql

from textsim_db.db import cancellation, connections, statements
from textsim_db.db.addresses import parameters_of, sqlalchemy_url
from textsim_db.db.connections import ENCODING, errors_of_sqlalchemy, lend
from textsim_db.errors import ConfigurationError, DatabaseError, DatabaseUnavailable, on_one_line

if TYPE_CHECKING:
    from psycopg.abc import Params
    from sqlalchemy import Engine

Connection = connections.Connection
APPLICATION_NAME = "textsim-db"
MAX_CONNECTIONS = 25
"""The connections of a pool; more calls at once wait. A connection stays open until the pool is closed.

If the pool closed the connections of many threads, each next call would open and plan its own again.
"""

_LOST = (
    pg.AdminShutdown,
    pg.CrashShutdown,
    pg.CannotConnectNow,
    pg.ConnectionException,
    pg.TooManyConnections,
)
_TROUBLE = (
    pg.InsufficientResources,
    pg.DiskFull,
    pg.OutOfMemory,
    pg.ConfigurationLimitExceeded,
    pg.ReadOnlySqlTransaction,
    pg.IoError,
)
# These time-outs end the session too, but the same attempt would time out again, so it must be smaller.
_TIMED_OUT = (pg.TransactionTimeout, pg.IdleInTransactionSessionTimeout)

# Times after which a silent host counts as lost, in seconds; tcp_user_timeout is in milliseconds. The
# defaults are minutes or hours.
_SILENCE = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "tcp_user_timeout": "60000",
}


def connect_arguments(application_name: str, given: Container[str]) -> dict[str, str]:
    """Return the arguments of each connection, without those that the address gives."""
    arguments = {"fallback_application_name": application_name} | _SILENCE
    if "PGCONNECT_TIMEOUT" in os.environ:
        del arguments["connect_timeout"]
    arguments = {name: value for name, value in arguments.items() if name not in given}
    # This overrides the address, PGCLIENTENCODING and ALTER ROLE SET.
    return arguments | {"client_encoding": ENCODING.decode()}


def open_engine(address: str, application_name: str = APPLICATION_NAME) -> Engine:
    """Return an engine for an address, without connecting."""
    import sqlalchemy

    arguments = connect_arguments(application_name, parameters_of(address))
    # The connection that was used last is lent first: its plans and catalogue are in memory.
    engine = sqlalchemy.create_engine(
        sqlalchemy_url(address),
        pool_size=MAX_CONNECTIONS,
        max_overflow=0,
        pool_use_lifo=True,
        connect_args=arguments,
    )

    @sqlalchemy.event.listens_for(engine, "connect")
    def prepare(connection: Connection, record: Any) -> None:
        connections.prepare(connection, record.info)
        connection.prepare_threshold = connections.prepare_threshold(connection, record.info)

    return engine


def check_engine(engine: Engine) -> Engine:
    """Return the engine; raise ConfigurationError unless it uses psycopg 3 and a suitable pool.

    The pool must lend several connections at once, because we add words to the dictionary on another
    connection than documents.
    """
    from sqlalchemy.pool import AssertionPool, SingletonThreadPool, StaticPool

    if engine.dialect.name != "postgresql" or engine.dialect.driver != "psycopg":
        raise ConfigurationError(
            f"the engine uses {engine.dialect.name}+{engine.dialect.driver}; "
            "expected postgresql+psycopg (psycopg 3)"
        )
    if isinstance(engine.pool, (AssertionPool, SingletonThreadPool, StaticPool)):
        raise ConfigurationError(
            f"the engine's pool, {type(engine.pool).__name__}, has a single connection; "
            "expected a pool that lends several at once, such as QueuePool or NullPool"
        )
    return engine


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn the driver's errors into DatabaseUnavailable or DatabaseError, keeping the cause."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error) from error
    except errors_of_sqlalchemy("DBAPIError") as error:
        raise translated(cast("psycopg.Error", error.orig)) from error
    except errors_of_sqlalchemy("TimeoutError") as error:
        raise DatabaseUnavailable(
            "no connection of the engine's pool became free in time; raise its pool_size or "
            "max_overflow"
        ) from error


@contextmanager
def configuration_errors(*errors: type[psycopg.Error]) -> Iterator[None]:
    """Turn these errors, with which a function of the schema refuses, into ConfigurationError."""
    try:
        yield
    except errors as error:
        raise ConfigurationError(error.diag.message_primary or str(error)) from error


def is_lost(error: psycopg.Error) -> bool:
    if isinstance(error, _LOST):
        return True
    return (
        isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not error.sqlstate
    )


def is_trouble(error: psycopg.Error) -> bool:
    """Return whether the server is lost, read-only, full or cannot access its files: all would fail."""
    return is_lost(error) or isinstance(error, _TROUBLE)


def translated(error: psycopg.Error) -> DatabaseError:
    message = on_one_line(error)
    if is_lost(error):
        return DatabaseUnavailable(f"no connection to the database: {message}")
    refused = DatabaseError(f"the database refused: {message}")
    # PostgreSQL's own refusal names a table of the schema. Ours says what the role needs.
    if error.diag.source_function == "aclcheck_error":
        refused.add_note(
            "rights in the schema textsim: textsim.grant_writer lets a role write documents; only the "
            "owner of the schema creates, tracks, rebuilds, deduplicates and drops corpora"
        )
    return refused


@contextmanager
def autocommit(engine: Engine) -> Iterator[Connection]:
    """Lend a connection on which each statement is a transaction of its own."""
    with lend(engine) as connection:
        try:
            yield connection
        finally:
            if not (connection.closed or connections.is_idle(connection)):
                connection.rollback()


def read_rows(
    engine: Engine,
    statement: LiteralString | sql.Composed,
    parameters: Params | None = None,
    *,
    binary: bool = False,
    prepare: bool | None = None,
) -> list[tuple[Any, ...]]:
    """Run a statement as a transaction of its own, and return its rows; see psycopg for the options."""
    with autocommit(engine) as connection:
        return connection.execute(statement, parameters, binary=binary, prepare=prepare).fetchall()


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Lend a connection in a transaction that commits at the end, or rolls back on an error.

    The transaction is READ COMMITTED, even if the role or the user's engine has another default. After
    waiting for a lock it must see the rows that were committed meanwhile. In a transaction of a worker
    no plan depends on statistics: its tables are empty at one moment and huge at the next.
    """
    with lend(engine) as connection:
        before = connection.isolation_level
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        try:
            with connection.transaction():
                if cancellation.of_worker() is not None:
                    connection.execute(statements.STEADY_PLANS, prepare=False)
                yield connection
        finally:
            if connections.is_idle(connection):
                connection.isolation_level = before


def is_timeout(engine: Engine, error: Exception) -> bool:
    """Return whether a statement exceeded a time limit, and was not cancelled by somebody.

    Both errors have SQLSTATE 57014. Only their messages differ, and they are in the server's language.
    So we provoke a time-out of a millisecond, and compare its message.
    """
    if not isinstance(error, pg.QueryCanceled):
        return isinstance(error, _TIMED_OUT)
    try:
        with transaction(engine) as connection:
            connection.execute("SET LOCAL statement_timeout = 1")
            connection.execute("SELECT pg_catalog.pg_sleep(1)")
    except pg.QueryCanceled as timeout:
        return timeout.diag.message_primary == error.diag.message_primary
    return False


def wait_at_most(connection: Connection, patience: str) -> tuple[str, float | None]:
    """Shorten how long a transaction waits for a lock; return the old limit, as text and seconds."""
    row = connection.execute(statements.WAIT_AT_MOST, {"most": patience}).fetchone()
    assert row is not None
    return row[0], row[1] or None


class LightEngine:
    """Lends connections as an Engine does; any other attribute is that of an engine made for it."""

    def __init__(self, address: str, application_name: str) -> None:
        self._address, self._application_name = address, application_name
        given = parameters_of(address)
        self._arguments: dict[str, Any] = given | connect_arguments(application_name, given)
        self._idle: list[_Lent] = []

    @cached_property
    def _full(self) -> Engine:
        return open_engine(self._address, self._application_name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._full, name)

    def raw_connection(self) -> _Lent:
        """Return the connection that was used last, or a new one; raises the driver's errors."""
        try:
            return self._idle.pop()
        except IndexError:
            return _Lent(self, psycopg.connect(**self._arguments))

    def dispose(self, close: bool = True) -> None:
        """Forget the idle connections, and close them, except in a forked process."""
        idle, self._idle = self._idle, []
        if close:
            for lent in idle:
                lent.driver_connection.close()
        if "_full" in vars(self):
            self._full.dispose(close)


class _Lent:
    """A connection that is lent: the part of SQLAlchemy's PoolProxiedConnection that we use."""

    def __init__(self, engine: LightEngine, connection: connections.Connection) -> None:
        self._engine = engine
        self.driver_connection = connection
        self.info: dict[str, Any] = {}
        self.is_valid = True

    def close(self) -> None:
        """Return the connection to the pool."""
        connection = self.driver_connection
        if self.is_valid and not connection.closed:
            if not connections.is_idle(connection):
                connection.rollback()
            self._engine._idle.append(self)

    def invalidate(self) -> None:
        """Close the connection, which does not return to the pool."""
        self.detach()
        self.driver_connection.close()

    def detach(self) -> None:
        """Take the connection out of the pool."""
        self.is_valid = False


def open_light_engine(address: str, application_name: str) -> Engine:
    return cast("Engine", LightEngine(address, application_name))
