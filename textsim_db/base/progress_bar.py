"""Progress of long work as a bar of Rich, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from textsim_db.errors import ConfigurationError
from textsim_db.results import AddReport


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
def bar(action: str, noun: str) -> Iterator[Callable[..., None]]:
    """Yield a function that shows the number done, or a report, and the total or the share if known.

    The bar disappears at the end. It moves to and fro if neither the total nor the share is known. In a
    notebook Rich needs the package ipywidgets, and warns without it.
    """
    from rich import progress as rich
    from rich.console import Console

    console = Console(file=sys.stderr)
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
        disable=not (console.is_terminal or console.is_jupyter),
    )
    start = time.monotonic()
    with bars:
        task = bars.add_task(action, total=None, count="")

        def show(
            done: int | AddReport, total: int | None = None, share: float | None = None
        ) -> None:
            number = done.received if isinstance(done, AddReport) else done
            rate = number / max(time.monotonic() - start, 1e-9)
            of_all = "" if total is None else f" of {total:,}"
            if total:
                share = number / total
            bars.update(
                task,
                completed=share or 0,
                total=None if share is None else 1,
                count=f"{number:,}{of_all} {noun}, {rate:,.0f}/s",
            )

        yield show
