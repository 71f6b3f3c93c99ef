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
    from rich.console import Console


Draw = Callable[[float | None, str], None]
"""Draws a bar for a share of 1, or for an unknown share, and a text."""
_REDRAW_SECONDS = 0.1
"""The least time between two pictures; each is a message to the browser."""


@contextmanager
def showing(
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
    from rich.console import Console

    console = Console(file=sys.stderr)
    drawn = _in_notebook if console.is_jupyter else _on_terminal
    with drawn(console, action) as draw:
        yield Bar(draw, noun)


class Bar:
    """A bar; it moves to and fro if neither the total nor the share is known."""

    def __init__(self, draw: Draw, noun: str) -> None:
        self._draw = draw
        self._noun = noun
        self._start = time.monotonic()

    def __call__(
        self, done: int | AddReport, total: int | None = None, share: float | None = None
    ) -> None:
        """Show the number done, or a report, and the total or the share if it is known."""
        number = done.received if isinstance(done, AddReport) else done
        rate = number / max(time.monotonic() - self._start, 1e-9)
        of_all = "" if total is None else f" of {total:,}"
        if total:
            share = number / total
        self._draw(share, f"{number:,}{of_all} {self._noun}, {rate:,.0f}/s")


@contextmanager
def _on_terminal(console: Console, action: str) -> Iterator[Draw]:
    from rich import progress as rich

    bars = rich.Progress(
        rich.TextColumn("[progress.description]{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[count]}"),
        rich.TimeElapsedColumn(),
        rich.TextColumn("left"),
        rich.TimeRemainingColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,  # results may go to a file meanwhile
        disable=not console.is_terminal,
    )
    with bars:
        task = bars.add_task(action, total=None, count="")

        def draw(share: float | None, count: str) -> None:
            total = None if share is None else 1
            bars.update(task, completed=share or 0, total=total, count=count)

        yield draw


@contextmanager
def _in_notebook(console: Console, action: str) -> Iterator[Draw]:
    bar = _NotebookBar(action)
    try:
        yield bar.draw
    finally:
        bar.clear()


class _NotebookBar:
    """A bar in an output of the cell; Rich would need the package ipywidgets for it."""

    def __init__(self, action: str) -> None:
        from IPython.display import display

        self._action = action
        self._drawn = time.monotonic()
        # A bar without a value moves to and fro.
        self._output: Any = display(
            _mime("<progress></progress>", action), raw=True, display_id=True
        )

    def draw(self, share: float | None, count: str) -> None:
        """Draw the bar anew, unless it was drawn just before."""
        now = time.monotonic()
        if now - self._drawn < _REDRAW_SECONDS and share != 1:
            return
        self._drawn = now
        value = "" if share is None else f' value="{share:.4f}"'
        shown = _mime(f"<progress{value}></progress>", f"{self._action}: {count}")
        self._output.update(shown, raw=True)

    def clear(self) -> None:
        """Empty the output."""
        self._output.update(_mime("", ""), raw=True)


def _mime(html: str, text: str) -> dict[str, str]:
    return {"text/plain": text, "text/html": f"{html} {text}".strip()}
