"""Connections: from an address to an engine, and from the engine to psycopg connections."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
import sqlalchemy
from psycopg import errors as pg
from psycopg import pq
from psycopg.rows import tuple_row
from sqlalchemy import Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import AssertionPool, PoolProxiedConnection, SingletonThreadPool, StaticPool

from textsim_db.db import array_dumper
from textsim_db.db.fork import cut_after_fork
from textsim_db.errors import ConfigurationError, DatabaseError, DatabaseUnavailable

Connection = psycopg.Connection[tuple[Any, ...]]
APPLICATION_NAME = "textsim-db"
_DEFAULT_THRESHOLD = 5  # psycopg's
_POOLED = "textsim-db: behind a pooler"
_ENCODING = "UTF8"
_SINGLE_CONNECTION_POOLS = (AssertionPool, SingletonThreadPool, StaticPool)

# Seconds, and milliseconds, after which a host that says nothing any more is taken for lost; by
# default that would be minutes, or hours.
_SILENCE = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "tcp_user_timeout": "60000",
}

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


def sqlalchemy_url(address: str) -> URL:
    """Return the SQLAlchemy address for any of postgresql://, postgres:// and postgresql+psycopg://.

    Raises ConfigurationError for what is not the address of a PostgreSQL database.
    """
    scheme, separator, rest = address.partition("://")
    if not separator or scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ConfigurationError(
            f"the address of the database begins with {scheme.split(':')[0]!r}; expected one such as "
            "postgresql://user@host/name"
        )
    try:
        rest.encode()
        url = make_url(f"postgresql+psycopg://{rest}")
        # These fail on ports and names of hosts that cannot be, before they are connected to.
        _, arguments = url.get_dialect()().create_connect_args(url)
        for host in str(arguments.get("host", "")).split(","):
            if not host.startswith(("/", "@")):
                host.encode("idna")
    except (sqlalchemy.exc.ArgumentError, ValueError) as error:
        raise ConfigurationError(f"the address of the database cannot be read: {error}") from error
    return url


def plain_url(url: URL) -> str:
    """Return the address for psql and other clients of libpq, password included."""
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    # libpq takes neither the spaces that SQLAlchemy leaves in names of roles, nor its plus signs for
    # those in options.
    address, mark, query = address.partition("?")
    return address.replace(" ", "%20") + mark + query.replace("+", "%20")


def open_engine(address: str, application_name: str = APPLICATION_NAME) -> Engine:
    """Return an engine for an address; nothing connects yet.

    application_name is what the server shows, unless the address or PGAPPNAME says something else.
    """
    url = sqlalchemy_url(address)
    arguments = {"fallback_application_name": application_name} | _SILENCE
    if "PGCONNECT_TIMEOUT" in os.environ:
        del arguments["connect_timeout"]
    arguments = {name: value for name, value in arguments.items() if name not in url.query}
    # It prevails over the address, PGCLIENTENCODING and ALTER ROLE SET.
    arguments["client_encoding"] = _ENCODING
    engine = sqlalchemy.create_engine(url, pool_size=5, max_overflow=20, connect_args=arguments)

    @sqlalchemy.event.listens_for(engine, "connect")
    def prepare(connection: Connection, record: Any) -> None:
        _get_ready(connection, record.info)
        connection.prepare_threshold = _prepare_threshold(connection, record.info)

    return engine


def check_application_name(name: object) -> None:
    """Raise ConfigurationError unless this is a text that can be sent to the server."""
    if not isinstance(name, str) or name != name.encode(errors="replace").decode():
        raise ConfigurationError(f"application_name is {name!r:.100}; expected a str")


def check_engine(engine: Engine) -> Engine:
    """Return the engine; raise ConfigurationError unless it is one for psycopg 3 that we can use.

    Its pool must lend several connections at once: word ids never come from the connection that
    writes the documents.
    """
    if engine.dialect.name != "postgresql" or engine.dialect.driver != "psycopg":
        raise ConfigurationError(
            f"the engine uses {engine.dialect.name}+{engine.dialect.driver}; "
            "expected postgresql+psycopg (psycopg 3)"
        )
    if isinstance(engine.pool, _SINGLE_CONNECTION_POOLS):
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
    except sqlalchemy.exc.DBAPIError as error:
        raise translated(cast("psycopg.Error", error.orig)) from error
    except sqlalchemy.exc.TimeoutError as error:
        raise DatabaseUnavailable(
            "no connection of the engine's pool became free in time; raise its pool_size or "
            "max_overflow"
        ) from error
    except psycopg.Error as error:
        raise translated(error) from error


def is_lost(error: psycopg.Error) -> bool:
    """Say whether the error means that there is no connection (any more)."""
    if isinstance(error, _LOST):
        return True
    return (
        isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not error.sqlstate
    )


def is_trouble(error: psycopg.Error) -> bool:
    """Say whether the server is lost or in trouble, whatever it was asked to do.

    Its disk or memory is full, it reads or writes files in vain, or it lets nobody write.
    """
    return is_lost(error) or isinstance(error, _TROUBLE)


def translated(error: psycopg.Error) -> DatabaseError:
    """Return the driver's error as DatabaseUnavailable or DatabaseError."""
    message = " ".join(str(error).split()) or type(error).__name__
    if is_lost(error):
        return DatabaseUnavailable(f"no connection to the database: {message}")
    return DatabaseError(f"the database refused: {message}")


