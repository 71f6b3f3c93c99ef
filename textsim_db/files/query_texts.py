"""QueryTexts: the texts of a frame or of a column, and the values that name its rows in a result."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from textsim_db.errors import ConfigurationError, DocumentError, shown
from textsim_db.files.arrow_results import ResultColumns, Results
from textsim_db.files.read_frame import (
    ColumnNames,
    check_texts,
    checked_names,
    has_strings,
    import_pyarrow,
    is_data_frame,
    open_stream,
)
from textsim_db.results import QueryMatch


class QueryTexts(NamedTuple):
    """Texts to search for, each in a row."""

    texts: Sequence[Any]
    column: str
    """The name of the column of texts, or ""."""
    keys: Any = None
    """The pyarrow.Array that names the rows; None: their places do."""

    def place(self, row: int) -> str:
        return (f'column "{shown(self.column)}", ' if self.column else "") + f"row {row}"

    def results(
        self, rows: list[int], keys: list[str], similarities: list[float]
    ) -> Results[QueryMatch]:
        """Return matches as rows (query, key, similarity); rows: the row of the text of each match."""
        pyarrow = import_pyarrow(self)
        names = pyarrow.array(rows, pyarrow.int64())
        if self.keys is not None:
            names = self.keys.take(names)

        def find() -> Generator[ResultColumns, None, None]:
            yield names, keys, similarities

        return Results(QueryMatch, find, {"query": names.type})


def is_column(value: Any) -> bool:
    return _to_list(value) is not None and not hasattr(value, "columns")


def query_texts(frame: Any, text: str | None, key: str | None) -> QueryTexts:
    """Read a column of texts, or a frame with a column `text`, whose column `key` names the rows."""
    if is_column(frame):
        if text is not None or key is not None:
            raise ConfigurationError(
                f"a {type(frame).__name__} is one column; leave out text= and key="
            )
        return QueryTexts(list(_to_list(frame)()), "")
    if text is None:
        raise ConfigurationError(
            f"text= is missing; a {type(frame).__name__} needs the name of its column of texts"
        )
    table = _columns(frame, {"text": text} | ({} if key is None else {"key": key}))
    texts = table.column(0).to_pylist()
    if key is None:
        return QueryTexts(texts, text)
    keys = table.column(1).combine_chunks()
    if keys.null_count:
        row = keys.is_null().index(True).as_py()
        raise DocumentError(f'column "{shown(key)}", row {row}: the key is null')
    if has_strings(keys.type):  # PyArrow takes no rows of a string_view, which Polars has
        pyarrow = import_pyarrow(frame)
        keys = pyarrow.array(keys.to_pylist(), pyarrow.large_string())
    return QueryTexts(texts, text, keys)


def _to_list(value: Any) -> Any:
    return getattr(value, "to_list", None) or getattr(value, "to_pylist", None)


def _columns(frame: Any, names: ColumnNames) -> Any:
    """Return columns of a frame as a pyarrow.Table."""
    pyarrow = import_pyarrow(frame)
    if is_data_frame(frame):
        # Other columns may have values that Arrow has no type for.
        frame = frame[list(dict.fromkeys(checked_names(frame.columns, names)))]
    reader = open_stream(frame)
    wanted = checked_names(reader.schema.names, names)
    check_texts(reader.schema, names["text"])
    schema = pyarrow.schema([reader.schema.field(name) for name in wanted])
    return pyarrow.Table.from_batches([batch.select(wanted) for batch in reader], schema)
