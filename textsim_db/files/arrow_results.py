"""Results: rows found in batches of columns, to iterate over or to pass on as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar, get_origin, get_type_hints

from textsim_db.files.read_frame import import_pyarrow
from textsim_db.results.html import output, rows_as_table

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
