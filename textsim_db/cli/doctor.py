"""textsim doctor: check the installation, the database, the corpora and the workers.

Findings of textsim doctor: facts, each with a command or change if the fact is a fault.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import typer

from textsim_db.cli.messages import json_option, print_object
from textsim_db.cli.options import DatabaseUrl
from textsim_db.cli.output import console
from textsim_db.errors import ConfigurationError, DatabaseError
from textsim_db.results.html import count

if TYPE_CHECKING:
    from rich.text import Text
    from sqlalchemy import Engine


class Level(StrEnum):
    """How much a fact matters."""

    OK = "ok"
    """All is as it should be."""
    NOTE = "note"
    """The user should know it."""
    FAULT = "fault"
    """The user has something to do."""


class Finding(NamedTuple):
    """One fact, and the command or change that mends it."""

    level: Level
    fact: str
    remedy: str | None = None


def ok(fact: str) -> Finding:
    """Return a fact that is as it should be."""
    return Finding(Level.OK, fact)


def note(fact: str, remedy: str | None = None) -> Finding:
    """Return a fact that is worth knowing, and how to change it."""
    return Finding(Level.NOTE, fact, remedy)


def fault(fact: str, remedy: str) -> Finding:
    """Return a fact that is a fault, and what mends it."""
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
        """The findings that have to be mended."""
        every = (finding for findings in self.sections.values() for finding in findings)
        return [finding for finding in every if finding.level is Level.FAULT]

    @property
    def status(self) -> int:
        """The exit status: 2 without a database, 1 with faults, 0 if all is well."""
        return 2 if self.is_unreachable else 1 if self.faults else 0


def doctor(database_url: DatabaseUrl = None) -> None:
    """Check the installation, the database, the corpora and the workers.

    It prints one line for each fact, and below a fault the command that mends it. It starts nothing
    and changes nothing. Exit status: 0 if all is well, 1 if there is something to do, 2 if no
    database can be reached.

    Examples: `textsim doctor`, `textsim doctor --json`
    """
    report = examine(database_url)
    if json_option.is_given:
        print_object(_as_object(report))
    else:
        _show(report)
    if report.status:
        raise typer.Exit(report.status)


def examine(database_url: str | None) -> Findings:
    """Return what is found on this machine and in the database of an address."""
    from textsim_db.cli import doctor_database, doctor_database as doctor_machine, doctor_work

    report = Findings()
    report.add("installed", doctor_machine.find_installed())
    address, findings = doctor_database.find_address(database_url)
    report.add("installed", doctor_machine.find_disks(address.folders))
    report.add("reachable", findings)
    if address.url is None:
        report.is_unreachable = bool(findings[0].level is Level.FAULT)
        return report
    try:
        engine = doctor_database.open_address(address)
        try:
            report.add("reachable", doctor_database.find_server(engine, address))
            if _has_schema(engine):
                report.add("installation", doctor_work.find_installation(engine))
                _examine_work_if_possible(report, engine)
        finally:
            engine.dispose()
    except (DatabaseError, ConfigurationError) as error:
        report.add("reachable", [doctor_database.unreachable(error, address)])
        report.is_unreachable = True
    return report


def _has_schema(engine: Engine) -> bool:
    """Say whether the database has the schema of this version, and this role may use it."""
    from textsim_db.db import schema

    try:
        schema.check_installed(engine)
    except DatabaseError:
        return False
    return True


def _examine_work_if_possible(report: Findings, engine: Engine) -> None:
    """Examine the work; if objects of the schema are missing, that may fail."""
    try:
        _examine_work(report, engine)
    except DatabaseError:
        if not any(each.level is Level.FAULT for each in report.sections["installation"]):
            raise
        left_out = note(
            "corpora and workers were not examined", "mend the schema, and run doctor again"
        )
        report.add("behind", [left_out])


def _examine_work(report: Findings, engine: Engine) -> None:
    from textsim_db.cli import doctor_work
    from textsim_db.corpus.database import Database

    db = Database(engine, owned=False)
    workers = doctor_work.read_workers(db)
    report.add("running", doctor_work.find_workers(db, workers))
    report.add("behind", doctor_work.find_behind(db, workers))


def _as_object(report: Findings) -> dict[str, object]:
    sections = {
        name: [finding._asdict() for finding in findings]
        for name, findings in report.sections.items()
    }
    return {"status": report.status, "faults": len(report.faults), **sections}


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
