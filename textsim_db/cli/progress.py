"""Progress of what takes long: a bar on a terminal, a record now and then with --log-json."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

from textsim_db.cli.common import complain
from textsim_db.cli.logs import chosen
from textsim_db.cli.output import error_console

if TYPE_CHECKING:
    from textsim_db.results import AddReport

_REFRESH_SECONDS = 0.1
LOG_SECONDS = 5.0

Item = TypeVar("Item")


class Measured(Protocol):
    """What is read, and how much of it has been."""

    @property
    def bytes_read(self) -> int:
        """Bytes read so far."""

    def total_bytes(self) -> int | None:
        """All bytes, or None where that is not known."""


class _Records:
    """Logs how much is done, every few seconds."""

    def __init__(self, what: str, noun: str) -> None:
        self._what = what
        self._noun = noun
        self._start = self._told = time.monotonic()

    def __call__(self, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        if now - self._told < LOG_SECONDS:
            return
        self._told = now
        seconds = now - self._start
        fields = {} if total is None else {"total": total}
        complain(
            f"{self._what}: {done:,} {self._noun}",
            **{self._noun: done},
            **fields,
            seconds=round(seconds, 3),
            rate=round(done / seconds, 1),
        )


@contextmanager
def loading(
    source: Measured | None, documents: Iterable[Item]
) -> Iterator[tuple[Iterator[Item], Callable[[AddReport], None]]]:
    """Yield the documents and what to call after each batch; show both on a terminal."""
    if chosen.json:
        records = _Records("indexing", "documents")
        yield iter(documents), lambda report: records(report.given)
        return
    if not sys.stderr.isatty():
        yield iter(documents), lambda report: None
        return
    from rich import progress as rich

    columns = (
        rich.TextColumn("[progress.description]{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[documents]:,} documents, {task.fields[rate]:,.0f}/s"),
        rich.TimeElapsedColumn(),
        rich.TextColumn("left"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=error_console(), transient=True) as bar:
        total = None if source is None else source.total_bytes()
        task = bar.add_task("indexing", total=total, documents=0, rate=0.0)
        start = time.monotonic()

        def stored(report: AddReport) -> None:
            rate = report.given / max(time.monotonic() - start, 1e-9)
            bar.update(task, documents=report.given, rate=rate)

        def read() -> Iterator[Item]:
            shown = 0.0
            for document in documents:
                yield document
                if source is not None and time.monotonic() - shown > _REFRESH_SECONDS:
                    shown = time.monotonic()
                    bar.update(task, completed=source.bytes_read)

        yield read(), stored


@contextmanager
def counting(what: str, noun: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yield what to call with the number done and the number of all; show it on a terminal."""
    if chosen.json:
        yield _Records(what, noun)
        return
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich

    columns = (
        rich.TextColumn("[progress.description]{task.description}"),
        rich.BarColumn(),
        rich.TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {noun}"),
        rich.TimeElapsedColumn(),
        rich.TextColumn("left"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=error_console(), transient=True) as bar:
        task = bar.add_task(what, total=0)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def passing(what: str, noun: str) -> Iterator[Callable[[int], None] | None]:
    """Yield what to call with the number done, of an unknown number; show it on a terminal."""
    if chosen.json:
        yield _Records(what, noun)
        return
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.description}"),
        rich.SpinnerColumn(),
        rich.TextColumn(f"{{task.completed:,}} {noun}, {{task.speed}}/s"),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(*columns, console=error_console(), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done: bar.update(task, completed=done)
