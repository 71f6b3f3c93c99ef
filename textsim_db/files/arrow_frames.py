"""Reads columns of data frames and of Arrow tables, and returns results as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from itertools import count, starmap
from numbers import Integral
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, get_origin, get_type_hints
from uuid import UUID

from textsim_db.errors import ConfigurationError, Misfit, needs_extra, suggestion
from textsim_db.results.html import output, rows_as_table
from textsim_db.results.shown_values import shown
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
    with needs_extra("parquet", f"{type(value).__name__} needs PyArrow, which is not installed"):
        import pyarrow
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


ResultColumns = Sequence[Any]
"""The columns of some rows, each a sequence or a pyarrow.Array, in the order of the fields of a row."""

ResultRow = TypeVar("ResultRow", bound=NamedTuple, covariant=True)


def columns_of(row: type[NamedTuple], rows: Sequence[Any]) -> ResultColumns:
    return list(zip(*rows, strict=True)) if rows else [()] * len(row._fields)


class Results(Generator[ResultRow, None, None], Generic[ResultRow]):
    """The rows that a method found: an iterator of named tuples, and an Arrow table.

    `polars.DataFrame(results)`, `pyarrow.table(results)`, `duckdb.from_arrow(results)` and
    `pandas.DataFrame.from_arrow(results)` (pandas 3) read it by the Arrow PyCapsule interface, which
    needs PyArrow. Its columns are the fields of the tuples, and no tuple is made. An error of the search
    is then an error of the library; to_arrow() raises the errors of the method itself.

    Rows are found while they are read. Iteration yields each row once. Each table that is made reads
    the corpus anew, and has all rows. A notebook shows the first rows, which it reads anew, too.
    """

    def __init__(
        self,
        row: type[ResultRow],
        find: Callable[[], Generator[ResultColumns, None, None]],
        types: Mapping[str, Any] | None = None,
    ) -> None:
        """find: begins to find the rows; types: the Arrow types of fields that are Any."""
        self._row = row
        self._find = find
        self._types = types or {}
        self._rows = rows_of(row, find)

    def __repr__(self) -> str:
        return f"<Results of {self._row.__name__}>"

    def _repr_html_(self) -> str:
        return output(self.rows_as_table())

    def rows_as_table(self, number: int | None = None) -> str:
        """Return the first rows as HTML; they are found anew, so that iteration loses no row."""
        with closing(rows_of(self._row, self._find)) as rows:
            return rows_as_table(rows, number)

    def __next__(self) -> ResultRow:
        return next(self._rows)

    def send(self, value: None) -> ResultRow:
        return self._rows.send(value)

    def throw(self, typ: Any, val: object = None, tb: TracebackType | None = None) -> ResultRow:
        return self._rows.throw(typ, val, tb) if val or tb else self._rows.throw(typ)

    def close(self) -> None:
        self._rows.close()

    def to_arrow(self) -> Any:
        """Return the rows as a pyarrow.Table.

        Raises:
            ConfigurationError: PyArrow is not installed.
        """
        pyarrow = import_pyarrow(self)
        schema = self._schema()
        return pyarrow.Table.from_batches(self._batches(schema), schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream of the Arrow PyCapsule interface."""
        pyarrow = import_pyarrow(self)
        schema = self._schema()
        reader = pyarrow.RecordBatchReader.from_batches(schema, self._batches(schema))
        return reader.__arrow_c_stream__(requested_schema)

    def _schema(self) -> Any:
        import pyarrow

        def of_hint(hint: Any) -> Any:
            if hint in (float, float | None):
                return pyarrow.float64()
            if hint is bool:
                return pyarrow.bool_()
            if hint is int:
                return pyarrow.int64()
            if hint is datetime:
                return pyarrow.timestamp("us", "UTC")
            # The keys of stored documents are texts.
            return (
                pyarrow.list_(pyarrow.string()) if get_origin(hint) is tuple else pyarrow.string()
            )

        hints = get_type_hints(self._row)
        names = self._row._fields
        return pyarrow.schema(
            [(name, self._types.get(name) or of_hint(hints[name])) for name in names]
        )

    def _batches(self, schema: Any) -> Iterable[Any]:
        import pyarrow

        with closing(self._find()) as chunks:
            for columns in chunks:
                arrays = [
                    column if _is_arrow(column) else pyarrow.array(column, field.type)
                    for column, field in zip(columns, schema, strict=True)
                ]
                yield pyarrow.record_batch(arrays, schema=schema)


def rows_of(
    row: type[ResultRow], find: Callable[[], Generator[ResultColumns, None, None]]
) -> Generator[ResultRow, None, None]:
    with closing(find()) as chunks:
        for columns in chunks:
            values = [column.to_pylist() if _is_arrow(column) else column for column in columns]
            yield from map(row._make, zip(*values, strict=True))


def _is_arrow(column: Any) -> bool:
    return hasattr(column, "to_pylist")
