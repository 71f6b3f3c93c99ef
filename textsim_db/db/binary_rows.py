"""PostgreSQL's binary formats of many values at once: rows for COPY written, arrays read, by kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.text.arrays import ByteArray, Int32Array, Int64Array
from textsim_db.text.compiler import inlined_kernel, kernel
from textsim_db.text.utf8 import Utf8, concatenate, copy_span

COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"

_ARRAY_HEADER = 20
_ELEMENT = 8  # bytes of an element of int4[], with its length
_INT4 = 23


class Contents(NamedTuple):
    """What is stored of the documents of a batch.

    shingle_counts: (documents,); word_ids: those of all documents, and word_offsets: (documents +
    1,); signatures: (documents, num_hashes), stored for documents with shingles.
    """

    shingle_counts: Int64Array
    word_ids: Int32Array
    word_offsets: Int64Array
    signatures: Int32Array


class Identities(NamedTuple):
    """By what documents are found: (rows,) each. languages: None if they are not identified."""

    ids: Int64Array
    keys: Sequence[bytes]
    languages: Sequence[bytes] | None = None


class _Row(NamedTuple):
    """The fields of the rows that are not in Contents; a source of -1 is NULL, a language of "" too."""

    corpus_id: int
    source_id: int
    ids: Int64Array
    keys: Utf8
    languages: Utf8


def load_int4_arrays(parts: Sequence[bytes]) -> tuple[Int32Array, Int64Array]:
    """Read arrays as array_send gives them: all elements, and the offsets of shape (arrays + 1,)."""
    return _read_arrays(concatenate(parts))


@kernel
def _read_arrays(arrays: Utf8) -> tuple[Int32Array, Int64Array]:
    offsets = np.zeros(len(arrays.offsets), np.int64)
    for i in range(len(offsets) - 1):
        size = arrays.offsets[i + 1] - arrays.offsets[i]
        offsets[i + 1] = offsets[i] + max(size - _ARRAY_HEADER, 0) // _ELEMENT
    values = np.empty(offsets[-1], np.int32)
    for i in range(len(offsets) - 1):
        start = arrays.offsets[i] + _ARRAY_HEADER
        _read_elements(arrays.data, start, values, offsets[i], offsets[i + 1])
    return values, offsets


@inlined_kernel
def _read_elements(data: ByteArray, at: int, values: Int32Array, start: int, end: int) -> None:
    for k in range(start, end):
        values[k] = _read4(data, at + 4)
        at += _ELEMENT


@inlined_kernel
def _read4(data: ByteArray, at: int) -> np.int32:
    return np.int32(
        np.int32(data[at]) << 24
        | np.int32(data[at + 1]) << 16
        | np.int32(data[at + 2]) << 8
        | np.int32(data[at + 3])
    )


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
    identities: Identities,
    contents: Contents,
    chosen: Int64Array,
    source_id: int | None = None,
) -> ByteArray:
    """Return rows of textsim.document for COPY ... (FORMAT binary), without header and trailer.

    chosen: (rows,), which documents of the batch to write; source_id: the attached table that all of
    them come from.
    """
    ids, keys, languages = identities
    row = _Row(
        corpus_id,
        -1 if source_id is None else source_id,
        ids,
        concatenate(keys),
        concatenate([b""] * len(keys) if languages is None else languages),
    )
    return _write_documents(row, contents, chosen)


@kernel
def _write_documents(row: _Row, contents: Contents, chosen: Int64Array) -> ByteArray:
    # Two bytes for the number of fields, eight lengths, 4 + 4 + 8 + 4 bytes of numbers, two array
    # headers.
    fixed = 2 + 8 * 4 + 20 + 2 * _ARRAY_HEADER + _ELEMENT * contents.signatures.shape[1]
    size = len(row.keys.data) + len(row.languages.data) + fixed * len(chosen)
    for i in chosen:
        size += _ELEMENT * (contents.word_offsets[i + 1] - contents.word_offsets[i])
    out = np.empty(size, np.uint8)
    at = 0
    for k in range(len(chosen)):
        at = _write_identity(out, at, row, contents.shingle_counts[chosen[k]], k)
        at = _write_content(out, at, contents, chosen[k])
    return out[:at]


@inlined_kernel
def _write_identity(out: ByteArray, at: int, row: _Row, shingle_count: int, k: int) -> int:
    out[at] = 0
    out[at + 1] = 8
    at = _write_int4(out, at + 2, row.corpus_id)
    at = _write_int4(out, at, shingle_count)
    at = _write4(out, at, 8)
    at = _write4(out, at, row.ids[k] >> 32)
    at = _write4(out, at, row.ids[k])
    at = _write4(out, at, -1) if row.source_id < 0 else _write_int4(out, at, row.source_id)
    start, end = row.keys.offsets[k], row.keys.offsets[k + 1]
    at = _write4(out, at, end - start)
    at = copy_span(row.keys.data, start, end, out, at)
    start, end = row.languages.offsets[k], row.languages.offsets[k + 1]
    at = _write4(out, at, end - start if end > start else -1)
    return copy_span(row.languages.data, start, end, out, at)


@inlined_kernel
def _write_content(out: ByteArray, at: int, contents: Contents, i: int) -> int:
    start, end = contents.word_offsets[i], contents.word_offsets[i + 1]
    at = _write_array_header(out, at, end - start)
    for k in range(start, end):
        at = _write_int4(out, at, contents.word_ids[k])
    num_hashes = contents.signatures.shape[1] if contents.shingle_counts[i] else 0
    at = _write_array_header(out, at, num_hashes)
    for k in range(num_hashes):
        at = _write_int4(out, at, contents.signatures[i, k])
    return at


@inlined_kernel
def _write_array_header(out: ByteArray, at: int, elements: int) -> int:
    """Write the length of an int4[] and all that stands before its elements."""
    if elements == 0:
        at = _write4(out, at, 12)
        at = _write4(out, at, 0)
        at = _write4(out, at, 0)
        return _write4(out, at, _INT4)
    at = _write4(out, at, _ARRAY_HEADER + _ELEMENT * elements)
    at = _write4(out, at, 1)
    at = _write4(out, at, 0)
    at = _write4(out, at, _INT4)
    at = _write4(out, at, elements)
    return _write4(out, at, 1)


@inlined_kernel
def _write_int4(out: ByteArray, at: int, value: int) -> int:
    """Write a field, or an element, of type int4 with its length; return where the next one goes."""
    return _write4(out, _write4(out, at, 4), value)


@inlined_kernel
def _write4(out: ByteArray, at: int, value: int) -> int:
    number = np.int64(value)
    out[at] = (number >> 24) & 0xFF
    out[at + 1] = (number >> 16) & 0xFF
    out[at + 2] = (number >> 8) & 0xFF
    out[at + 3] = number & 0xFF
    return at + 4
