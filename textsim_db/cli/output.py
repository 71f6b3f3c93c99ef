"""Results on standard output: a table for people, JSON lines or CSV for programs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import typer

from textsim_db.cli.messages import common_options
from textsim_db.cli.options import misused
from textsim_db.results.shown_values import shown, similarity

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


class Format(StrEnum):
    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"


class Setting(float):
    """A number that a user chose: a table shows 0.8 and not 0.8000."""


class Id(int):
    """An id: a table shows 1234 and not 1,234."""


_UNLIMITED = 1_000_000
_MOST_LAID_OUT = 2_000
"""Rich lays some thousand rows out in a second; a longer table has plain columns."""


def form_given(ctx: typer.Context, value: Format) -> Format:
    """Return the format of --format, or JSON lines with --json."""
    if not common_options.json:
        return value
    source = ctx.get_parameter_source("form")
    if value is not Format.JSONL and source is not None and source.name == "COMMANDLINE":
        raise misused("--json", f"--json is --format jsonl, and not {value}")
    return Format.JSONL


def write(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: Format) -> int:
    """Write rows and return their number; JSON lines and CSV are written row by row."""
    if form is Format.TABLE:
        all_rows = list(rows)
        if len(all_rows) > _MOST_LAID_OUT:
            _write_plain(columns, all_rows)
        elif all_rows:
            console().print(table(columns, all_rows))
        return len(all_rows)
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    if form is Format.JSONL:
        write_row: Callable[[Sequence[Any]], object] = partial(_write_json, columns)
    else:
        write_row = csv.writer(_LinesOfCsv(), lineterminator="\r\n").writerow
        write_row(columns)
    count = 0
    for row in rows:
        write_row(row)
        count += 1
    # The message that follows goes to standard error, and may go to the same file.
    sys.stdout.flush()
    return count


def _write_plain(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write rows in columns of a fixed width; a value of several lines takes several lines."""
    from rich.cells import cell_len

    is_number = [isinstance(value, int | float) for value in rows[0]]
    lines: list[tuple[str, ...]] = [tuple(columns)]
    for row in rows:
        cells = (cell(value).split("\n") for value in row)
        lines += zip_longest(*cells, fillvalue="")
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    rule = "─" * (sum(widths) + 3 * len(widths) - 1)
    for number, line in enumerate(lines):
        if number == 1:
            sys.stdout.write(f"{rule}\n")
        padded = (
            " " * (width - cell_len(text)) + text
            if right
            else text + " " * (width - cell_len(text))
            for text, width, right in zip(line, widths, is_number, strict=True)
        )
        sys.stdout.write(f" {'   '.join(padded)}".rstrip() + "\n")
    sys.stdout.flush()


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    result = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", show_edge=False)
    for i, name in enumerate(columns):
        numeric = bool(rows) and isinstance(rows[0][i], int | float)
        result.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        result.add_row(*(Text(cell(value)) for value in row))
    return result


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Setting):
        return f"{value:.6g}"
    if isinstance(value, float):
        return similarity(value)
    if isinstance(value, int):
        return f"{value:d}" if isinstance(value, Id) else f"{value:,}"
    if isinstance(value, tuple):
        return "\n".join(map(cell, value))
    return shown(str(value))


def tenths(histogram: Sequence[int]) -> list[tuple[str, int]]:
    """Return the rows of a table of pairs, by the hundredths of their similarities."""
    pairs = [sum(histogram[i : i + 10]) for i in range(0, 90, 10)] + [sum(histogram[90:])]
    return [(f"{i / 10:.1f} to {i / 10 + 0.1:.1f}", number) for i, number in enumerate(pairs)]


def console() -> Console:
    """Return a console on standard output; only a terminal limits the width of lines."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            # Rich would exit with status 1.
            raise BrokenPipeError

    return Output(file=sys.stdout, width=None if sys.stdout.isatty() else _UNLIMITED)


def _write_json(columns: Sequence[str], row: Sequence[Any]) -> object:
    record = dict(zip(columns, row, strict=True))
    return sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


class _LinesOfCsv:
    """Receives lines of the CSV writer: it quotes a carriage return only if lines end in one."""

    def write(self, line: str) -> object:
        return sys.stdout.write(line.removesuffix("\r\n") + "\n")
