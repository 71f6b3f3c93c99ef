"""Values as HTML that runs nothing: escaped texts, numbers as people read them, tables and charts.

Escaping also makes characters visible that mislead a reader. A long text is cut where no word is cut.
An output of a notebook has its own style. A chart is SVG: bars of counts over the similarity, with a
curve.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from math import log1p
from typing import Any, SupportsIndex, TypeVar, overload

from textsim_db.results.shown_values import count, similarity

_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, characters that change the direction of a text, and lone surrogates."""


def escaped(text: str) -> str:
    """Return a text as HTML; a control character is shown as its code, such as U+202E."""
    return _CONTROLS.sub(lambda control: f"<b>U+{ord(control[0]):04X}</b>", html.escape(text))


def shortened(text: str, most: int) -> str:
    """Return a text as HTML, with the number of characters that are left out after the first."""
    if len(text) <= most:
        return escaped(text)
    return f"{escaped(text[:most])}{left_out(len(text) - most)}"


def left_out(characters: int) -> str:
    """Return a mark in the place of characters that are left out."""
    return f' <i class="gap">… {count(characters, "character")} …</i> '


_STYLE = """
.textsim { overflow-wrap: anywhere; }
.textsim table.textsim { border-collapse: collapse; margin: 0.5em 0; }
.textsim table.textsim th, .textsim table.textsim td { text-align: start; vertical-align: top;
  padding: 0.15em 1em 0.15em 0; border: 0; border-bottom: 1px solid #80808060; background: none; }
.textsim table.textsim .number { text-align: end; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.textsim p.note { opacity: 0.75; margin: 0.3em 0; }
.textsim p.warning { border-inline-start: 0.3em solid #d97706; padding-inline-start: 0.7em; }
.textsim .gap, .textsim .key { opacity: 0.75; }
.textsim .texts { display: grid; grid-template-columns: 1fr 1fr; gap: 0.3em 1.5em; }
.textsim .texts > * { min-width: 0; }
.textsim .text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
.textsim del { background: #ef444440; color: inherit; text-decoration: line-through #ef4444; }
.textsim ins { background: #22c55e40; color: inherit; text-decoration: underline #22c55e; }
.textsim svg { display: block; width: 100%; max-width: 40em; height: 9em; }
.textsim .bar { fill: #3b82f6; }
.textsim .curve { fill: none; stroke: #d97706; stroke-width: 2; vector-effect: non-scaling-stroke; }
.textsim .threshold { stroke: currentColor; stroke-dasharray: 3; vector-effect: non-scaling-stroke; }
.textsim .axis { display: flex; justify-content: space-between; max-width: 40em; opacity: 0.75; }
"""


def output(*pieces: str) -> str:
    """Return pieces of HTML as an output of a notebook, with a style that no other output sees."""
    return f'<div class="textsim"><style>{_STYLE}</style>\n{"".join(pieces)}</div>'


def note(text: str) -> str:
    """Return a paragraph beside the matter; text: HTML."""
    return f'<p class="note">{text}</p>\n'


_LONGEST_CELL = 300
_SHOWN_VALUES = 10
"""The values of a list that a cell or a repr() shows."""
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


LONGEST_WORD = 40
"""The characters up to which a word is not cut."""


def end_of_start(text: str, most: int) -> int:
    """Return where a start of at most `most` characters ends: before a space, or in a very long word.

    The text is longer.
    """
    places = range(most, max(most - LONGEST_WORD, 0), -1)
    return next((place for place in places if text[place].isspace()), most)


def start_of_end(text: str, most: int) -> int:
    """Return where an end of at most `most` characters starts: after a space, or in a very long word.

    The text is longer.
    """
    first = len(text) - most
    places = range(first, min(first + LONGEST_WORD, len(text)))
    return next((place for place in places if text[place - 1].isspace()), first)


_HEIGHT = 60


