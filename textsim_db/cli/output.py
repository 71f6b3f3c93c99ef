"""Results on standard output: a table for a person, JSON lines or CSV for a program."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textsim_db.cli.common import one_of
from textsim_db.errors import shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"


class Setting(float):
    """A number that somebody chose, which a table shows as it was written: 0.8."""


_UNLIMITED = 1_000_000


def _format(text: str) -> Format:
    return one_of(Format, text)


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        parser=_format,
        metavar="|".join(Format),
        help="A table to read, JSON lines or CSV (in UTF-8) for programs.",
    ),
]


def write(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: Format) -> int:
    """Write rows, those of JSON lines and CSV as they come, and return how many there were."""
    if form is Format.TABLE:
        kept = list(rows)
        if kept:
            console().print(table(columns, kept))
        return len(kept)
    return sum(1 for _ in _written(columns, rows, form))


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> Table:
    """Return rows as a table with right-aligned numbers and texts that are never cut off."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", show_edge=False)
    for i, name in enumerate(columns):
        numeric = bool(rows) and isinstance(rows[0][i], int | float)
        made.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell(value)) for value in row))
    return made


def cell(value: Any) -> str:
    """Return a value as a table shows it."""
    if isinstance(value, Setting):
        return f"{value:.6g}"
    if isinstance(value, float):
        return similarity(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple):
        return "\n".join(map(cell, value))
    return shown(str(value))


def similarity(value: float) -> str:
    """Return a similarity with four decimals; 1.0000 stands for identity only."""
    return "0.9999" if 0.99995 <= value < 1 else f"{value:.4f}"


def console() -> Console:
    """Return a console on standard output, as wide as needed where that is not a terminal."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the program with status 1.
            raise BrokenPipeError

    return Output(file=sys.stdout, width=None if sys.stdout.isatty() else _UNLIMITED)


def error_console() -> Console:
    """Return a console on standard error, for progress bars."""
    from rich.console import Console

    return Console(file=sys.stderr)


def _written(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: Format) -> Iterator[None]:
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    if form is Format.JSONL:
        for row in rows:
            record = dict(zip(columns, row, strict=True))
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
            yield
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(row)
        yield
