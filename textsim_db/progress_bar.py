"""Progress of long work as a bar, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from textsim_db.errors import ConfigurationError
from textsim_db.results import AddReport

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def shown(
    progress: Callable[..., None] | bool | None, action: str, noun: str
) -> Iterator[Callable[..., None] | None]:
    """Yield what to call with the progress: the caller's function, a bar for True, or None.

    action, noun: what the bar says, such as "indexing" and "documents".

    Raises:
        ConfigurationError: progress is something else.
    """
    if progress is True:
        with bar(action, noun) as show:
            yield show
    elif progress is None or progress is False or callable(progress):
        yield progress or None
    else:
        raise ConfigurationError(f"progress is {progress!r:.100}; expected True or a function")


@contextmanager
def bar(action: str, noun: str) -> Iterator[Bar]:
    """Yield a bar, which disappears at the end."""
    with _rich_progress() as bars:
        yield Bar(bars, action, noun)


class Bar:
    """A bar; it moves to and fro if neither the total nor the share is known."""

    def __init__(self, bars: Progress, action: str, noun: str) -> None:
        self._bars = bars
        self._noun = noun
        self._start = time.monotonic()
        self._task = bars.add_task(action, total=None, count="")

    def __call__(
        self, done: int | AddReport, total: int | None = None, share: float | None = None
    ) -> None:
        """Show the number done, or a report, and the total or the share if it is known."""
        number = done.received if isinstance(done, AddReport) else done
        rate = number / max(time.monotonic() - self._start, 1e-9)
        of_all = "" if total is None else f" of {total:,}"
        if total:
            share = number / total
        fields: dict[str, Any] = {"count": f"{number:,}{of_all} {self._noun}, {rate:,.0f}/s"}
        self._bars.update(
            self._task, completed=share or 0, total=None if share is None else 1, **fields
        )


def _rich_progress() -> Progress:
    from rich import progress as rich
    from rich.console import Console

    console = Console(file=sys.stderr)
    return rich.Progress(
        rich.TextColumn("[progress.description]{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[count]}"),
        rich.TimeElapsedColumn(),
        rich.TextColumn("left"),
        rich.TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not (console.is_terminal or console.is_jupyter),
    )
