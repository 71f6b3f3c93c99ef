"""Computes, writes and deletes band rows, which lead from buckets to documents.

A row is an int64: the bucket in the high half, the id of the document in the low half. So sorted rows
have the order of the band index, which then grows in one pass. A document with two equal buckets has
two equal rows. Fingerprints have rows of the same form. Only those of new documents are written here:
triggers keep the fingerprints of a document that changes or is removed.
"""

from __future__ import annotations

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.db.binary_format import array
from textsim_db.db.binary_rows import COPY_HEADER, COPY_TRAILER, copy_bands
from textsim_db.db.connections import Cursor
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.sketch.ragged import Buckets, Ragged, in_parts
from textsim_db.write import statements
from textsim_db.write.prepare_batches import Batch

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
        _copy(cursor, corpus.statement(statements.COPY_PASSAGE_ROWS), rows)
    copy_band_rows(cursor, corpus, band_rows(_chosen(sketches.buckets, numbers), ids))


def _chosen(values: Ragged, numbers: Int64Array) -> Ragged:
    return values if len(numbers) == len(values.offsets) - 1 else values.take(numbers)


def copy_band_rows(cursor: Cursor, corpus: StoredCorpus, rows: Int64Array) -> None:
    _copy(cursor, corpus.statement(statements.COPY_BAND_ROWS), rows)


def _copy(cursor: Cursor, statement: str, rows: Int64Array) -> None:
    if len(rows):
        with cursor.copy(statement) as copy:
            copy.write(COPY_HEADER)
            copy.write(copy_bands(rows).data)
            copy.write(COPY_TRAILER)


def delete_band_rows(cursor: Cursor, corpus: StoredCorpus, rows: Int64Array) -> None:
    """Delete band rows, and all rows that are equal to them."""
    if len(rows):
        buckets = (rows >> _ID_BITS).astype(np.int32)
        ids = rows.astype(np.int32)  # the low half
        statement = corpus.statement(statements.DELETE_BAND_ROWS)
        cursor.execute(statement, [array(buckets), array(ids)])
