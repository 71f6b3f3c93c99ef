"""Rows of documents, band rows and fingerprints: computes, writes and deletes them.

A band row leads from a bucket to a document. It is an int64: the bucket in the high half, the id of the
document in the low half. So sorted rows have the order of the band index, which then grows in one pass.
A document with two equal buckets has two equal rows. Fingerprints have rows of the same form. Only those
of new documents are written here: triggers keep the fingerprints of a document that changes or is
removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import (
    ByteArray,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
    store64,
)
from textsim_db.db.binary_format import (
    ARRAY_HEADER,
    INT2,
    INT4,
    LENGTH_BYTES,
    SURPLUS_BYTES,
    array,
    swapped,
    write4,
    write_array_header,
)
from textsim_db.db.connections import Cursor
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.sketch.ragged import Buckets, Ragged, in_parts
from textsim_db.text.utf8 import Utf8, concatenate, copy_span
from textsim_db.write import statements
from textsim_db.write.prepare_batches import Batch

_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_TRAILER = b"\xff\xff"
_BAND_ROW = 18
_FIELDS = 12
"""The columns of a document."""
_TWO, _FOUR = np.uint64(2 << 24), np.uint64(4 << 24)
"""The length of an int2 and of an int4, as PostgreSQL writes it: the highest byte first."""
_HALF = np.uint64(32)
_ID_BITS = 32


def band_rows(buckets: Buckets, ids: Int64Array) -> Int64Array:
    """Return the sorted rows of documents: int64 of shape (rows,); ids: (documents,)."""
    rows = buckets.values.astype(np.int64) << _ID_BITS
    rows |= np.repeat(ids, np.diff(buckets.offsets))
    rows.sort()
    return rows


def changed_rows(before: Int64Array, after: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the rows to delete and the rows to write, to turn the rows before into the rows after.

    One of several equal rows cannot be deleted alone. So if the number of equal rows changes, all of
    them are deleted, and the new number is written.
    """
    rows, numbers = np.unique(np.concatenate((before, after)), return_inverse=True)
    counts_before = np.bincount(numbers[: len(before)], minlength=len(rows))
    counts_after = np.bincount(numbers[len(before) :], minlength=len(rows))
    is_changed = counts_before != counts_after
    gone = rows[is_changed & (counts_before > 0)]
    return gone, np.repeat(rows[is_changed], counts_after[is_changed])


def copy_new_rows(
    cursor: Cursor,
    corpus: StoredCorpus,
    batch: Batch,
    numbers: Int64Array,
    ids: Int64Array,
) -> None:
    sketches = batch.sketches
    if sketches.fingerprints is not None:
        fingerprints = in_parts(sketches.fingerprints, sketches.parts)
        rows = band_rows(_chosen(fingerprints, numbers), ids)
        _copy(cursor, corpus.statement(statements.COPY_PASSAGE_ROWS), copy_bands(rows))
    copy_band_rows(cursor, corpus, band_rows(_chosen(sketches.buckets, numbers), ids))


def copy_document_rows(
    cursor: Cursor,
    corpus: StoredCorpus,
    identities: Identities,
    contents: Contents,
    chosen: Int64Array,
) -> None:
    rows = copy_documents(identities, contents, chosen)
    _copy(cursor, corpus.statement(statements.COPY_DOCUMENTS), rows)


def _chosen(values: Ragged, numbers: Int64Array) -> Ragged:
    return values if len(numbers) == len(values.offsets) - 1 else values.take(numbers)


def copy_band_rows(cursor: Cursor, corpus: StoredCorpus, rows: Int64Array) -> None:
    _copy(cursor, corpus.statement(statements.COPY_BAND_ROWS), copy_bands(rows))


def _copy(cursor: Cursor, statement: str, rows: ByteArray) -> None:
    if len(rows):
        with cursor.copy(statement) as copy:
            copy.write(_COPY_HEADER)
            copy.write(rows.data)
            copy.write(_COPY_TRAILER)


def delete_band_rows(cursor: Cursor, corpus: StoredCorpus, rows: Int64Array) -> None:
    """Delete band rows, and all rows that are equal to them."""
    if len(rows):
        buckets = (rows >> _ID_BITS).astype(np.int32)
        ids = rows.astype(np.int32)  # the low half
        statement = corpus.statement(statements.DELETE_BAND_ROWS)
        cursor.execute(statement, [array(buckets), array(ids)])


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
    """The ids, keys, sources and other columns of documents: (rows,) each."""

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


@kernel
def copy_bands(rows: Int64Array) -> ByteArray:
    """Return band rows for COPY ... (FORMAT binary), without header and trailer.

    rows: (rows,), each a bucket in the high half and the id of a document in the low one.
    """
    out = np.empty(_BAND_ROW * len(rows) + SURPLUS_BYTES, np.uint8)
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
    # NumPy makes the array, because it asks for large pages and kernels do not.
    out = np.empty(_size_of_documents(identities, contents, chosen) + SURPLUS_BYTES, np.uint8)
    return out[: _write_documents(identities, contents, chosen, out)]


