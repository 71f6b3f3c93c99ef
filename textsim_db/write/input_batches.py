"""Turns the inputs of add_many into a stream of documents, cut into batches; pure, without kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from textsim_db.base.run_ahead import cut
from textsim_db.errors import ConfigurationError
from textsim_db.files.read_frame import (
    ArrowTable,
    ColumnNames,
    checked_names,
    frame_method,
    frame_rows,
    is_data_frame,
    joined,
)
from textsim_db.settings.check_values import several_items
from textsim_db.text.storable import Key, Scope

_BYTES = bytes | bytearray | memoryview

Documents = (
    Iterable[tuple[Key, str] | tuple[Key, str, Scope | None]]
    | Iterable[Mapping[str, Any]]
    | Mapping[Any, str]
    | ArrowTable
)


def stream_documents(
    documents: Any, key: str | None, text: str | None, scope: str | list[str] | None = None
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
    names: dict[str, str | list[str]] = {"key": key, "text": text}
    if scope is not None:
        names["scope"] = scope
    if is_data_frame(documents) or hasattr(documents, "__arrow_c_stream__"):
        return frame_rows(documents, names)
    return _records(documents, names)


def _pairs(documents: Any) -> Iterator[Any]:
    if isinstance(documents, Mapping):
        return iter(documents.items())
    if is_data_frame(documents) or hasattr(documents, "__arrow_c_stream__"):
        raise _unexpected(documents)
    first, items = _begin(documents)
    if isinstance(first, str | Mapping | _BYTES):
        raise _unexpected(documents, first)
    return items


def _records(documents: Any, names: ColumnNames) -> Iterator[Any]:
    if isinstance(documents, Mapping):
        raise _unexpected(documents)
    first, items = _begin(documents)
    if first is not _NOTHING:
        if not isinstance(first, Mapping):
            raise _unexpected(documents, first)
        checked_names(first, names)
    # A record without a member yields None in its place. prepare() refuses None as key and as text.
    columns = [*names.values()]

    def row(item: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(
            joined(*map(item.get, name)) if isinstance(name, list) else item.get(name)
            for name in columns
        )

    return (row(item) if isinstance(item, Mapping) else item for item in items)


_NOTHING = object()


def _begin(documents: Any) -> tuple[Any, Iterator[Any]]:
    try:
        items = iter(several_items(documents, ""))
    except ConfigurationError:
        raise _unexpected(documents) from None
    for first in items:
        return first, chain([first], items)
    return _NOTHING, items


def _unexpected(documents: Any, first: object = _NOTHING) -> ConfigurationError:
    items = "" if first is _NOTHING else f" with items of type {type(first).__name__}"
    method = frame_method(documents)
    return ConfigurationError(
        f"the documents are of type {type(documents).__name__}{items}; expected pairs of key and text "
        "such as zip(keys, texts), a mapping of key to text, or a table or records with key= and "
        "text=, the names of two columns" + (f": pass its {method}" if method else "")
    )


BATCH_DOCUMENTS = 5000
"""Documents of a batch. Larger batches need more memory, and a load starts and ends more slowly."""


def in_batches(documents: Iterable[Any]) -> Iterator[list[Any]]:
    """Cut a stream of documents into lists, by number of documents and of characters."""
    return cut(documents, BATCH_DOCUMENTS, length_of)


def length_of(item: Any) -> int:
    try:
        return len(item[1])
    except (TypeError, IndexError, KeyError):  # refused when the batch is prepared
        return 0
