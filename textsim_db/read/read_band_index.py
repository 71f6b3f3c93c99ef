"""Reads the band index in its order: the documents of each bucket that several documents have.

The server sends arrays of millions of rows, and a kernel groups them. So Python does no work for a
single bucket.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from textsim_db.compare.packed_pairs import is_among
from textsim_db.db.binary_format import load_int4_array, load_int8_array
from textsim_db.db.engine import Connection
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.text.array_types import Int32Array, Int64Array

RANGE_BYTES = 96 * 1024 * 1024
"""The bytes of band rows that one statement reads; larger ranges need more memory."""
_LOWEST, _BUCKETS = -(2**31), 2**32

Range = tuple[int, int]
"""The lowest and the highest bucket of a range."""


class BucketScan:
    """Reads the band rows of all documents of a corpus, or of one language or scope."""

    def __init__(self, corpus: StoredCorpus, language: str | None, scope: str | None) -> None:
        self._corpus = corpus
        self._language = language
        self._scope = scope
        self._numbers_of_scopes: Int32Array | None = None
        self._expired = np.empty(0, np.int32)

    def prepare(self, connection: Connection) -> None:
        """Make the server read the band index in order, instead of sorting the table."""
        if self._scope is None:
            connection.execute(statements.READ_IN_INDEX_ORDER)

    def ranges(self, connection: Connection) -> list[Range]:
        """Cut all buckets into ranges with about the same number of rows."""
        row = connection.execute(self._corpus.statement(statements.SIZE_OF_BANDS)).fetchone()
        # NULL if the table has just been dropped. The statement that reads the table reports that.
        count = -(-int((row or (0,))[0] or 0) // RANGE_BYTES) or 1
        bounds = [_LOWEST + _BUCKETS * i // count for i in range(count + 1)]
        return [(low, high - 1) for low, high in pairwise(bounds)]

    def rows(self, connection: Connection, buckets: Range) -> Int64Array:
        """Read the band rows of a range of buckets, sorted, as grouped() takes them."""
        statement = statements.BAND_ROWS
        if self._scope is not None:
            statement = statements.BAND_ROWS_OF_SCOPE
        elif self._language is not None:
            statement = statements.BAND_ROWS_OF_LANGUAGE
        low, high = buckets
        config = self._corpus.config
        parameters = {
            "low": low,
            "high": high,
            "bands": config.bands,
            "rows": config.rows,
            "language": self._language,
            "scope": self._scope,
        }
        cursor = connection.cursor(binary=True)
        (data,) = cursor.execute(self._corpus.statement(statement), parameters).fetchone() or (b"",)
        rows = load_int8_array(data or b"")
        if (rows[1:] < rows[:-1]).any():  # a join, or a plan that does not read the index in order
            rows.sort()
        if len(self._expired):
            rows = rows[~is_among(_ids(rows), self._expired)]
        return self._apart(rows) if self._are_mixed else rows

    def read_expired(self, connection: Connection) -> None:
        """Read which documents have expired; their rows are left out."""
        if self._corpus.config.keep_for is None:
            return
        statement = self._corpus.statement(statements.EXPIRED_DOCUMENTS)
        (data,) = connection.cursor(binary=True).execute(statement).fetchone() or (b"",)
        self._expired = load_int4_array(data or b"")

    def read_scopes(self, connection: Connection) -> None:
        """Read the scopes of all documents, if buckets may have documents of several scopes."""
        if not self._are_mixed:
            return
        statement = self._corpus.statement(statements.SCOPES_OF_DOCUMENTS)
        row = connection.cursor(binary=True).execute(statement).fetchone() or (b"", b"")
        ids, numbers = (load_int4_array(column or b"") for column in row)
        self._numbers_of_scopes = np.zeros(int(ids.max(initial=0)) + 1, np.int32)
        self._numbers_of_scopes[ids] = numbers

    @property
    def _are_mixed(self) -> bool:
        return self._corpus.config.scoped and self._scope is None

    def _apart(self, rows: Int64Array) -> Int64Array:
        """Part buckets in which documents of several scopes meet by chance.

        Buckets are numbered anew, unless all are of one scope.
        """
        assert self._numbers_of_scopes is not None
        scopes = self._numbers_of_scopes[_ids(rows)]
        buckets = rows >> 32
        is_next = np.append(True, buckets[1:] != buckets[:-1])[: len(rows)]
        is_mixed = ~is_next[1:] & (scopes[1:] != scopes[:-1])
        if not is_mixed.any():
            return rows
        order = np.lexsort((rows, scopes, buckets))
        rows, scopes, buckets = rows[order], scopes[order], buckets[order]
        is_next[1:] = (buckets[1:] != buckets[:-1]) | (scopes[1:] != scopes[:-1])
        return np.cumsum(is_next, dtype=np.int64) << 32 | rows & 0xFFFFFFFF


def _ids(rows: Int64Array) -> Int32Array:
    """Return the ids of the documents of band rows."""
    ids: Int32Array = ((rows & 0xFFFFFFFF) - 2**31).astype(np.int32)
    return ids
