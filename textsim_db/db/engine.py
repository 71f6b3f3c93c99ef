"""Makes engines from addresses, lends their connections, and translates the driver's errors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, LiteralString, cast
from urllib.parse import unquote

import psycopg
import sqlalchemy
from psycopg import errors as pg
from psycopg import sql
from sqlalchemy import Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import AssertionPool, SingletonThreadPool, StaticPool

from textsim_db.db import connections, limit_worker_statements, statements
from textsim_db.db.connections import ENCODING, lend
from textsim_db.errors import ConfigurationError, DatabaseError, DatabaseUnavailable

if TYPE_CHECKING:
    from psycopg.abc import Params

Connection = connections.Connection
APPLICATION_NAME = "textsim-db"
MAX_CONNECTIONS = 25
"""The connections of a pool; more calls at once wait. A connection stays open until the pool is closed.

If the pool closed the connections of many threads, each next call would open and plan its own again.
"""
_SINGLE_CONNECTION_POOLS = (AssertionPool, SingletonThreadPool, StaticPool)

# Times after which a silent host counts as lost, in seconds; tcp_user_timeout is in milliseconds. The
# defaults are minutes or hours.
_SILENCE = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "tcp_user_timeout": "60000",
}

_ADDRESS = re.compile(
    r"(?P<user>[^:/?@]*(:[^@]*)?@)?(?P<hosts>[^/?@]*)(?P<tail>([/?].*)?)", re.DOTALL
)
_HOST = re.compile(r"(\[(?P<ip>[^]]*)]|(?P<name>[^:[\]]*))(:(?P<port>[0-9]*))?")
_UNREADABLE = (
    "the address of the database cannot be read; expected an address such as "
    "postgresql://user@host/name, with special characters of a password written as %40, %2F ..."
)

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
    """Return the SQLAlchemy address for postgresql://, postgres:// or postgresql+psycopg://.

    Raises ConfigurationError if this is not the address of a PostgreSQL database.
    """
    scheme, separator, rest = address.partition("://")
    if not separator or scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ConfigurationError(
            f"the address of the database begins with {scheme.split(':')[0]!r}; expected an address "
            "such as postgresql://user@host/name"
        )
    try:
        rest.encode()
        url = _join_hosts(_parse(rest))
        # Impossible ports and host names fail here, before anything connects to them.
        _, arguments = url.get_dialect()().create_connect_args(url)
        for host in str(arguments.get("host", "")).split(","):
            if not host.startswith(("/", "@")):
                host.encode("idna")
            if "@" in host[1:]:
                raise ConfigurationError(_UNREADABLE)
    except (sqlalchemy.exc.ArgumentError, ValueError) as error:
        # The error itself may quote a part of a password, so it is not kept as the cause.
        raise ConfigurationError(_reason(rest, error)) from None
    return url


def _parse(rest: str) -> URL:
    """Read an address without its scheme; SQLAlchemy itself cannot read host1:port1,host2:port2."""
    match = _ADDRESS.fullmatch(rest)
    places = [] if match is None else match["hosts"].split(",")
    parts = [part for part in map(_HOST.fullmatch, places) if part is not None]
    if len(parts) < len(places):
        raise ValueError("a port is not a number")
    if match is None or len(parts) == 1:
        return make_url(f"postgresql+psycopg://{rest}")
    url = make_url(f"postgresql+psycopg://{match['user'] or ''}{match['tail']}")
    if "host" in url.query:  # libpq prefers it
        return url
    hosts = ",".join(unquote(part["ip"] or part["name"]) for part in parts)
    ports = ",".join(part["port"] or "" for part in parts)
    return url.update_query_dict({"host": hosts} | ({"port": ports} if ports.strip(",") else {}))


def _join_hosts(url: URL) -> URL:
    """Return an address whose several hosts are written as libpq reads them: host=a,b&port=1,2."""
    host, port = url.query.get("host"), url.query.get("port")
    if isinstance(host, str) and isinstance(port, str) and "," in host and "," not in port:
        return url.update_query_dict({"port": ",".join([port] * len(host.split(",")))})
    if isinstance(host, tuple):
        _, arguments = url.get_dialect()().create_connect_args(url)
        names = [name for name in ("host", "port") if arguments.get(name)]
        return url.update_query_dict({name: arguments[name] for name in names})
    return url


def _reason(rest: str, error: Exception) -> str:
    """Return why an address cannot be read. It names the host and port, and never a password.

    The user and the password end at the last "@". Parameters after a "?" may hold a password too.
    """
    hosts = rest.rpartition("@")[2].partition("?")[0].partition("/")[0]
    for place in hosts.split(","):
        host, colon, port = place.rpartition(":")
        if colon and port and "]" not in port and not (port.isascii() and port.isdigit()):
            return (
                f'the address of the database cannot be read: the port "{port}" of the host "{host}" '
                "is not a number; expected an address such as postgresql://user@host:5432/name"
            )
    if isinstance(error, UnicodeError | sqlalchemy.exc.ArgumentError):
        return f"the address of the database cannot be read: {error}"
    return _UNREADABLE


def plain_url(url: URL) -> str:
    """Return the address for psql and other clients of libpq, with the password."""
    address = _join_hosts(url).set(drivername="postgresql").render_as_string(hide_password=False)
    # libpq accepts neither the spaces that SQLAlchemy leaves in names of roles, nor the plus signs that
    # SQLAlchemy writes for spaces in options.
    address, mark, query = address.partition("?")
    return address.replace(" ", "%20") + mark + query.replace("+", "%20")


def public_url(url: URL) -> str:
    """Return the address for clients of libpq without its passwords, to show it."""
    hidden = {name: "***" for name in url.query if "password" in name}
    return (
        url.set(drivername="postgresql")
        .update_query_dict(hidden)
        .render_as_string(hide_password=True)
    )


def open_engine(address: str, application_name: str = APPLICATION_NAME) -> Engine:
    """Return an engine for an address, without connecting.

    The server shows application_name, unless the address or PGAPPNAME sets another name.
    """
    url = sqlalchemy_url(address)
    arguments = {"fallback_application_name": application_name} | _SILENCE
    if "PGCONNECT_TIMEOUT" in os.environ:
        del arguments["connect_timeout"]
    arguments = {name: value for name, value in arguments.items() if name not in url.query}
    # This overrides the address, PGCLIENTENCODING and ALTER ROLE SET.
    arguments["client_encoding"] = ENCODING.decode()
    # The connection that was used last is lent first: its plans and catalogue are in memory.
    engine = sqlalchemy.create_engine(
        url, pool_size=MAX_CONNECTIONS, max_overflow=0, pool_use_lifo=True, connect_args=arguments
    )

    @sqlalchemy.event.listens_for(engine, "connect")
    def prepare(connection: Connection, record: Any) -> None:
        connections.prepare(connection, record.info)
        connection.prepare_threshold = connections.prepare_threshold(connection, record.info)

    return engine


def check_application_name(name: object) -> None:
    """Raise ConfigurationError unless this is a str that can be sent to the server."""
    if not isinstance(name, str) or name != name.encode(errors="replace").decode():
        raise ConfigurationError(
            f"application_name is {name!r:.100}; expected a str without lone surrogates"
        )


def check_engine(engine: Engine) -> Engine:
    """Return the engine; raise ConfigurationError unless it uses psycopg 3 and a suitable pool.

    The pool must lend several connections at once, because we add words to the dictionary on another
    connection than documents.
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


