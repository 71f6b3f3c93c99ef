"""Band rows, which lead from buckets to documents: computed, copied in and deleted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg

from textsim_db.db.binary_format import Array
from textsim_db.db.binary_rows import COPY_HEADER, COPY_TRAILER, copy_bands
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.sketch.band_buckets import Buckets
from textsim_db.write import statements

Numbers = npt.NDArray[np.int64]


class BandRows(NamedTuple):
    """Rows of the band table; all arrays of shape (rows,)."""

    bands: npt.NDArray[np.int16]
    buckets: Numbers
    document_ids: Numbers

    def without(self, others: BandRows) -> BandRows:
        """Return the rows that the others do not have, in order."""
        rows = sorted(self._set() - others._set())
        bands, buckets, ids = zip(*rows, strict=True) if rows else ((), (), ())
        return BandRows(
            np.array(bands, np.int16), np.array(buckets, np.int64), np.array(ids, np.int64)
        )

    def _set(self) -> set[tuple[int, int, int]]:
        return set(zip(*(column.tolist() for column in self), strict=True))


def band_rows(buckets: Buckets, ids: Numbers) -> BandRows:
    """Return the rows of documents in the order of the index, which then grows in one pass.

    ids: (documents,).
    """
    sizes = np.diff(buckets.offsets)
    bands = np.arange(len(buckets.values)) - np.repeat(buckets.offsets[:-1], sizes)
    order = np.argsort(buckets.values)
    return BandRows(
        bands[order].astype(np.int16), buckets.values[order], np.repeat(ids, sizes)[order]
    )


def copy_band_rows(cursor: psycopg.Cursor[Any], corpus: StoredCorpus, rows: BandRows) -> None:
    """Write band rows."""
    if len(rows.buckets):
        with cursor.copy(corpus.statement(statements.COPY_BAND_ROWS)) as copy:
            copy.write(COPY_HEADER)
            copy.write(copy_bands(corpus.id, *rows))
            copy.write(COPY_TRAILER)


def delete_band_rows(cursor: psycopg.Cursor[Any], corpus: StoredCorpus, rows: BandRows) -> None:
    """Delete band rows."""
    if len(rows.buckets):
        statement = corpus.statement(statements.DELETE_BAND_ROWS)
        cursor.execute(statement, [Array(column) for column in rows])
