"""Rows of values as an HTML table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from textsim_db.show.escape import escaped, shortened
from textsim_db.show.numbers import similarity

_LONGEST_CELL = 300
_SHOWN_VALUES = 10
"""The values of a list that a cell shows."""
_LARGE = 10
"""Numbers from here on are no similarities, and have one decimal."""


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as a table; each value is escaped, and a long one is shortened."""
    head = "".join(f"<th>{escaped(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    return f'<table class="textsim">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>\n'


def facts(values: Iterable[tuple[str, Any]]) -> str:
    """Return names with their values as a table without a head."""
    rows = "".join(f"<tr><th>{escaped(name)}</th>{_cell(value)}</tr>\n" for name, value in values)
    return f'<table class="textsim">\n<tbody>\n{rows}</tbody></table>\n'


def _cell(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="number">{_number(value)}</td>'
    return f"<td><bdi>{shortened(_text(value), _LONGEST_CELL)}</bdi></td>"


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return similarity(value) if abs(value) < _LARGE else f"{value:,.1f}"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        more = [f"and {len(value) - _SHOWN_VALUES:,} more"] if len(value) > _SHOWN_VALUES else []
        return ", ".join([*map(_text, value[:_SHOWN_VALUES]), *more])
    return str(value)
