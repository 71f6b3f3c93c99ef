"""Computes, writes and deletes band rows, which lead from buckets to documents.

A row is an int64: the bucket in the high half, the id of the document in the low half. So sorted rows
have the order of the band index, which then grows in one pass. A document with two equal buckets has
two equal rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg

from textsim_db.db.binary_format import Array
from textsim_db.db.binary_rows import COPY_HEADER, COPY_TRAILER, copy_bands
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.sketch.band_buckets import Buckets
from textsim_db.text.array_types import Int64Array
from textsim_db.write import statements

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


def copy_band_rows(cursor: psycopg.Cursor[Any], corpus: StoredCorpus, rows: Int64Array) -> None:
    """Write band rows."""
    if len(rows):
        with cursor.copy(corpus.statement(statements.COPY_BAND_ROWS)) as copy:
            copy.write(COPY_HEADER)
            copy.write(copy_bands(rows).data)
            copy.write(COPY_TRAILER)


def delete_band_rows(cursor: psycopg.Cursor[Any], corpus: StoredCorpus, rows: Int64Array) -> None:
    """Delete band rows, and all rows that are equal to them."""
    if len(rows):
        buckets = (rows >> _ID_BITS).astype(np.int32)
        ids = rows.astype(np.int32)  # the low half
        statement = corpus.statement(statements.DELETE_BAND_ROWS)
        cursor.execute(statement, [Array(buckets), Array(ids)])
