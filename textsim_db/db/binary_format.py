"""PostgreSQL's binary formats, made from and read into NumPy arrays.

Everything is built here and not by psycopg's own adapters: of its two builds, the C one wraps
integers that do not fit where the Python one raises, and both handle one value at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from textsim_db.text.compiler import kernel

COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"

_INT2, _INT4, _INT8 = 21, 23, 20
_ARRAY_OIDS = {_INT2: 1005, _INT4: 1007, _INT8: 1016}
_ELEMENTS = {np.dtype(np.int16): _INT2, np.dtype(np.int32): _INT4, np.dtype(np.int64): _INT8}
_ARRAY_HEADER = 20


class Array:
    """A NumPy array of int16, int32 or int64 as a parameter of type int2[], int4[] or int8[]."""

    __slots__ = ("values",)

    def __init__(self, values: npt.NDArray[Any]) -> None:
        if values.dtype not in _ELEMENTS:
            raise TypeError(f"an array of {values.dtype} has no type in PostgreSQL here")
        self.values = values

    @property
    def oid(self) -> int:
        """The number of its type in PostgreSQL."""
        return _ARRAY_OIDS[_ELEMENTS[self.values.dtype]]

    def dump(self) -> bytes:
        """Return it in the format of array_send."""
        return dump_array(self.values)


def dump_array(values: npt.NDArray[Any]) -> bytes:
    """Return a one-dimensional array in the format of array_send."""
    element = _ELEMENTS[values.dtype]
    if not len(values):
        return np.array([0, 0, element], ">i4").tobytes()
    header = np.array([1, 0, element, len(values), 1], ">i4")
    rows = np.empty(len(values), [("length", ">i4"), ("value", values.dtype.newbyteorder(">"))])
    rows["length"] = values.dtype.itemsize
    rows["value"] = values
    return header.tobytes() + rows.tobytes()


def load_int4_array(data: bytes) -> npt.NDArray[np.int32]:
    """Read what array_send gives for an int4[] without NULLs: int32 of shape (elements,)."""
    return np.frombuffer(data, ">i4", offset=min(_ARRAY_HEADER, len(data)))[1::2].astype(np.int32)


def load_int4_arrays(parts: Sequence[bytes]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Read several of them: all elements, and the offsets of shape (arrays + 1,)."""
    ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
    return _read_arrays(np.frombuffer(b"".join(parts), np.uint8), ends)


@kernel
def _read_arrays(
    data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    offsets = np.zeros(len(ends) + 1, np.int64)
    start = 0
    for i in range(len(ends)):
        offsets[i + 1] = offsets[i] + max(ends[i] - start - 20, 0) // 8
        start = ends[i]
    values = np.empty(offsets[-1], np.int32)
    start = 0
    for i in range(len(ends)):
        at = start + 24
        for k in range(offsets[i], offsets[i + 1]):
            values[k] = (
                np.int32(data[at]) << 24
                | np.int32(data[at + 1]) << 16
                | np.int32(data[at + 2]) << 8
                | np.int32(data[at + 3])
            )
            at += 8
        start = ends[i]
    return values, offsets


def copy_bands(
    corpus_id: int,
    bands: npt.NDArray[np.int16],
    buckets: npt.NDArray[np.int64],
    document_ids: npt.NDArray[np.int64],
) -> bytes:
    """Return rows of textsim.band for COPY ... (FORMAT binary), without header and trailer.

    All three arrays have the shape (rows,).
    """
    fields = [
        ("fields", ">i2"),
        ("l0", ">i4"),
        ("corpus_id", ">i4"),
        ("l1", ">i4"),
        ("band", ">i2"),
        ("l2", ">i4"),
        ("bucket", ">i8"),
        ("l3", ">i4"),
        ("document_id", ">i8"),
    ]
    first = np.zeros(1, fields)
    first["fields"], first["l0"], first["l1"], first["l2"], first["l3"] = 4, 4, 2, 8, 8
    first["corpus_id"] = corpus_id
    rows = np.repeat(first, len(bands))
    rows["band"] = bands
    rows["bucket"] = buckets
    rows["document_id"] = document_ids
    return rows.tobytes()


def copy_documents(
    corpus_id: int,
    ids: npt.NDArray[np.int64],
    keys: Sequence[bytes],
    shingle_counts: npt.NDArray[np.int64],
    word_ids: npt.NDArray[np.int32],
    word_offsets: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.int64],
    signatures: npt.NDArray[np.int32],
    source_id: int | None = None,
    languages: Sequence[bytes] | None = None,
) -> npt.NDArray[np.uint8]:
    """Return rows of textsim.document for COPY ... (FORMAT binary), without header and trailer.

    chosen: (rows,), which documents of the batch to write; ids, keys and languages belong to the
    rows, shingle_counts, word_offsets (documents + 1,) and signatures to the batch; source_id is the
    attached table that all of them come from.
    """
    return _write_documents(
        corpus_id,
        ids,
        *_joined(keys),
        *_joined([b""] * len(keys) if languages is None else languages),
        shingle_counts,
        word_ids,
        word_offsets,
        chosen,
        signatures,
        -1 if source_id is None else source_id,
    )