def column(values: Sequence[bytes] | None, rows: int) -> Utf8:
    """Return the values of a column; a column without values is empty in each row."""
    if values is None:
        return Utf8(np.empty(0, np.uint8), np.zeros(rows + 1, np.int64))
    return concatenate(values)


def _size_of_documents(row: Identities, contents: Contents, chosen: Int64Array) -> int:
    # The number of fields, their lengths, 3 * 4 and 8 bytes of numbers, three array headers.
    fixed = 2 + _FIELDS * LENGTH_BYTES + 12 + 8 + 3 * ARRAY_HEADER
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
    arrays = (LENGTH_BYTES + 4) * (words + fingerprints) + (LENGTH_BYTES + value_bytes) * values
    return texts + form_bytes + fixed * len(chosen) + arrays


@kernel
def _write_documents(
    row: Identities, contents: Contents, chosen: Int64Array, out: ByteArray
) -> int:
    at = 0
    for k in range(len(chosen)):
        at = _write_identity(out, at, row, contents.shingle_counts[chosen[k]], k)
        at = _write_content(out, at, contents, chosen[k])
    return at


@inlined_kernel
def _write_identity(out: ByteArray, at: int, row: Identities, shingle_count: int, k: int) -> int:
    out[at] = 0
    out[at + 1] = _FIELDS
    at = _write_int4(out, at + 2, row.ids[k])
    start, end = row.keys.offsets[k], row.keys.offsets[k + 1]
    at = write4(out, at, end - start)
    at = copy_span(row.keys.data, start, end, out, at)
    at = write4(out, at, -1) if row.source_ids[k] < 0 else _write_int4(out, at, row.source_ids[k])
    at = _write_int4(out, at, shingle_count)
    at = _write_nullable(out, at, row.languages, k)
    start, end = row.scopes.offsets[k], row.scopes.offsets[k + 1]
    at = write4(out, at, end - start if row.is_scoped else -1)
    at = copy_span(row.scopes.data, start, end, out, at)
    return _write_nullable(out, at, row.expiries, k)


@inlined_kernel
def _write_nullable(out: ByteArray, at: int, values: Utf8, k: int) -> int:
    """Write a value, or NULL if it is empty; return the next place."""
    start, end = values.offsets[k], values.offsets[k + 1]
    at = write4(out, at, end - start if end > start else -1)
    return copy_span(values.data, start, end, out, at)


@inlined_kernel
def _write_content(out: ByteArray, at: int, contents: Contents, i: int) -> int:
    if len(contents.guards):
        at = write4(out, at, 8)
        at = write4(out, at, contents.guards[i] >> 32)
        at = write4(out, at, contents.guards[i])
    else:
        at = write4(out, at, -1)
    if len(contents.word_offsets):
        start, end = contents.word_offsets[i], contents.word_offsets[i + 1]
        at = _write_int4_array(out, at, contents.word_ids, start, end)
        at = write4(out, at, -1)
    else:
        at = write4(out, at, -1)
        start, end = contents.forms.offsets[i], contents.forms.offsets[i + 1]
        at = write4(out, at, end - start)
        at = copy_span(contents.forms.data, start, end, out, at)
    start, end = contents.signature_offsets[i], contents.signature_offsets[i + 1]
    if contents.signatures.itemsize == 2:
        at = write_array_header(out, at, INT2, 2, end - start)
        for k in range(start, end):
            at = _write_int2(out, at, contents.signatures[k])
    else:
        at = _write_int4_array(out, at, contents.signatures, start, end)
    if len(contents.fingerprint_offsets) == 0:
        return write4(out, at, -1)
    start, end = contents.fingerprint_offsets[i], contents.fingerprint_offsets[i + 1]
    return _write_int4_array(out, at, contents.fingerprints, start, end)


@inlined_kernel
def _write_int4_array(
    out: ByteArray, at: int, values: npt.NDArray[Any], start: int, end: int
) -> int:
    at = write_array_header(out, at, INT4, 4, end - start)
    for k in range(start, end):
        at = _write_int4(out, at, values[k])
    return at


@inlined_kernel
def _write_int2(out: ByteArray, at: int, value: int) -> int:
    store64(out, at, _TWO | np.uint64(swapped(value) >> np.uint32(16)) << _HALF)
    return at + LENGTH_BYTES + 2


@inlined_kernel
def _write_int4(out: ByteArray, at: int, value: int) -> int:
    store64(out, at, _FOUR | np.uint64(swapped(value)) << _HALF)
    return at + LENGTH_BYTES + 4
