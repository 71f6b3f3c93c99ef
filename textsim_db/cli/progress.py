"""Progress of long work: a bar on a terminal, a log record every few seconds with --log-json."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from textsim_db.cli.logs import log_options
from textsim_db.cli.memory import keep_freed_memory
from textsim_db.cli.messages import print_message
from textsim_db.progress_bar import bar
from textsim_db.results import AddReport

_REFRESH_SECONDS = 0.1
LOG_SECONDS = 5.0

Loaded = TypeVar("Loaded")
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
    """Yield a function that shows the number done."""
    if log_options.json:
        yield _Records(action, noun)
    elif sys.stderr.isatty():
        with bar(action, noun) as show:
            yield show
    else:
        yield _show_nothing


def counted(
    action: str,
    noun: str,
    items: Iterable[Item],
    measured: Measured | None = None,
    are_printed: bool = False,
) -> Iterator[Item]:
    """Yield the items; until the last one was taken, their number is shown.

    Args:
        action: what the command does, such as "comparing".
        noun: the plural of an item.
        items: the items.
        measured: the input of the items; the share of it that was read is shown as well.
        are_printed: whether each item is printed at once. On a terminal, that shows enough.
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
def loading(measured: Measured | None, documents: Iterable[Loaded]) -> Iterator[Load[Loaded]]:
    """Yield a load of documents and show its progress; from then on the process keeps freed memory."""
    keep_freed_memory()
    with progress("indexing", "documents") as show:
        yield Load(measured if sys.stderr.isatty() else None, documents, show)


class Load(Generic[Loaded]):
    """The documents of a load, with the share that has been read, and the latest report."""

    def __init__(self, measured: Measured | None, documents: Iterable[Loaded], show: Show) -> None:
        self.report = AddReport()
        self._input = measured
        self._documents = documents
        self._show = show
        self._share: float | None = None

    def __iter__(self) -> Iterator[Loaded]:
        total = self._input and self._input.total_bytes()
        looked_at = 0.0
        for document in self._documents:
            yield document
            if self._input and total and time.monotonic() - looked_at > _REFRESH_SECONDS:
                looked_at = time.monotonic()
                self._share = self._input.bytes_read / total

    def after_batch(self, report: AddReport) -> None:
        """Show the report of add_many after a batch."""
        self.report = report
        self._show(report.received, share=self._share)


def _show_nothing(done: int, total: int | None = None, share: float | None = None) -> None:
    pass


class _Records:
    """Logs the number done, every few seconds."""

    def __init__(self, action: str, noun: str) -> None:
        self._action = action
        self._noun = noun
        self._start = self._logged = time.monotonic()

    def __call__(self, done: int, total: int | None = None, share: float | None = None) -> None:
        now = time.monotonic()
        if now - self._logged < LOG_SECONDS:
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