def _joined(parts: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets


@kernel
def _put4(out: npt.NDArray[np.uint8], at: int, value: int | np.int64) -> int:
    out[at] = (value >> 24) & 0xFF
    out[at + 1] = (value >> 16) & 0xFF
    out[at + 2] = (value >> 8) & 0xFF
    out[at + 3] = value & 0xFF
    return at + 4


@kernel
def _put_int4_array(
    out: npt.NDArray[np.uint8], at: int, values: npt.NDArray[np.int32], start: int, end: int
) -> int:
    if end == start:
        at = _put4(out, at, 12)
        at = _put4(out, at, 0)
        at = _put4(out, at, 0)
        return _put4(out, at, 23)
    at = _put4(out, at, 20 + 8 * (end - start))
    at = _put4(out, at, 1)
    at = _put4(out, at, 0)
    at = _put4(out, at, 23)
    at = _put4(out, at, end - start)
    at = _put4(out, at, 1)
    for k in range(start, end):
        at = _put4(out, at, 4)
        at = _put4(out, at, np.int64(values[k]))
    return at


@kernel
def _write_documents(
    corpus_id: int,
    ids: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint8],
    key_offsets: npt.NDArray[np.int64],
    languages: npt.NDArray[np.uint8],
    language_offsets: npt.NDArray[np.int64],
    shingle_counts: npt.NDArray[np.int64],
    word_ids: npt.NDArray[np.int32],
    word_offsets: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.int64],
    signatures: npt.NDArray[np.int32],
    source_id: int,
) -> npt.NDArray[np.uint8]:
    # Two bytes for the number of fields, eight lengths, 4 + 4 + 8 + 4 bytes of numbers, two array
    # headers.
    fixed = 2 + 8 * 4 + 20 + 2 * 20
    size = len(keys) + len(languages)
    num_hashes = signatures.shape[1]
    for i in chosen:
        size += fixed + 8 * (word_offsets[i + 1] - word_offsets[i]) + 8 * num_hashes
    out = np.empty(size, np.uint8)
    at = 0
    for row in range(len(chosen)):
        i = chosen[row]
        out[at] = 0
        out[at + 1] = 8
        at = _put4(out, at + 2, 4)
        at = _put4(out, at, corpus_id)
        at = _put4(out, at, 4)
        at = _put4(out, at, shingle_counts[i])
        at = _put4(out, at, 8)
        at = _put4(out, at, ids[row] >> 32)
        at = _put4(out, at, ids[row])
        if source_id < 0:
            at = _put4(out, at, -1)
        else:
            at = _put4(out, at, 4)
            at = _put4(out, at, source_id)
        at = _put4(out, at, key_offsets[row + 1] - key_offsets[row])
        for k in range(key_offsets[row], key_offsets[row + 1]):
            out[at] = keys[k]
            at += 1
        length = language_offsets[row + 1] - language_offsets[row]
        at = _put4(out, at, length if length else -1)
        for k in range(language_offsets[row], language_offsets[row + 1]):
            out[at] = languages[k]
            at += 1
        at = _put_int4_array(out, at, word_ids, word_offsets[i], word_offsets[i + 1])
        at = _put_int4_array(out, at, signatures[i], 0, num_hashes if shingle_counts[i] else 0)
    return out[:at]