@contextmanager
def autocommit(engine: Engine) -> Iterator[Connection]:
    """Lend a connection on which each statement is a transaction of its own."""
    with _lent(engine) as connection:
        try:
            yield connection
        finally:
            if not connection.closed:
                connection.rollback()


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Lend a connection in a transaction that commits at the end, or rolls back on an error.

    It is READ COMMITTED, whatever the default of the role or of the user's engine: who has waited for
    a lock must see then what was committed meanwhile.
    """
    with _lent(engine) as connection:
        before = connection.isolation_level
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        try:
            with connection.transaction():
                yield connection
        finally:
            if _is_idle(connection):
                connection.isolation_level = before


def detach_connection(engine: Engine) -> Connection:
    """Take a connection out of the pool, in autocommit mode; the caller closes it."""
    lent = _connect(engine)
    connection = cast(Connection, lent.driver_connection)
    lent.detach()
    _end_transaction(connection)
    connection.autocommit = True
    return connection


# current_setting() gives it with a unit, such as 50ms or 2min, or 0 where there is no limit.
_WAIT_AT_MOST = """
SELECT l.given, pg_catalog.date_part('epoch', l.given::interval), pg_catalog.set_config(
    'lock_timeout',
    CASE WHEN l.given::interval BETWEEN '1us' AND %(most)s::text::interval
        THEN l.given ELSE %(most)s::text END,
    true)
