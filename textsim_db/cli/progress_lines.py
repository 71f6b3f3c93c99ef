"""Progress of a command: a bar on a terminal, or log records with --log-json."""

from __future__ import annotations

import ctypes
import logging
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import typer

from textsim_db.base.progress_bar import bar
from textsim_db.cli.messages import COMMANDS, common_options, print_message, print_result
from textsim_db.results import AddReport, ChangeReport

if TYPE_CHECKING:
    from textsim_db.sync.worker_state import WorkReport

_REFRESH_SECONDS = 0.1
LOG_SECONDS = 5.0
_LINE_SECONDS = 30.0
"""Seconds between two lines where standard error is a file, and no program reads it."""

Item = TypeVar("Item")


class Show(Protocol):
    """A function that shows the number done, and the total and the share if they are known."""

    def __call__(self, done: int, total: int | None = None, share: float | None = None) -> None:
        """Show the number done."""


class Measured(Protocol):
    """Input that counts its bytes while it is read."""

    @property
    def bytes_read(self) -> int:
        """Bytes read so far."""

    def total_bytes(self) -> int | None:
        """Return the number of all bytes, or None if it is unknown."""


@contextmanager
def progress(action: str, noun: str) -> Iterator[Show]:
    if common_options.log_json:
        yield _Records(action, noun, LOG_SECONDS)
    elif sys.stderr.isatty():
        with bar(action, noun) as show:
            yield show
    else:
        yield _Records(action, noun, _LINE_SECONDS)


def counted(
    action: str,
    noun: str,
    items: Iterable[Item],
    measured: Measured | None = None,
    are_printed: bool = False,
) -> Iterator[Item]:
    """Yield the items; until the last one was taken, their number is shown.

    measured: the input of the items; the share of it that was read is shown as well. are_printed:
    whether each item is printed at once. On a terminal, that shows enough.
    """
    if are_printed and sys.stdout.isatty():
        yield from items
        return
    total = measured.total_bytes() if measured and sys.stderr.isatty() else None
    shown_at = 0.0
    with progress(action, noun) as show:
        for done, item in enumerate(items, 1):
            yield item
            if time.monotonic() - shown_at > _REFRESH_SECONDS:
                shown_at = time.monotonic()
                show(done, share=measured.bytes_read / total if measured and total else None)


@contextmanager
def loading(measured: Measured) -> Iterator[Load]:
    """Show the progress of a load of documents; from then on the process keeps freed memory."""
    keep_freed_memory()
    with progress("indexing", "documents") as show:
        yield Load(measured, show)


# The options of mallopt(3), and their values.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_OPTIONS = {_M_ARENA_MAX: 1, _M_MMAP_THRESHOLD: 2**30, _M_TRIM_THRESHOLD: 2**31 - 1}


def keep_freed_memory() -> bool:
    """Keep freed memory for the next batch, whatever its thread; return whether the system can do that.

    The C library of Linux gives each thread memory of its own, and returns it to the system after each
    batch. The next batch then gets fresh pages, which the system clears first. That takes a fifth of the
    client's time. The setting holds for the whole process, so only commands change it.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    return mallopt is not None and all(mallopt(*option) == 1 for option in _OPTIONS.items())


class Load:
    """Shows the progress of a load by the share of the input that has been read; keeps the report."""

    def __init__(self, measured: Measured, show: Show) -> None:
        self.report = AddReport()
        self._input = measured
        self._total = measured.total_bytes() if sys.stderr.isatty() else None
        self._show = show

    def after_batch(self, report: AddReport) -> None:
        self.report = report
        share = self._input.bytes_read / self._total if self._total else None
        self._show(report.received, share=share)


class _Records:
    def __init__(self, action: str, noun: str, interval: float) -> None:
        self._action = action
        self._noun = noun
        self._interval = interval
        self._start = self._logged = time.monotonic()

    def __call__(self, done: int, total: int | None = None, share: float | None = None) -> None:
        now = time.monotonic()
        if now - self._logged < self._interval:
            return
        self._logged = now
        seconds = now - self._start
        print_message(
            f"{self._action}: {done:,} {self._noun}",
            **{self._noun: done},
            **({} if total is None else {"total": total}),
            seconds=round(seconds, 3),
            rate=round(done / seconds, 1),
        )


log = logging.getLogger(f"{COMMANDS}.worker")

_REPORT_SECONDS = 1.0
_CHANGES_FOR_SPEED = 100
"""From this many documents on, the message shows the speed."""


def counts(report: ChangeReport, seconds: float | None = None) -> dict[str, Any]:
    names = ["added", "replaced", "removed", "completed", "unchanged", "without_words", "mended"]
    fields: dict[str, Any] = {"documents": report.written}
    fields |= {name: getattr(report, name) for name in names} | {"refused": len(report.refused)}
    if seconds is not None:
        rate = round(report.written / max(seconds, 1e-9), 1)
        fields |= {"seconds": round(seconds, 3), "rate": rate}
    return fields


def print_changes(corpus: str, report: ChangeReport, seconds: float, **fields: Any) -> None:
    message = f"{report.summary}; {seconds:.1f} s"
    print_result(message, corpus=corpus, **fields, **counts(report, seconds))


def exit_if_set_aside(report: ChangeReport) -> None:
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
        now = time.monotonic()
        if not self._waiting:
            self._since = max(now - work.seconds, self._logged)
        self._waiting.setdefault((work.corpus, work.table), ChangeReport()).include(work.changes)
        if now - self._logged >= _REPORT_SECONDS:
            self.write()

    def write(self) -> None:
        self._logged = time.monotonic()
        for (corpus, table), changes in self._waiting.items():
            origin = "written by SQL" if table is None else f"from {table}"
            seconds = max(self._logged - self._since, 1e-9)
            rate = changes.written / seconds
            speed = f" ({rate:,.0f}/s)" if changes.written >= _CHANGES_FOR_SPEED else ""
            log.info(
                "%s, %s: %s%s",
                *(corpus, origin, changes.summary, speed),
                extra={"corpus": corpus, "table": table, **counts(changes, seconds)},
            )
        self._waiting = {}


_DOCUMENTS_FOR_SPEED = 1000
"""From this many documents on, the message shows the speed."""


def speed(documents: int, seconds: float) -> str:
    """Return the speed as the end of a message; empty for few documents."""
    return f", {documents / seconds:,.0f} documents/s" if documents >= _DOCUMENTS_FOR_SPEED else ""
