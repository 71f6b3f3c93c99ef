"""Kernels for PostgreSQL's binary formats: write rows for COPY, and read many arrays at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import (
    ByteArray,
    Int16Array,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
    store64,
)
from textsim_db.db.binary_format import ARRAY_HEADER, INT2, INT4, Parameter, array, load_int8_array
from textsim_db.errors import DatabaseError
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.sketch.exact_prefix import CommonValues, common_values
from textsim_db.sketch.ragged import Ragged, Signatures
from textsim_db.text.utf8 import Utf8, concatenate, copy_span

COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"

_LENGTH = 4
_TEXT = 25
"""The oid of text, in pg_type."""
_BAND_ROW = 18
_FIELDS = 12
"""The columns of a document."""
_TWO, _FOUR = np.uint64(2 << 24), np.uint64(4 << 24)
"""The length of an int2 and of an int4, as PostgreSQL writes it: the highest byte first."""
_HALF = np.uint64(32)
_SURPLUS = 8
"""Bytes after a value that its eight-byte store may overwrite."""


class Contents(NamedTuple):
    shingle_counts: Int64Array
    """(documents,)."""
    word_ids: Int32Array
    """The word ids of all documents."""
    word_offsets: Int64Array
    """The bounds of each document in word_ids: (documents + 1,), or (0,) if forms are stored."""
    forms: Utf8
    """The normal forms of documents without word ids; its offsets are (0,) if word ids are stored."""
    signatures: npt.NDArray[Any]
    """The signatures of all documents, int16 or int32."""
    signature_offsets: Int64Array
    """The bounds of each document in signatures: (documents + 1,)."""
    fingerprints: Int32Array = np.empty(0, np.int32)
    """The fingerprints of all documents."""
    fingerprint_offsets: Int64Array = np.empty(0, np.int64)
    """The bounds of each document in fingerprints: (documents + 1,), or (0,) without passages."""
    guards: Int64Array = np.empty(0, np.int64)
    """The guard of each document: (documents,), or (0,) without guards."""


class Identities(NamedTuple):
    """The ids, keys, sources and languages of documents: (rows,) each."""

    ids: Int64Array
    keys: Sequence[bytes]
    source_ids: Int64Array
    """The attached tables, or -1."""
    languages: Sequence[bytes] | None = None
    """None if the corpus does not identify languages."""
    scopes: Sequence[bytes] | None = None
    """None if the corpus is not scoped."""
    expiries: Sequence[bytes] | None = None
    """In the format of timestamptz_send, or empty for never; None if documents never expire."""


class _Row(NamedTuple):
    ids: Int64Array
    keys: Utf8
    source_ids: Int64Array
    """The attached tables, or -1 for NULL."""
    languages: Utf8
    """The languages, or empty for NULL."""
    scopes: Utf8
    is_scoped: bool
    """False: all scopes are NULL."""
    expiries: Utf8
    """In the format of timestamptz_send, or empty for NULL."""


def load_int2_arrays(values: Sequence[bytes]) -> tuple[Int16Array, Int64Array]:
    """Read arrays in the format of array_send: all elements, and offsets of shape (arrays + 1,)."""
    return _read_int2_arrays(concatenate(values))


def load_int4_arrays(values: Sequence[bytes]) -> tuple[Int32Array, Int64Array]:
    """Read arrays in the format of array_send: all elements, and offsets of shape (arrays + 1,)."""
    return _read_int4_arrays(concatenate(values))


@kernel
def _read_int2_arrays(arrays: Utf8) -> tuple[Int16Array, Int64Array]:
    offsets = _offsets_of_elements(arrays, 2)
    values = np.empty(offsets[-1], np.int16)
    for i in range(len(offsets) - 1):
        at = arrays.offsets[i] + ARRAY_HEADER + _LENGTH
        for k in range(offsets[i], offsets[i + 1]):
            values[k] = np.int16(arrays.data[at]) << 8 | np.int16(arrays.data[at + 1])
            at += _LENGTH + 2
    return values, offsets


@kernel
def _read_int4_arrays(arrays: Utf8) -> tuple[Int32Array, Int64Array]:
    offsets = _offsets_of_elements(arrays, 4)
    values = np.empty(offsets[-1], np.int32)
    for i in range(len(offsets) - 1):
        at = arrays.offsets[i] + ARRAY_HEADER + _LENGTH
        for k in range(offsets[i], offsets[i + 1]):
            values[k] = _read4(arrays.data, at)
            at += _LENGTH + 4
    return values, offsets


@kernel
def _offsets_of_elements(arrays: Utf8, element_bytes: int) -> Int64Array:
    """Return the bounds of the elements of each array, computed from its length in bytes."""
    offsets = np.zeros(len(arrays.offsets), np.int64)
    for i in range(len(offsets) - 1):
        size = arrays.offsets[i + 1] - arrays.offsets[i]
        elements = max(size - ARRAY_HEADER, 0) // (_LENGTH + element_bytes)
        offsets[i + 1] = offsets[i] + elements
    return offsets


@inlined_kernel
def _read4(data: ByteArray, at: int) -> np.int32:
    return np.int32(
        np.int32(data[at]) << 24
        | np.int32(data[at + 1]) << 16
        | np.int32(data[at + 2]) << 8
        | np.int32(data[at + 3])
    )


def dump_spans(data: ByteArray, starts: Int32Array, ends: Int32Array) -> bytes:
    return _dump_spans(data, starts, ends).tobytes()


@kernel
def _dump_spans(data: ByteArray, starts: Int32Array, ends: Int32Array) -> ByteArray:
    size = _LENGTH + ARRAY_HEADER
    for i in range(len(starts)):
        size += _LENGTH + ends[i] - starts[i]
    out = np.empty(size + _SURPLUS, np.uint8)
    at = _write_array_header(out, 0, _TEXT, 0, len(starts))
    for i in range(len(starts)):
        at = _write4(out, at, ends[i] - starts[i])
        at = copy_span(data, starts[i], ends[i], out, at)
    return out[_LENGTH:at]


@kernel
def copy_bands(rows: Int64Array) -> ByteArray:
    """Return band rows for COPY ... (FORMAT binary), without header and trailer.

    rows: (rows,), each a bucket in the high half and the id of a document in the low one.
    """
    out = np.empty(_BAND_ROW * len(rows) + _SURPLUS, np.uint8)
    at = 0
    for row in rows:
        out[at] = 0
        out[at + 1] = 2
        at = _write_int4(out, at + 2, row >> 32)
        at = _write_int4(out, at, row)
    return out[:at]


def copy_documents(identities: Identities, contents: Contents, chosen: Int64Array) -> ByteArray:
    """Return rows of documents for COPY ... (FORMAT binary), without header and trailer.

    The columns are id, key, source_id, shingle_count, language, scope, expires_at, guard, word_ids,
    normal_form, signature, fingerprints. chosen: (rows,), the places of the documents in the batch.
    """
    ids, keys, source_ids, languages, scopes, expiries = identities
    rows = len(keys)
    row = _Row(
        ids,
        concatenate(keys),
        source_ids,
        _column(languages, rows),
        _column(scopes, rows),
        scopes is not None,
        _column(expiries, rows),
    )
    # NumPy makes the array, because it asks for large pages and kernels do not.
    out = np.empty(_size_of_documents(row, contents, chosen) + _SURPLUS, np.uint8)
    return out[: _write_documents(row, contents, chosen, out)]


def _column(values: Sequence[bytes] | None, rows: int) -> Utf8:
    """Return the values of a column; a column without values is empty in each row."""
    if values is None:
        return Utf8(np.empty(0, np.uint8), np.zeros(rows + 1, np.int64))
    return concatenate(values)


def _size_of_documents(row: _Row, contents: Contents, chosen: Int64Array) -> int:
    # The number of fields, their lengths, 3 * 4 and 8 bytes of numbers, three array headers.
    fixed = 2 + _FIELDS * _LENGTH + 12 + 8 + 3 * ARRAY_HEADER
    texts = sum(len(column.data) for column in (row.keys, row.languages, row.scopes, row.expiries))
    words, form_bytes, values, fingerprints = (
        int((offsets[1:] - offsets[:-1])[chosen].sum()) if len(offsets) else 0
        for offsets in (
            contents.word_offsets,
            contents.forms.offsets,
            contents.signature_offsets,
            contents.fingerprint_offsets,
        )
    )
    value_bytes = contents.signatures.itemsize
    arrays = (_LENGTH + 4) * (words + fingerprints) + (_LENGTH + value_bytes) * values
    return texts + form_bytes + fixed * len(chosen) + arrays


@kernel
def _write_documents(row: _Row, contents: Contents, chosen: Int64Array, out: ByteArray) -> int:
    at = 0
    for k in range(len(chosen)):
        at = _write_identity(out, at, row, contents.shingle_counts[chosen[k]], k)
        at = _write_content(out, at, contents, chosen[k])
    return at


@inlined_kernel
def _write_identity(out: ByteArray, at: int, row: _Row, shingle_count: int, k: int) -> int:
    out[at] = 0
    out[at + 1] = _FIELDS
    at = _write_int4(out, at + 2, row.ids[k])
    start, end = row.keys.offsets[k], row.keys.offsets[k + 1]
    at = _write4(out, at, end - start)
    at = copy_span(row.keys.data, start, end, out, at)
    at = _write4(out, at, -1) if row.source_ids[k] < 0 else _write_int4(out, at, row.source_ids[k])
    at = _write_int4(out, at, shingle_count)
    at = _write_nullable(out, at, row.languages, k)
    start, end = row.scopes.offsets[k], row.scopes.offsets[k + 1]
    at = _write4(out, at, end - start if row.is_scoped else -1)
    at = copy_span(row.scopes.data, start, end, out, at)
    return _write_nullable(out, at, row.expiries, k)


@inlined_kernel
def _write_nullable(out: ByteArray, at: int, values: Utf8, k: int) -> int:
    """Write a value, or NULL if it is empty; return the next place."""
    start, end = values.offsets[k], values.offsets[k + 1]
    at = _write4(out, at, end - start if end > start else -1)
    return copy_span(values.data, start, end, out, at)


@inlined_kernel
def _write_content(out: ByteArray, at: int, contents: Contents, i: int) -> int:
    if len(contents.guards):
        at = _write4(out, at, 8)
        at = _write4(out, at, contents.guards[i] >> 32)
        at = _write4(out, at, contents.guards[i])
    else:
        at = _write4(out, at, -1)
    if len(contents.word_offsets):
        start, end = contents.word_offsets[i], contents.word_offsets[i + 1]
        at = _write_int4_array(out, at, contents.word_ids, start, end)
        at = _write4(out, at, -1)
    else:
        at = _write4(out, at, -1)
        start, end = contents.forms.offsets[i], contents.forms.offsets[i + 1]
        at = _write4(out, at, end - start)
        at = copy_span(contents.forms.data, start, end, out, at)
    start, end = contents.signature_offsets[i], contents.signature_offsets[i + 1]
    if contents.signatures.itemsize == 2:
        at = _write_array_header(out, at, INT2, 2, end - start)
        for k in range(start, end):
            at = _write_int2(out, at, contents.signatures[k])
    else:
        at = _write_int4_array(out, at, contents.signatures, start, end)
    if len(contents.fingerprint_offsets) == 0:
        return _write4(out, at, -1)
    start, end = contents.fingerprint_offsets[i], contents.fingerprint_offsets[i + 1]
    return _write_int4_array(out, at, contents.fingerprints, start, end)


@inlined_kernel
def _write_int4_array(
    out: ByteArray, at: int, values: npt.NDArray[Any], start: int, end: int
) -> int:
    at = _write_array_header(out, at, INT4, 4, end - start)
    for k in range(start, end):
        at = _write_int4(out, at, values[k])
    return at


@inlined_kernel
def _write_array_header(
    out: ByteArray, at: int, element_type: int, element_bytes: int, elements: int
) -> int:
    if elements == 0:
        at = _write4(out, at, 12)
        at = _write4(out, at, 0)
        at = _write4(out, at, 0)
        return _write4(out, at, element_type)
    at = _write4(out, at, ARRAY_HEADER + (_LENGTH + element_bytes) * elements)
    at = _write4(out, at, 1)
    at = _write4(out, at, 0)
    at = _write4(out, at, element_type)
    at = _write4(out, at, elements)
    return _write4(out, at, 1)


@inlined_kernel
def _write_int2(out: ByteArray, at: int, value: int) -> int:
    store64(out, at, _TWO | np.uint64(_swapped(value) >> np.uint32(16)) << _HALF)
    return at + _LENGTH + 2


@inlined_kernel
def _write_int4(out: ByteArray, at: int, value: int) -> int:
    store64(out, at, _FOUR | np.uint64(_swapped(value)) << _HALF)
    return at + _LENGTH + 4


@inlined_kernel
def _write4(out: ByteArray, at: int, value: int) -> int:
    """Write four bytes, and four surplus bytes, which the next value overwrites; return its place."""
    store64(out, at, np.uint64(_swapped(value)))
    return at + 4


@inlined_kernel
def _swapped(value: int) -> np.uint32:
    """Return the low 32 bits with their four bytes in the opposite order."""
    bits = np.uint32(np.int64(value))
    return np.uint32(
        bits << np.uint32(24)
        | (bits & np.uint32(0xFF00)) << np.uint32(8)
        | bits >> np.uint32(8) & np.uint32(0xFF00)
        | bits >> np.uint32(24)
    )


def load_signatures(
    values: Sequence[bytes], names: Sequence[object], config: CorpusConfig
) -> Signatures:
    if config.is_exact:
        return Ragged(*load_int4_arrays(values))
    signatures = Ragged(*load_int2_arrays(values))
    sizes = signatures.sizes
    damaged = np.flatnonzero((sizes != 0) & (sizes != config.num_hashes))
    if len(damaged):
        raise DatabaseError(
            f'the signature of document "{names[damaged[0]]}" has {sizes[damaged[0]]} values; '
            f"expected {config.num_hashes}: run textsim check"
        )
    return signatures


def load_common(values: bytes, classes: bytes) -> CommonValues:
    return common_values(load_int8_array(values), load_int2_arrays([classes])[0])


def common_parameters(common: CommonValues) -> tuple[Parameter, Parameter]:
    return array(common.values), array(common.classes)
