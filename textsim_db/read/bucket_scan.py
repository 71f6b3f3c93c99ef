"""Reads the buckets with several documents in the order of the band index.

The server groups the index entries and returns arrays of thousands of buckets. So Python does no work
for a single bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, LiteralString, NamedTuple

import numpy as np

from textsim_db.compare.packed_pairs import Members, joined_members, members_of
from textsim_db.db.binary_format import Array, load_int4_array
from textsim_db.db.engine import Connection
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.text.array_types import Int32Array

RANGE_BYTES = 96 * 1024 * 1024
"""The bytes of band rows that one statement groups; larger ranges need more memory."""
ROWS_AT_ONCE = 2_000_000
_LOWEST, _BUCKETS = -(2**31), 2**32

Range = tuple[int, int]
"""The lowest and the highest bucket of a range."""


class SharedBuckets(NamedTuple):
    """Buckets with two rows or more, as arrays of int32 of shape (buckets,).

    sizes: the number of rows; lowest, highest: the lowest and the highest id among the rows.
    """

    buckets: Int32Array
    sizes: Int32Array
    lowest: Int32Array
    highest: Int32Array


class BucketScan:
    """Reads the buckets of a corpus, of all documents or of the documents of one language."""

    def __init__(self, corpus: StoredCorpus, language: str | None) -> None:
        self._corpus = corpus
        self._language = language

    def prepare(self, connection: Connection) -> None:
        """Make the server read the band index in order, instead of sorting the table."""
        connection.execute(statements.READ_IN_INDEX_ORDER)

    def ranges(self, connection: Connection) -> list[Range]:
        """Cut all buckets into ranges with about the same number of rows."""
        row = self._fetch(connection, statements.SIZE_OF_BANDS)
        # NULL if the table has just been dropped. The statement that reads the table reports that.
        count = -(-int(row[0] or 0) // RANGE_BYTES) or 1
        bounds = [_LOWEST + _BUCKETS * i // count for i in range(count + 1)]
        return [(low, high - 1) for low, high in pairwise(bounds)]

    def shared(self, connection: Connection, buckets: Range) -> SharedBuckets:
        """Read the buckets of a range that have several rows."""
        row = self._fetch(
            connection,
            self._of_language(statements.SHARED_BUCKETS, statements.SHARED_BUCKETS_OF_LANGUAGE),
            low=buckets[0],
            high=buckets[1],
        )
        return SharedBuckets(*(load_int4_array(column or b"") for column in row))

    def members(self, connection: Connection, buckets: Int32Array, sizes: Int32Array) -> Members:
        """Read the documents of any number of buckets."""
        return joined_members(list(self._members(connection, buckets, sizes)))

    def parts(self, buckets: Int32Array, sizes: Int32Array) -> Iterator[slice]:
        """Cut buckets into parts of at most ROWS_AT_ONCE rows; a larger bucket is a part alone."""
        ends = np.cumsum(sizes, dtype=np.int64)
        start = 0
        while start < len(buckets):
            before = int(ends[start - 1]) if start else 0
            end = max(int(np.searchsorted(ends, before + ROWS_AT_ONCE, "right")), start + 1)
            yield slice(start, end)
            start = end

    def _members(
        self, connection: Connection, buckets: Int32Array, sizes: Int32Array
    ) -> Iterator[Members]:
        statement = self._of_language(statements.MEMBERS, statements.MEMBERS_OF_LANGUAGE)
        for part in self.parts(buckets, sizes):
            row = self._fetch(connection, statement, buckets=Array(buckets[part]))
            places, ids = (load_int4_array(column or b"") for column in row)
            yield members_of(places - 1, ids, len(buckets[part]))

    def _of_language(self, of_all: LiteralString, of_language: LiteralString) -> LiteralString:
        return of_all if self._language is None else of_language

    def _fetch(
        self, connection: Connection, statement: LiteralString, **parameters: Any
    ) -> Sequence[Any]:
        parameters["language"] = self._language
        cursor = connection.cursor(binary=True)
        row = cursor.execute(self._corpus.statement(statement), parameters).fetchone()
        assert row is not None
        return row
