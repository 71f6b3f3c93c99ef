"""Messages about documents that were written because attached tables changed."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import typer

from textsim_db.cli.logs import COMMANDS
from textsim_db.cli.messages import print_message, print_result
from textsim_db.results import ChangeReport

if TYPE_CHECKING:
    from textsim_db.sync.worker_settings import WorkReport

log = logging.getLogger(f"{COMMANDS}.worker")

_REPORT_SECONDS = 1.0
_CHANGES_FOR_SPEED = 100
"""From this many documents on, the message shows the speed."""


def summary(report: ChangeReport) -> str:
    """Return a report as a phrase, such as "2 added, 1 removed"."""
    parts = {
        "added": report.added,
        "replaced": report.replaced,
        "removed": report.removed,
        "given word ids": report.completed,
        "unchanged": report.unchanged,
        "given clusters anew": report.mended,
        "set aside": len(report.refused),
    }
    return ", ".join(f"{n:,} {outcome}" for outcome, n in parts.items() if n) or "nothing to do"


def counts(report: ChangeReport, seconds: float | None = None) -> dict[str, Any]:
    """Return a report as the fields of a log record."""
    fields: dict[str, Any] = {"documents": report.written}
    for name in ("added", "replaced", "removed", "completed", "unchanged", "mended"):
        fields[name] = getattr(report, name)
    fields["refused"] = len(report.refused)
    if seconds is not None:
        rate = round(report.written / max(seconds, 1e-9), 1)
        fields |= {"seconds": round(seconds, 3), "rate": rate}
    return fields


def print_changes(corpus: str, report: ChangeReport, seconds: float, **fields: Any) -> None:
    """Print what attach or reconcile did."""
    message = f"{summary(report)}; {seconds:.1f} s"
    print_result(message, corpus=corpus, **fields, **counts(report, seconds))


def exit_if_set_aside(report: ChangeReport) -> None:
    """End with status 1 if documents were set aside."""
    if report.refused:
        print_message("textsim pending shows why documents were set aside", logging.WARNING)
        raise typer.Exit(1)


class WorkLog:
    """Logs the changes that a worker indexed, at most once a second."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str | None], ChangeReport] = {}
        self._since = 0.0
        self._logged = 0.0

    def add(self, work: WorkReport) -> None:
        """Count the changes of one transaction."""
        now = time.monotonic()
        if not self._waiting:
            self._since = max(now - work.seconds, self._logged)
        self._waiting.setdefault((work.corpus, work.table), ChangeReport()).include(work.changes)
        if now - self._logged >= _REPORT_SECONDS:
            self.write()

    def write(self) -> None:
        """Log the changes since the last record."""
        self._logged = time.monotonic()
        for (corpus, table), changes in self._waiting.items():
            origin = "added by hand" if table is None else f"from {table}"
            seconds = max(self._logged - self._since, 1e-9)
            rate = changes.written / seconds
            speed = f" ({rate:,.0f}/s)" if changes.written >= _CHANGES_FOR_SPEED else ""
            log.info(
                "%s, %s: %s%s",
                *(corpus, origin, summary(changes), speed),
                extra={"corpus": corpus, "table": table, **counts(changes, seconds)},
            )
        self._waiting = {}
