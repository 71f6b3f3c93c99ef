"""Reads the band index in its order: the documents of each bucket that several documents have.

The server sends arrays of millions of rows, and a kernel groups them. So Python does no work for a
single bucket.
"""

from __future__ import annotations

from itertools import pairwise
from typing import LiteralString

import numpy as np

from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.packed_pairs import is_among
from textsim_db.db.binary_format import Array, load_int4_array, load_int8_array
from textsim_db.db.engine import Connection
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.read.snapshot import fetch, fetch_arrays
from textsim_db.sketch.cost_of_bands import BUCKETS
from textsim_db.sketch.ragged import begins_run, mixed
from textsim_db.text.numba_compiler import Int32Array, Int64Array

RANGE_BYTES = 96 * 1024 * 1024
"""The bytes of band rows that one statement reads; larger ranges need more memory."""
_LOWEST = -(2**31)

Range = tuple[int, int]
"""The lowest and the highest bucket of a range."""


class BucketScan:
    """Reads the band rows of the documents of a corpus that a criterion compares."""

    def __init__(self, connection: Connection, corpus: StoredCorpus, criterion: Criterion) -> None:
        self._corpus = corpus
        self._language, self._part = criterion.language, criterion.part
        self._has_guards = criterion.for_merges and bool(corpus.config.guards)
        self._are_mixed = self._has_guards or (corpus.config.scoped and self._part is None)
        """Whether buckets may have documents of several parts, or of several guards."""
        self._parts = np.empty(0, np.int64)
        """The part of each document, mixed with its guard for merges, by id."""
        self._is_read = np.empty(0, np.bool_)
        """Whether the part was read, by id."""
        if self._are_mixed:
            ((highest,),) = fetch(connection, corpus, statements.HIGHEST_ID)
            # Rows of documents that are not stored take the last place, which is never read.
            self._parts = np.zeros(highest + 2, np.int64)
            self._is_read = np.zeros(highest + 2, np.bool_)
        self._expired = expired_ids(connection, corpus)

    def prepare(self, connection: Connection) -> None:
        """Make the server read the band index in order, instead of sorting the table."""
        if self._part is None:
            connection.execute(statements.READ_IN_INDEX_ORDER)

    def ranges(self, connection: Connection) -> list[Range]:
        """Cut all buckets into ranges with about the same number of rows."""
        row = connection.execute(self._corpus.statement(statements.SIZE_OF_BANDS)).fetchone()
        # NULL if the table has just been dropped. The statement that reads the table reports that.
        ranges = -(-int((row or (0,))[0] or 0) // RANGE_BYTES) or 1
        bounds = [_LOWEST + BUCKETS * i // ranges for i in range(ranges + 1)]
        return [(low, high - 1) for low, high in pairwise(bounds)]

    def rows(self, connection: Connection, buckets: Range) -> Int64Array:
        """Read the band rows of a range of buckets, sorted, as grouped() takes them."""
        statement: LiteralString = statements.BAND_ROWS
        if self._part is not None:
            statement = statements.BAND_ROWS_OF_PART
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
            "part": self._part,
        }
        rows = load_int8_array(*fetch_arrays(connection, self._corpus, statement, parameters))
        if (rows[1:] < rows[:-1]).any():  # a join, or a plan that does not read the index in order
            rows.sort()
        if len(self._expired):
            rows = rows[~is_among(ids_of_rows(rows), self._expired)]
        return self._apart(connection, rows) if self._are_mixed else rows

    def _apart(self, connection: Connection, rows: Int64Array) -> Int64Array:
        """Return the rows of buckets with several rows, and part buckets of several parts.

        Documents of several parts meet by chance, in few buckets. Then buckets are numbered anew.
        """
        is_same = rows[1:] >> 32 == rows[:-1] >> 32
        rows = rows[np.append(False, is_same)[: len(rows)] | np.append(is_same, False)[: len(rows)]]
        parts = self._parts_of(connection, ids_of_rows(rows))
        buckets = rows >> 32
        if not ((buckets[1:] == buckets[:-1]) & (parts[1:] != parts[:-1])).any():
            return rows
        order = np.lexsort((rows, parts, buckets))
        rows, parts, buckets = rows[order], parts[order], buckets[order]
        numbers = np.cumsum(begins_run(buckets, parts), dtype=np.int64)
        return numbers << 32 | rows & 0xFFFFFFFF

    def _parts_of(self, connection: Connection, ids: Int32Array) -> Int64Array:
        """Return the parts of documents; another thread may read the same parts."""
        places = np.minimum(ids, len(self._parts) - 1)
        unread = np.unique(ids[~self._is_read[places]])
        if len(unread):
            documents, parts, guards = fetch_arrays(
                connection, self._corpus, statements.PARTS_OF_IDS, [Array(unread)]
            )
            read = load_int4_array(documents)
            self._parts[read] = load_int8_array(parts)
            if self._has_guards:
                self._parts[read] = mixed(load_int8_array(parts), load_int8_array(guards))
            self._is_read[read] = True
        return self._parts[places]


def expired_ids(connection: Connection, corpus: StoredCorpus) -> Int32Array:
    if corpus.config.keep_for is None:
        return np.empty(0, np.int32)
    return load_int4_array(*fetch_arrays(connection, corpus, statements.EXPIRED_DOCUMENTS))


def ids_of_rows(rows: Int64Array) -> Int32Array:
    ids: Int32Array = ((rows & 0xFFFFFFFF) - 2**31).astype(np.int32)
    return ids