def over_similarity(
    counts: Sequence[int], curve: Sequence[float] = (), threshold: float | None = None
) -> str:
    """Return a chart over the similarities from 0 to 1.

    counts: bars of equal width; their heights are logarithms. curve: shares of 1 at equal distances, the
    first at 0 and the last at 1. threshold: has a line of its own.
    """
    most = log1p(max(counts, default=0)) or 1
    width = 100 / max(len(counts), 1)
    bars = "".join(
        f'<rect class="bar" x="{i * width:.2f}" y="{_HEIGHT - height:.2f}" '
        f'width="{width:.2f}" height="{height:.2f}"/>'
        for i, count in enumerate(counts)
        if (height := _HEIGHT * log1p(count) / most)
    )
    step = 100 / max(len(curve) - 1, 1)
    points = " ".join(f"{i * step:.2f},{_HEIGHT * (1 - y):.2f}" for i, y in enumerate(curve))
    line = f'<polyline class="curve" points="{points}"/>' if curve else ""
    mark = ""
    if threshold is not None:
        x = f"{100 * threshold:.2f}"
        mark = f'<line class="threshold" x1="{x}" x2="{x}" y1="0" y2="{_HEIGHT}"/>'
    return (
        f'<svg viewBox="0 0 100 {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="pairs by similarity">{bars}{line}{mark}</svg>\n'
        '<div class="axis"><span>0</span><span>similarity</span><span>1</span></div>\n'
    )


def short_repr(owner: object, fields: Iterable[str]) -> str:
    """Return Name(field=value, ...), with a number in the place of a long list."""
    values = ", ".join(f"{name}={_shortened(getattr(owner, name))}" for name in fields)
    return f"{type(owner).__name__}({values})"


def _shortened(value: Any) -> str:
    if isinstance(value, list | tuple | dict) and len(value) > _SHOWN_VALUES:
        return f"<{len(value):,} values>"
    return repr(value)


Row = TypeVar("Row")

SHOWN_ROWS = 20
"""The rows that a notebook shows."""
BEST_ROWS = 5
"""The rows of each query that a notebook shows, if there are several queries."""
_PLAIN_ROWS = 10
"""The rows that the plain form shows; a list of them is written on one line."""


class ResultList(list[Row]):
    """A list of named tuples, or of lists of them."""

    def __repr__(self) -> str:
        rows = [repr(row) for row in self[:_PLAIN_ROWS]]
        if len(self) > _PLAIN_ROWS:
            rows.append(f"... and {len(self) - _PLAIN_ROWS:,} more")
        return f"[{', '.join(rows)}]"

    @overload
    def __getitem__(self, place: SupportsIndex) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> ResultList[Row]: ...

    def __getitem__(self, place: SupportsIndex | slice) -> Row | ResultList[Row]:
        if isinstance(place, slice):
            return ResultList(super().__getitem__(place))
        return super().__getitem__(place)

    def _repr_html_(self) -> str:
        return output(rows_as_table(self, len(self)))


def rows_as_table(rows: Iterable[Any], number: int | None = None) -> str:
    """Return the first rows as a table, and a note of how many there are.

    rows: named tuples of one type, or lists of them, one for each query. number: of all rows, or None if
    it is unknown.
    """
    shown = list(islice(rows, SHOWN_ROWS + 1))
    if not shown:
        return note("no rows")
    first = shown[:SHOWN_ROWS]
    html = _of_queries(first) if isinstance(first[0], list) else _of_rows(first)
    if len(shown) == len(first):
        return html
    all_rows = "and there are more" if number is None else f"of {number:,}"
    return html + note(f"the first {SHOWN_ROWS} rows {all_rows}")


def _of_rows(rows: Sequence[Any]) -> str:
    return table(_columns(rows[0]), map(_values, rows))


def _of_queries(queries: Sequence[Sequence[Any]]) -> str:
    """Return the best rows of each query, with the place of the query from 0 on."""
    best_rows = [(place, row) for place, rows in enumerate(queries) for row in rows[:BEST_ROWS]]
    if not best_rows:
        return note(f"no rows for {count(len(queries), 'query', 'queries')}")
    columns = ["query", *_columns(best_rows[0][1])]
    more = sum(len(rows) > BEST_ROWS for rows in queries)
    html = table(columns, ([place, *_values(row)] for place, row in best_rows))
    return html + (note(f"the best {BEST_ROWS} rows of each query") if more else "")


def _columns(row: Any) -> list[str]:
    """Return the names of the fields, with the fields of a field that is a named tuple."""
    return [
        column
        for name, value in zip(row._fields, row, strict=True)
        for column in (_columns(value) if hasattr(value, "_fields") else [name])
    ]


def _values(row: Any) -> list[Any]:
    return [
        value for each in row for value in (_values(each) if hasattr(each, "_fields") else [each])
    ]