FROM (SELECT pg_catalog.current_setting('lock_timeout')) l (given)
"""


def wait_at_most(connection: Connection, patience: str) -> tuple[str, float | None]:
    """Have the statements of a transaction wait for a lock so long at most.

    Less where the role, the address or the session has a lock_timeout of its own. Returns that one
    as it was, and in seconds; None where there is none.
    """
    row = connection.execute(_WAIT_AT_MOST, {"most": patience}).fetchone()
    assert row is not None
    return row[0], row[1] or None


@contextmanager
def _lent(engine: Engine) -> Iterator[Connection]:
    lent = _connect(engine)
    while _hung_up(cast(Connection, lent.driver_connection)):
        lent.invalidate()
        lent.close()
        lent = _connect(engine)
    try:
        with adapted(lent) as connection:
            yield connection
    finally:
        lent.close()


@contextmanager
def adapted(lent: PoolProxiedConnection, autocommit: bool = True) -> Iterator[Connection]:
    """Give a pooled connection all that our statements need, and put back what it had.

    Its owner may have set factories of cursors and rows, or an encoding that cannot hold every text.
    COPY in binary sends UTF-8, which the server would take for text in that encoding. A connection
    that cannot be put back leaves the pool.
    """
    connection = cast(Connection, lent.driver_connection)
    _end_transaction(connection)
    before = (
        connection.autocommit,
        connection.row_factory,
        connection.cursor_factory,
        connection.server_cursor_factory,
        connection.prepare_threshold,
    )
    encoding = connection.info.parameter_status("client_encoding") or _ENCODING
    try:
        connection.autocommit = True
        connection.row_factory = tuple_row
        connection.cursor_factory = psycopg.Cursor
        connection.server_cursor_factory = psycopg.ServerCursor
        _set_encoding(connection, _ENCODING)
        if _POOLED not in lent.info:
            _get_ready(connection, lent.info)
        connection.prepare_threshold = _prepare_threshold(connection, lent.info)
        connection.autocommit = autocommit
        yield connection
    finally:
        try:
            connection.autocommit = True
            _set_encoding(connection, encoding)
            (
                connection.autocommit,
                connection.row_factory,
                connection.cursor_factory,
                connection.server_cursor_factory,
                connection.prepare_threshold,
            ) = before
        except psycopg.Error:  # it is lost, or still in a transaction
            lent.invalidate()


def _end_transaction(connection: Connection) -> None:
    """Commit what a listener of the user's engine has left open, such as SET."""
    if not _is_idle(connection):
        connection.commit()


def _set_encoding(connection: Connection, encoding: str) -> None:
    """Set the encoding of a session unless it has it, which libpq knows without asking."""
    if connection.info.parameter_status("client_encoding") != encoding:
        statement = "SELECT pg_catalog.set_config('client_encoding', %s, false)"
        connection.execute(statement, [encoding], prepare=False)


def is_pooled(engine: Engine) -> bool:
    """Say whether a pooler such as pgbouncer stands between an engine and the server."""
    with _lent(engine) as connection:
        return _is_pooled(connection)


def _get_ready(connection: Connection, info: Any) -> None:
    cut_after_fork(connection)
    array_dumper.register(connection)
    info[_POOLED] = _is_pooled(connection)


def _is_pooled(connection: Connection) -> bool:
    """Say whether a pooler has answered: it tells clients another process than the server's own."""
    row = connection.execute("SELECT pg_catalog.pg_backend_pid()", prepare=False).fetchone()
    if not connection.autocommit:
        connection.rollback()
    return row != (connection.info.backend_pid,)


def _prepare_threshold(connection: Connection, info: Any) -> int | None:
    """Return from which repetition on statements are prepared, None for never.

    Never behind a pooler, where the next transaction may have another server connection, on which
    a statement of that name is missing, or is somebody else's. Who has set a threshold of their own
    knows of a pooler that keeps them apart.
    """
    threshold = connection.prepare_threshold
    return None if info[_POOLED] and threshold == _DEFAULT_THRESHOLD else threshold


def _connect(engine: Engine) -> PoolProxiedConnection:
    try:
        return engine.raw_connection()
    except sqlalchemy.exc.DBAPIError as error:
        raise cast("psycopg.Error", error.orig) from error
    except (AssertionError, LookupError, TypeError) as error:
        # SQLAlchemy asks the server for its version on an engine's first connection.
        raise ConfigurationError(
            f"SQLAlchemy cannot read the engine's connections ({type(error).__name__}: {error}); "
            "leave client_encoding, row_factory and cursor_factory out of its connect_args"
        ) from error


def _is_idle(connection: Connection) -> bool:
    return connection.info.transaction_status == pq.TransactionStatus.IDLE


def _hung_up(connection: Connection) -> bool:
    """Say whether the server has closed an idle connection, without asking it: a microsecond.

    A server that went away leaves its last word or an end of file to be read.
    """
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return False
    # It may also be a notice: only now is the server asked.
    return connection.pgconn.exec_(b"").status != pq.ExecStatus.EMPTY_QUERY
