"""textsim doctor: facts about installation, database and corpora."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import typer

from textsim_db.cli.messages import json_option, print_object
from textsim_db.cli.opening import skip_unreadable
from textsim_db.cli.options import DatabaseUrl
from textsim_db.cli.output import console
from textsim_db.errors import ConfigurationError, DatabaseError, RecipeError, shown
from textsim_db.results.html import count

if TYPE_CHECKING:
    from rich.text import Text
    from sqlalchemy import Engine

    from textsim_db.corpus.database import Database
    from textsim_db.results import Problem


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


_SHOWN_PROBLEMS = 20
"""The most findings of one check; a dropped schema would print hundreds."""
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


def doctor(database_url: DatabaseUrl = None) -> None:
    """Check the installation, the database and the corpora.

    It prints one line for each fact, and below a fault the command that mends it. It starts nothing
    and changes nothing. `textsim status` shows what waits, and what each worker does. Exit status: 0
    if all is well, 1 if there is something to do, 2 if no database can be reached.

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
    from textsim_db.cli import doctor_database

    report = Findings()
    report.add("installed", doctor_database.find_installed())
    address, findings = doctor_database.find_address(database_url)
    report.add("installed", doctor_database.find_disks(address.folders))
    report.add("reachable", findings)
    if address.url is None:
        report.is_unreachable = bool(findings[0].level is Level.FAULT)
        return report
    try:
        engine = doctor_database.open_address(address)
        try:
            report.add("reachable", doctor_database.find_server(engine, address))
            if _has_schema(engine):
                report.add("installation", _find_installation(engine))
                _examine_corpora(report, engine)
        finally:
            engine.dispose()
    except (DatabaseError, ConfigurationError) as error:
        report.add("reachable", [doctor_database.unreachable(error, address)])
        report.is_unreachable = True
    return report


def _has_schema(engine: Engine) -> bool:
    from textsim_db.db import schema

    try:
        schema.check_installed(engine)
    except DatabaseError:
        return False
    return True


def _examine_corpora(report: Findings, engine: Engine) -> None:
    """Examine the corpora; if objects of the schema are missing, that may fail."""
    from textsim_db.corpus.database import Database

    try:
        report.add("corpora", _find_corpora(Database(engine, owned=False)))
    except DatabaseError:
        if not any(each.level is Level.FAULT for each in report.sections["installation"]):
            raise
        left_out = note("corpora were not examined", "mend the schema, and run doctor again")
        report.add("corpora", [left_out])


def _find_installation(engine: Engine) -> Iterator[Finding]:
    from textsim_db.read import check_catalog

    problems = check_catalog.check_installation(engine)
    yield from _problem_findings(problems)
    if not problems:
        yield ok("all functions, tables and indexes of the schema are as they were installed")


def _find_corpora(db: Database) -> Iterator[Finding]:
    from textsim_db.db import stored_corpus
    from textsim_db.read import check_catalog

    names = db.corpora()
    if not names:
        yield note("there is no corpus", "textsim corpus create NAME")
    for name in names:
        with skip_unreadable(db, name):
            corpus = stored_corpus.load_unchecked(db.engine, name)
            problems = check_catalog.check_objects(db.engine, corpus)
            yield from _problem_findings(problems, f'corpus "{name}": ')
            if problems:
                continue
            try:
                corpus.config.check_recipe(name)
            except RecipeError as error:
                remedy = f"textsim corpus drop {shown(name)}, then create and index it again"
                yield fault(shown(str(error)), remedy)
            else:
                yield ok(f'corpus "{shown(name)}"')


def _problem_findings(problems: list[Problem], begin: str = "") -> Iterator[Finding]:
    for problem in problems[:_SHOWN_PROBLEMS]:
        fact = f"{begin}{problem.kind} {problem.subject}: {problem.detail}"
        yield fault(shown(fact), problem.remedy)
    if len(problems) > _SHOWN_PROBLEMS:
        more = len(problems) - _SHOWN_PROBLEMS
        yield fault(f"{begin}{more} more faults of this kind", "textsim check lists them")


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