@contextmanager
def configuration_errors(*errors: type[psycopg.Error]) -> Iterator[None]:
    """Turn these errors, with which a function of the schema refuses, into ConfigurationError."""
    try:
        yield
    except errors as error:
        raise ConfigurationError(error.diag.message_primary or str(error)) from error


def is_lost(error: psycopg.Error) -> bool:
    """Return whether the error means that there is no connection, or that it was lost."""
    if isinstance(error, _LOST):
        return True
    return (
        isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not error.sqlstate
    )


def is_trouble(error: psycopg.Error) -> bool:
    """Return whether the error is about the server, so that other statements would fail too.

    The server is lost or read-only, its disk or memory is full, or it cannot access its files.
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
    waiting for a lock it must see the rows that were committed meanwhile. A transaction of a worker is
    supervised.
    """
    supervisor = limit_worker_statements.current()
    with lend(engine) as connection:
        before = connection.isolation_level
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        try:
            limits = nullcontext() if supervisor is None else supervisor.limiting(connection)
            with connection.transaction(), limits:
                yield connection
        finally:
            if connections.is_idle(connection):
                connection.isolation_level = before


def detach_connection(engine: Engine) -> Connection:
    """Take a connection out of the pool, in autocommit mode; the caller closes it."""
    lent = connections.connect(engine)
    connection = cast(Connection, lent.driver_connection)
    lent.detach()
    connections.end_transaction(connection)
    connection.autocommit = True
    return connection


def wait_at_most(connection: Connection, patience: str) -> tuple[str, float | None]:
    """Limit how long the statements of a transaction wait for a lock, and return the old limit.

    A shorter lock_timeout of the role, the address or the session stays. The old limit is returned as
    text and in seconds; None if there was no limit.
    """
    row = connection.execute(statements.WAIT_AT_MOST, {"most": patience}).fetchone()
    assert row is not None
    return row[0], row[1] or None


def is_pooled(engine: Engine) -> bool:
    """Return whether a pooler such as pgbouncer stands between an engine and the server."""
    with lend(engine) as connection:
        return connections.is_pooled(connection)
