"""Reads columns of data frames and of tables with the Arrow PyCapsule interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count, starmap
from numbers import Integral
from typing import Any, Protocol
from uuid import UUID

from textsim_db.errors import ConfigurationError, Misfit, install_extra, shown, suggestion
from textsim_db.text.storable import join_key

ROWS = 256
"""The rows of a table that become Python objects at once; a larger number takes more memory."""

ColumnNames = Mapping[str, str | list[str]]
"""The names of columns, by the arguments that give them: key, text and scope, which may have several."""

_PLAIN: dict[str, set[type]] = {"key": {str, int}, "text": {str}, "scope": {str, int}}
"""The types that most values of a column have."""


class ArrowTable(Protocol):
    """A table with the Arrow PyCapsule interface, such as a table of PyArrow, Polars or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def is_data_frame(value: Any) -> bool:
    """Return whether this is a data frame of pandas or Polars, which we read without PyArrow."""
    return (hasattr(value, "iloc") or hasattr(value, "get_column")) and hasattr(value, "columns")


def is_frame(value: Any) -> bool:
    """Return whether this is a frame; raise ConfigurationError, with the method, if it makes one."""
    if is_data_frame(value) or hasattr(value, "__arrow_c_stream__"):
        return True
    if method := frame_method(value):
        raise ConfigurationError(f"a {type(value).__name__} is no data frame; pass its {method}")
    return False


def frame_method(value: Any) -> str | None:
    """Return the method by which a lazy frame, a data set, or a frame of Spark becomes a data frame."""
    methods = {"collect_schema": ".collect()", "to_polars": ".to_polars()", "toArrow": ".toArrow()"}
    methods |= {"to_table": ".to_table()"}  # a data set of PyArrow
    return next((call for name, call in methods.items() if hasattr(type(value), name)), None)


def frame_rows(frame: Any, names: ColumnNames) -> Iterator[tuple[Any, ...]]:
    """Return a lazy iterator over the rows of a data frame or an Arrow table, with these columns.

    A null, or a value of a wrong type, is a Misfit. Raises ConfigurationError before the first row if
    a column is missing, if there is no PyArrow for an Arrow table, or if its texts are no strings.
    """
    pages = _frame_pages if is_data_frame(frame) else _arrow_pages
    return _rows(pages(frame, names), names)


def _rows(pages: Iterator[list[list[Any]]], names: ColumnNames) -> Iterator[tuple[Any, ...]]:
    row = 0
    for page in pages:
        marked: dict[str, list[list[Any]]] = {}
        for column, (option, name) in zip(page, each_column(names), strict=True):
            marked.setdefault(option, []).append(_mark_misfits(column, option, name, row))
        yield from zip(*starmap(_joined_columns, marked.values()), strict=True)
        row += len(page[0])


def _joined_columns(first: list[Any], *others: list[Any]) -> list[Any]:
    return first if not others else [*map(joined, first, *others)]


def joined(*values: Any) -> Any:
    """Return the values of several columns, joined as keys are, or the first value that does not fit."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, str | Integral | UUID):
            return value
    return join_key(*(int(value) if isinstance(value, Integral) else value for value in values))


def each_column(names: ColumnNames) -> Iterator[tuple[str, str]]:
    """Yield the names of all columns, each with its argument."""
    for option, name in names.items():
        for each in name if isinstance(name, list) else [name]:
            yield option, each


def _mark_misfits(values: list[Any], option: str, name: str, row: int) -> list[Any]:
    plain = _PLAIN.get(option)
    if plain is None or plain.issuperset(map(type, values)):
        return values
    fits: Any = str if option == "text" else str | Integral | UUID
    return [
        value
        if isinstance(value, fits) and not isinstance(value, bool)
        else Misfit(value, name, place)
        for value, place in zip(values, count(row))
    ]


def _frame_pages(frame: Any, names: ColumnNames) -> Iterator[list[list[Any]]]:
    columns = [frame[name] for name in checked_names(frame.columns, names)]
    slices = [getattr(column, "iloc", column) for column in columns]
    starts = range(0, len(frame), ROWS)
    return ([column[start : start + ROWS].to_list() for column in slices] for start in starts)


def _arrow_pages(table: Any, names: ColumnNames) -> Iterator[list[list[Any]]]:
    reader = open_stream(table)
    there = reader.schema.names
    numbers = [there.index(name) for name in checked_names(there, names)]
    check_texts(reader.schema, str(names["text"]))

    def pages() -> Iterator[list[list[Any]]]:
        for batch in reader:
            columns = [batch.column(number) for number in numbers]
            for start in range(0, batch.num_rows, ROWS):
                yield [column.slice(start, ROWS).to_pylist() for column in columns]

    return pages()


def open_stream(table: Any) -> Any:
    """Return a RecordBatchReader of a table; raise ConfigurationError if it has no rows."""
    pyarrow = import_pyarrow(table)
    try:
        return pyarrow.RecordBatchReader.from_stream(table)
    except pyarrow.ArrowException as error:
        fault = "expected a table with columns"
        if hasattr(table, "columns"):  # such as a column of pandas with strings and numbers
            fault = f"Arrow cannot hold its values: {', '.join(map(str, error.args))}"
        raise ConfigurationError(f"the frame is of type {type(table).__name__}; {fault}") from error


def import_pyarrow(value: object) -> Any:
    """Return the module pyarrow, which this value needs; raise ConfigurationError without it."""
    try:
        import pyarrow
    except ImportError:
        raise ConfigurationError(
            f"{type(value).__name__} needs PyArrow, which is not installed: "
            f"{install_extra('parquet')}"
        ) from None
    return pyarrow


def check_texts(schema: Any, text: str) -> None:
    """Raise ConfigurationError if the column of the texts has values of another type."""
    kind = schema.field(text).type
    if not has_strings(kind):
        name = shown(repr(text))
        cast = f": use a table with the column cast, table[{name}].cast('string')"
        way_out = cast if has_strings(kind, binary=True) else ""
        raise ConfigurationError(
            f"text={name} is a column of {kind}; expected a column of strings{way_out}"
        )


def has_strings(kind: Any, binary: bool = False) -> bool:
    """Return whether an Arrow type is one of strings, or of bytes if binary; nulls may be strings."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return has_strings(kind.value_type, binary)
    tests = [types.is_string, types.is_large_string, types.is_string_view, types.is_null]
    if binary:
        tests += [types.is_binary, types.is_large_binary, types.is_binary_view]
    return any(test(kind) for test in tests)


def checked_names(columns: Iterable[Any], names: ColumnNames) -> list[str]:
    """Return the names of columns; raise ConfigurationError unless exactly one column has each name."""
    there = list(columns)
    for option, name in each_column(names):
        if there.count(name) != 1:
            expected = ", ".join(shown(repr(column)[:40]) for column in there[:8]) or "none"
            ellipsis = ", ..." if len(there) > 8 else ""
            number = "no column" if name not in there else f"{there.count(name)} columns"
            near = "" if name in there else suggestion(str(name), map(str, there))
            raise ConfigurationError(
                f"{option}={name!r} names {number}; expected one of {expected}{ellipsis}{near}"
            )
    return [name for _, name in each_column(names)]
