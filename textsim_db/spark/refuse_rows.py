"""Rows of a DataFrame in; texts that can be compared, and the refused rows, out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from textsim_db.errors import DocumentError
from textsim_db.results import Refusal
from textsim_db.text.storable_text import MAX_BYTES, to_bytes
from textsim_db.write.storable_keys import MAX_KEY_BYTES, MAX_SCOPE_BYTES, stored_key, stored_scope

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
