"""Turns the inputs of add_many into a stream of documents: pairs, mappings, records, tables; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol
from uuid import UUID

from textsim_db.errors import ConfigurationError, shown, suggestion

Key = str | int | UUID
"""The types of a key; a key is stored as its text."""

Scope = str | int | UUID
"""The types of a scope; a scope is stored as its text."""

ROWS = 256
"""The rows of a table that become Python objects at once; a larger number takes more memory."""

_BYTES = bytes | bytearray | memoryview

Names = Mapping[str, str]
"""The names of the columns of keys, texts and scopes, by the arguments that give them."""


class ArrowTable(Protocol):
    """A table with the Arrow PyCapsule interface, such as a table of PyArrow, Polars or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Documents = (
    Iterable[tuple[Key, str] | tuple[Key, str, Scope | None]]
    | Iterable[Mapping[str, Any]]
    | Mapping[Any, str]
    | ArrowTable
)


def stream_documents(
    documents: Any, key: str | None, text: str | None, scope: str | None = None
) -> Iterator[Any]:
    """Return a lazy iterator over the documents as (key, text), or as (key, text, scope).

    key, text and scope name columns of a table, or members of records. Without them the documents are
    pairs, triples or a mapping. Raises ConfigurationError for other inputs, before any document is
    stored.
    """
    if key is None and text is None and scope is None:
        return _pairs(documents)
    if key is None or text is None:
        missing = "key" if key is None else "text"
        raise ConfigurationError(f"{missing}= is missing; give both key= and text=, or neither")
    names = {"key": key, "text": text} | ({} if scope is None else {"scope": scope})
    if _is_frame(documents):
        return _rows(_frame_pages(documents, _checked(documents.columns, names)))
    if hasattr(documents, "__arrow_c_stream__"):
        return _rows(_arrow_pages(_arrow_reader(documents), names))
    return _records(documents, names)


def _pairs(documents: Any) -> Iterator[Any]:
    if isinstance(documents, Mapping):
        return iter(documents.items())
    if _is_frame(documents) or hasattr(documents, "__arrow_c_stream__"):
        raise _unexpected(documents)
    first, items = _begin(documents)
    if isinstance(first, str | Mapping | _BYTES):
        raise _unexpected(documents, first)
    return items


def _records(documents: Any, names: Names) -> Iterator[Any]:
    if isinstance(documents, Mapping):
        raise _unexpected(documents)
    first, items = _begin(documents)
    if first is not _NOTHING:
        if not isinstance(first, Mapping):
            raise _unexpected(documents, first)
        _checked(first, names)
    # A record without a member yields None in its place. prepare() refuses None as key and as text.
    columns = tuple(names.values())
    return (tuple(map(item.get, columns)) if isinstance(item, Mapping) else item for item in items)


_NOTHING = object()


def _begin(documents: Any) -> tuple[Any, Iterator[Any]]:
    """Return the first item and an iterator over all of them."""
    if isinstance(documents, str | _BYTES):
        raise _unexpected(documents)
    try:
        items = iter(documents)
    except TypeError:
        raise _unexpected(documents) from None
    for first in items:
        return first, chain([first], items)
    return _NOTHING, items


def _is_frame(documents: Any) -> bool:
    """Return whether this is a data frame of pandas or Polars, which we read without PyArrow."""
    return hasattr(documents, "columns") and (
        hasattr(documents, "iloc") or hasattr(documents, "get_column")
    )


def _frame_pages(frame: Any, names: Sequence[str]) -> Iterator[list[list[Any]]]:
    columns = [frame[name] for name in names]
    slices = [getattr(column, "iloc", column) for column in columns]
    for start in range(0, len(frame), ROWS):
        yield [column[start : start + ROWS].to_list() for column in slices]


def _arrow_reader(table: ArrowTable) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ConfigurationError(
            f"documents of type {type(table).__name__} need PyArrow: pip install pyarrow"
        ) from None
    try:
        return pyarrow.RecordBatchReader.from_stream(table)
    except pyarrow.ArrowInvalid:  # a stream of values and not of rows
        raise _unexpected(table) from None


def _arrow_pages(reader: Any, names: Names) -> Iterator[list[list[Any]]]:
    numbers = [reader.schema.names.index(name) for name in _checked(reader.schema.names, names)]

    def pages() -> Iterator[list[list[Any]]]:
        for batch in reader:
            columns = [batch.column(number) for number in numbers]
            for start in range(0, batch.num_rows, ROWS):
                yield [column.slice(start, ROWS).to_pylist() for column in columns]

    return pages()


def _rows(pages: Iterator[list[list[Any]]]) -> Iterator[Any]:
    return chain.from_iterable(zip(*page, strict=True) for page in pages)


def _checked(columns: Iterable[Any], names: Names) -> list[str]:
    """Return the names of columns; raise ConfigurationError unless exactly one column has each name."""
    there = list(columns)
    for option, name in names.items():
        if there.count(name) != 1:
            expected = ", ".join(shown(repr(column)[:40]) for column in there[:8]) or "none"
            ellipsis = ", ..." if len(there) > 8 else ""
            count = "no column" if name not in there else f"{there.count(name)} columns"
            near = "" if name in there else suggestion(str(name), map(str, there))
            raise ConfigurationError(
                f"{option}={name!r} names {count} of the documents; expected one of "
                f"{expected}{ellipsis}{near}"
            )
    return [*names.values()]


def _unexpected(documents: Any, first: object = _NOTHING) -> ConfigurationError:
    items = "" if first is _NOTHING else f" with items of type {type(first).__name__}"
    return ConfigurationError(
        f"the documents are of type {type(documents).__name__}{items}; expected pairs of key and text "
        "such as zip(keys, texts), a mapping of key to text, or a table or records with key= and "
        "text=, the names of two columns"
    )
