"""The columns of a DataFrame with key, text, scope and rank, and the texts and refused rows in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import (
    Column,
    DataFrame,
    functions as F,  # noqa: N812 - the name that PySpark's users know
    types as T,  # noqa: N812
)

from textsim_db.errors import ConfigurationError, DocumentError, suggestion
from textsim_db.results import Refusal
from textsim_db.text.storable import (
    MAX_BYTES,
    MAX_KEY_BYTES,
    MAX_SCOPE_BYTES,
    stored_key,
    stored_scope,
    to_bytes,
)

_COMPARABLE = (
    T.NumericType,
    T.StringType,
    T.BooleanType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


class FrameColumns(NamedTuple):
    """The names of the columns with the key, the text and the scope."""

    key: str
    text: str
    scope: str | None = None
    """None if the documents have no scopes."""

    def check(self, frame: DataFrame) -> None:
        if not isinstance(frame, DataFrame):
            raise ConfigurationError(
                f"df has the type {type(frame).__name__}; expected a DataFrame of Spark, which "
                "spark.createDataFrame makes of a list or a frame of pandas"
            )
        _check_column(frame, "key", self.key, (T.StringType, T.IntegralType))
        _check_column(frame, "text", self.text, (T.StringType,))
        if self.scope is not None:
            _check_column(frame, "scope", self.scope, (T.DataType,))

    def key_column(self) -> Column:
        return F.col(quoted(self.key)).cast("string")

    def documents(self) -> list[Column]:
        """Return key, text and scope as texts; the scope is null if the documents have no scopes."""
        scope = F.lit(None) if self.scope is None else F.col(quoted(self.scope))
        return [
            self.key_column().alias("key"),
            F.col(quoted(self.text)).alias("text"),
            scope.cast("string").alias("scope"),
        ]

    def numbered(self, frame: DataFrame, rank: str | Column | None = None) -> DataFrame:
        """Return rows (key, text, scope, number, rank); the number is a hash of the key, of 64 bits."""
        rows = frame.select(
            *self.documents(),
            F.xxhash64(self.key_column()).alias("number"),
            _rank_column(frame, rank).alias("rank"),
        )
        kind = rows.schema["rank"].dataType
        if rank is not None and not isinstance(kind, _COMPARABLE):
            raise ConfigurationError(
                f"rank has the type {kind.simpleString()}; expected numbers, strings, dates or times"
            )
        return rows


def _rank_column(frame: DataFrame, rank: str | Column | None) -> Column:
    if rank is None:
        return F.lit(None).cast("int")
    if not isinstance(rank, str):
        return rank
    _check_column(frame, "rank", rank, (T.DataType,))
    return F.col(quoted(rank))


def _check_column(frame: DataFrame, option: str, name: str, types: tuple[Any, ...]) -> None:
    names = frame.columns
    there = [field for field in frame.schema.fields if field.name == name]
    if there and frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        there = [field for field in frame.schema.fields if field.name.lower() == name.lower()]
    if len(there) != 1:
        count = f"{len(there)} columns" if there else "no column"
        shown = ", ".join(f'"{column}"' for column in names[:8]) + (", ..." if names[8:] else "")
        near = "" if there else suggestion(name, names)
        raise ConfigurationError(
            f'{option}="{name}" names {count} of the DataFrame; expected one of {shown}{near}'
        )
    if not isinstance(there[0].dataType, types):
        expected = "strings" if option == "text" else "strings or integers"
        raise ConfigurationError(
            f'{option}="{name}" is a column of type {there[0].dataType.simpleString()}; expected '
            f'{expected}: cast the column, for example with col("{name}").cast("string")'
        )


def quoted(name: str) -> str:
    """Return the name of a column as an expression that means only this column."""
    return f"`{name.replace('`', '``')}`"


_MOST_BYTES = (MAX_KEY_BYTES, MAX_BYTES, MAX_SCOPE_BYTES)
"""The bytes that a key, a text and a scope may have."""
_CHECKS: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("key", stored_key),
    ("text", to_bytes),
    ("scope", stored_scope),
)
"""The names of the columns, and what raises DocumentError for a value that cannot be stored."""


class Accepted(NamedTuple):
    """The rows of a batch whose key, text and scope can be stored."""

    places: list[int]
    """The places of the rows in the batch."""
    keys: list[bytes]
    """In UTF-8."""
    texts: list[bytes]
    """In UTF-8."""
    scopes: list[str] | None
    """None if the corpus is not scoped."""
    refused: list[Refusal]


def accept(batch: pa.RecordBatch, is_scoped: bool) -> Accepted:
    """Return the documents of rows (key, text, scope, ...); refuse rows that a corpus would refuse.

    is_scoped: whether the scopes are read.
    """
    columns = batch.columns[: 3 if is_scoped else 2]
    data = [_as_bytes(column) for column in columns]
    values = [column.to_pylist() for column in data]
    places, refused = list(range(batch.num_rows)), list[Refusal]()
    if not (all(map(_is_plain, data, _MOST_BYTES)) and all(map(_is_utf8, columns))):
        places, refused = _check_rows(values)
        values = [[column[place] for place in places] for column in values]
    scopes = [scope.decode() for scope in values[2]] if is_scoped else None
    return Accepted(places, values[0], values[1], scopes, refused)


def _check_rows(values: list[list[bytes | None]]) -> tuple[list[int], list[Refusal]]:
    """Return the places of the rows that can be stored, and the other rows; values: by column."""
    places, refused = [], []
    for place, row in enumerate(zip(*values, strict=True)):
        try:
            for (name, check), value in zip(_CHECKS, row, strict=False):
                check(_decoded(value, name))
        except DocumentError as error:
            shown = "null" if row[0] is None else row[0].decode(errors="replace")[:1000]
            refused.append(Refusal(shown, str(error)))
        else:
            places.append(place)
    return places, refused


def _as_bytes(column: pa.Array) -> Any:
    is_large = pa.types.is_large_string(column.type)
    return column.cast(pa.large_binary() if is_large else pa.binary())


def _is_plain(column: pa.Array, most_bytes: int) -> bool:
    """Say whether no value is null, long, or has a NUL character, without looking at each value."""
    if column.null_count:
        return False
    wide = pa.types.is_large_binary(column.type)
    offsets = np.frombuffer(column.buffers()[1], np.int64 if wide else np.int32)
    offsets = offsets[column.offset : column.offset + len(column) + 1]
    if len(offsets) < 2 or np.diff(offsets).max() > most_bytes:
        return len(offsets) < 2
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    return bool(data.all())


def _is_utf8(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _decoded(data: bytes | None, what: str) -> str:
    if data is None:
        raise DocumentError(f"the {what} is null")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"the {what} is not UTF-8 at byte {error.start + 1}; correct its encoding"
        ) from None


def join_key(*columns: str | Column) -> Column:
    """Return the key of the row whose key columns are these columns.

    It is the key of `textsim_db.join_key`, and null if a column is null. Spark raises an error if a
    column is a timestamp, because its text depends on the time zone of the session.

    Args:
        columns: two or more columns with strings, integers or dates, in the order of `key_columns`.
    """
    slash = F.lit("/")
    first, *others = [_escaped(F.col(c) if isinstance(c, str) else c) for c in columns]
    return F.concat(first, *(each for other in others for each in (slash, other)))


def split_key(key: str | Column) -> Column:
    """Return the values that a key of several columns was joined from, as an array of strings.

    Args:
        key: the column with the keys.
    """
    return F.transform(
        F.split(key, "/", -1),
        lambda part: F.replace(F.replace(part, F.lit("~1"), F.lit("/")), F.lit("~0"), F.lit("~")),
    )


def _escaped(column: Column) -> Column:
    text = F.when(
        F.typeof(column).startswith("timestamp"),
        F.raise_error(
            F.lit("a key column is a timestamp; make it a string, such as 2026-11-25 09:30:00+00")
        ),
    ).otherwise(column.cast("string"))
    return F.replace(F.replace(text, F.lit("~"), F.lit("~0")), F.lit("/"), F.lit("~1"))
