"""Lists of results, which show themselves as a table in a notebook, and in a few lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, SupportsIndex, TypeVar, overload

from textsim_db.results.html import count, note, output, table

_MOST_VALUES = 10
"""The values of a list that are shown."""


def short_repr(owner: object, fields: Iterable[str]) -> str:
    """Return Name(field=value, ...), with a number in the place of a long list."""
    values = ", ".join(f"{name}={_shortened(getattr(owner, name))}" for name in fields)
    return f"{type(owner).__name__}({values})"


def _shortened(value: Any) -> str:
    if isinstance(value, list | tuple | dict) and len(value) > _MOST_VALUES:
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
        """Return the form of a list, with the number of rows that are left out."""
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
