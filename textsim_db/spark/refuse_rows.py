"""Rows of a DataFrame in; texts that can be compared, and the refused rows, out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from textsim_db.errors import DocumentError
from textsim_db.results import Refusal
from textsim_db.text.utf8 import MAX_BYTES, to_bytes
from textsim_db.write.prepare_batches import MAX_KEY_BYTES, stored_key


class Accepted(NamedTuple):
    """The rows of a batch whose key and text can be stored.

    places: their places in the batch; keys and texts: in UTF-8.
    """

    places: list[int]
    keys: list[bytes]
    texts: list[bytes]
    refused: list[Refusal]


def accept(key: pa.Array, text: pa.Array) -> Accepted:
    """Return the documents of two columns of texts; refuse rows that a corpus would refuse."""
    keys, texts = (_as_bytes(column) for column in (key, text))
    if (
        _is_plain(keys, MAX_KEY_BYTES)
        and _is_plain(texts, MAX_BYTES)
        and _is_utf8(key)
        and _is_utf8(text)
    ):
        return Accepted(list(range(len(keys))), keys.to_pylist(), texts.to_pylist(), [])
    accepted = Accepted([], [], [], [])
    for place, row in enumerate(zip(keys.to_pylist(), texts.to_pylist(), strict=True)):
        try:
            key_bytes, text_bytes = _check_key(row[0]), _check_text(row[1])
        except DocumentError as error:
            shown = "null" if row[0] is None else row[0].decode(errors="replace")[:1000]
            accepted.refused.append(Refusal(shown, str(error)))
        else:
            accepted.places.append(place)
            accepted.keys.append(key_bytes)
            accepted.texts.append(text_bytes)
    return accepted


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


def _check_key(key: bytes | None) -> bytes:
    if key is None:
        raise DocumentError("the key is null")
    return stored_key(_decoded(key, "key")).encode()


def _check_text(text: bytes | None) -> bytes:
    if text is None:
        raise DocumentError("the text is null")
    return to_bytes(_decoded(text, "text"))


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"the {what} is not UTF-8 at byte {error.start + 1}; correct its encoding"
        ) from None
