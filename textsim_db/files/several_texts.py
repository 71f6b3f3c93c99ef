"""Several texts or documents: a list, a mapping, a column or a frame.

kind_of_texts() decides which texts are, and stream_documents() reads the documents of add_many.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum, auto
from itertools import chain
from typing import Any, NamedTuple

from textsim_db.errors import ConfigurationError, DocumentError, Misfit
from textsim_db.files.arrow_frames import (
    ArrowTable,
    ColumnNames,
    ResultColumns,
    Results,
    check_texts,
    checked_names,
    frame_method,
    frame_rows,
    has_strings,
    import_pyarrow,
    is_data_frame,
    is_frame,
    joined,
    open_stream,
)
from textsim_db.results import QueryMatch
from textsim_db.results.shown_values import shown
from textsim_db.settings.check_values import is_column, several_items
from textsim_db.text.storable import Key, Scope, is_null, wrong_value


class TextsKind(Enum):
    """The forms in which several texts are given."""

    LIST = auto()
    """Any iterable; the places of the texts name them, from 0 on."""
    MAPPING = auto()
    """Of keys to texts."""
    COLUMN = auto()
    """The index of a Series of pandas names the texts, and in any other column their places do."""
    FRAME = auto()
    """With a column of texts, and if its name is given one of keys."""


def kind_of_texts(texts: Any, function: str, text: str | None, key: str | None) -> TextsKind:
    """Say what the texts are given as; raise ConfigurationError if they are nothing of this.

    text and key name columns of a frame.
    """
    if not is_column(texts) and is_frame(texts):
        if text is None:
            raise ConfigurationError(
                f"text= is missing; a {type(texts).__name__} needs the name of its column of texts"
            )
        return TextsKind.FRAME
    several_items(texts, f"{function}() takes several texts, such as [text]")
    if text is not None or key is not None:
        raise ConfigurationError(
            f"text= and key= name columns of a frame; a {type(texts).__name__} has none"
        )
    if isinstance(texts, Mapping):
        return TextsKind.MAPPING
    if isinstance(texts, Set):
        raise ConfigurationError(
            f"{function}() takes texts in an order, such as [text]; it got a {type(texts).__name__}"
        )
    return TextsKind.COLUMN if is_column(texts) else TextsKind.LIST


class KeyedTexts(NamedTuple):
    """Texts and their keys, in one order."""

    keys: Sequence[Any]
    """By number: the key."""
    texts: Iterable[Any]

    def name_of(self, number: int) -> str:
        return f"text {self.keys[number]!r:.100}"


def keyed_texts(
    texts: Any, function: str, text: str | None, key: str | None, *, are_ranked: bool = False
) -> KeyedTexts:
    """Return texts with their keys, in the order of the keys; without keys, their places are the keys.

    are_ranked: whether the texts stay in their own order.
    """
    kind = kind_of_texts(texts, function, text, key)
    if kind is TextsKind.FRAME:
        names = {"text": str(text)} | ({} if key is None else {"key": key})
        rows = frame_rows(texts, names)
        if key is None:
            return KeyedTexts(range(2**31), (row[0] for row in rows))
        return _with_unique_keys([(row[1], row[0]) for row in rows], f"key={key!r}", are_ranked)
    if kind is TextsKind.MAPPING:
        return _with_unique_keys(list(texts.items()), "the mapping", are_ranked)
    items = several_items(texts, function)
    if (index := _index(texts)) is None:
        return KeyedTexts(range(2**31), items)
    return _with_unique_keys(
        list(zip(index.to_list(), items, strict=True)), "the index", are_ranked
    )


def _index(texts: Any) -> Any:
    """Return the index of a Series of pandas; None for any other texts."""
    return texts.index if is_column(texts) and hasattr(texts, "iloc") else None


def _with_unique_keys(
    documents: list[tuple[Any, Any]], keys_from: str, are_ranked: bool
) -> KeyedTexts:
    rows: dict[Any, int] = {}
    for row, (key, _) in enumerate(documents):
        if isinstance(key, Misfit) or is_null(key):
            raise wrong_value(key, "key", "str, an integer or a UUID")
        if (first := rows.setdefault(key, row)) != row:
            raise ConfigurationError(
                f"{keys_from} names texts {first} and {row} alike, {shown(repr(key)[:40])}; expected "
                "unique keys"
            )
    try:
        keys = list(rows) if are_ranked else sorted(rows)
    except TypeError as error:
        raise ConfigurationError(
            f"the keys have no order, which must be all texts or all integers: {error}"
        ) from error
    return KeyedTexts(keys, (documents[rows[key]][1] for key in keys))


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


def query_texts(texts: Any, kind: TextsKind, text: str | None, key: str | None) -> QueryTexts:
    """Read a column of texts, or a frame with a column `text`, whose column `key` names the rows."""
    if kind is TextsKind.COLUMN:
        index = _index(texts)
        keys = None if index is None else _keys_of(import_pyarrow(texts), index)
        return QueryTexts(list(several_items(texts, "")), "", keys)
    table = _columns(texts, {"text": str(text)} | ({} if key is None else {"key": key}))
    listed = table.column(0).to_pylist()
    if key is None:
        return QueryTexts(listed, str(text))
    return QueryTexts(listed, str(text), _named(table.column(1).combine_chunks(), key))


def _keys_of(pyarrow: Any, index: Any) -> Any:
    try:
        return _named(pyarrow.array(index.to_list(), from_pandas=True), "the index")
    except pyarrow.ArrowException as error:
        raise ConfigurationError(f"Arrow cannot hold the index of the texts: {error}") from error


def _named(keys: Any, column: str) -> Any:
    """Return keys that name rows; raise DocumentError if one is null."""
    if keys.null_count:
        row = keys.is_null().index(True).as_py()
        raise DocumentError(f'column "{shown(column)}", row {row}: the key is null')
    if has_strings(keys.type):  # PyArrow takes no rows of a string_view, which Polars has
        pyarrow = import_pyarrow(keys)
        return pyarrow.array(keys.to_pylist(), pyarrow.large_string())
    return keys


def _columns(frame: Any, names: ColumnNames) -> Any:
    pyarrow = import_pyarrow(frame)
    if is_data_frame(frame):
        # Other columns may have values that Arrow has no type for.
        frame = frame[list(dict.fromkeys(checked_names(frame.columns, names)))]
    reader = open_stream(frame)
    wanted = checked_names(reader.schema.names, names)
    check_texts(reader.schema, wanted[0])
    schema = pyarrow.schema([reader.schema.field(name) for name in wanted])
    return pyarrow.Table.from_batches([batch.select(wanted) for batch in reader], schema)


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
