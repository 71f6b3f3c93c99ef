"""Candidate pairs of a whole corpus: the pairs of each bucket, and buckets too large to list.

scan of the band index -> pairs of small buckets
                       -> documents of crowded buckets -> fold copies -> pairs, or large buckets
                       -> each pair once, without collisions of 32-bit buckets
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare.packed_pairs import (
    ALL,
    BucketsOfDocuments,
    Members,
    Part,
    count_pairs,
    distinct,
    is_among,
    joined_members,
    left_of,
    pack,
    pairs_of,
    right_of,
)
from textsim_db.db.binary_format import load_int4_array
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.read import statements
from textsim_db.read.bucket_collisions import FEW_PAIRS, has_equal_band
from textsim_db.read.bucket_scan import BucketScan, Range
from textsim_db.read.exact_copies import Copies
from textsim_db.read.snapshot import on_each, with_second
from textsim_db.sketch.smallest_values import MOST_SHARED, most_of_small, share_enough
from textsim_db.text.array_types import BoolArray, ByteArray, Int32Array, Int64Array

LARGE_BUCKET = 256
"""A bucket with more documents than this, after copies are folded, is not listed pair by pair."""
CROWDED_BUCKET = 16
"""Only buckets with more rows than this are searched for copies."""
MOST_PAIRS = 50_000_000
"""The most pairs that are held at once, counted once for each bucket that they share.

A pair takes 8 bytes, and 8 more while the pairs are sorted.
"""
PAIRS_AT_ONCE = 200_000


class _RangePairs(NamedTuple):
    """A range of buckets: the pairs of its small buckets, and the crowded buckets.

    pair_count: the number of pairs in all rounds; rows: the number of rows of each crowded bucket.
    """

    pairs: list[Int64Array]
    pair_count: int
    crowded: Int32Array
    rows: Int32Array


class CandidatePairs:
    """The candidate pairs of a corpus in one snapshot, with copies folded.

    copies: the classes of documents with the same words. Only one document of a class is in pairs.
    large: the documents of each large bucket, whose pairs lists() leaves out; in_large: the large
    buckets of each document.
    """

    def __init__(self, connection: Connection, store: Store, language: str | None) -> None:
        self._connection = connection
        self._store = store
        self._scan = BucketScan(store.corpus, language)
        self.copies = Copies(connection, store.corpus)
        self._small: list[Int64Array] = []
        self._count = 0
        with with_second(store.engine, connection) as connections:
            self._ranges = self._prepare(connections)
            crowded = self._scan_all(connections)
        members = self._fold_crowded(*crowded)
        is_large = members.sizes > LARGE_BUCKET
        self._medium = members.take(~is_large & (members.sizes > 1))
        self._count += count_pairs(self._medium.sizes)
        large = members.take(is_large)
        self.in_large = BucketsOfDocuments(large)
        parts = np.split(large.ids, large.offsets[1:-1])
        self.large = [np.unique(ids).astype(np.int64) for ids in parts]
        if not is_large.any():
            self.large = []

    def lists(self) -> Iterator[Int64Array]:
        """Yield sorted lists of packed pairs, each pair once, without pairs of large buckets.

        If there are more than MOST_PAIRS, several rounds are needed. A round has the pairs whose left
        id leaves one remainder, and reads the band index again.
        """
        rounds = -(-self._count // MOST_PAIRS) or 1
        for number in range(rounds):
            yield self._list(Part(number, rounds))

    def of_large_bucket(self, number: int) -> Iterator[Int64Array]:
        """Yield the packed pairs of a large bucket, except pairs that an earlier bucket has too."""
        ids = self.large[number]
        rows = max(1, PAIRS_AT_ONCE // len(ids))
        for start in range(0, len(ids), rows):
            places = np.arange(start, min(start + rows, len(ids)))
            left, right = np.nonzero(places[:, np.newaxis] < np.arange(len(ids)))
            pairs = pack(ids[places[left]], ids[right])
            yield pairs[self.in_large.least_shared(pairs) == number]

    def _prepare(self, connections: list[Connection]) -> list[Range]:
        for connection in connections:
            self._scan.prepare(connection)
        return self._scan.ranges(connections[0])

    def _scan_all(self, connections: list[Connection]) -> tuple[Int32Array, Int32Array]:
        """Read all ranges and return the crowded buckets; keep the pairs, up to MOST_PAIRS."""
        crowded, rows = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        for of_range in on_each(connections, self._ranges, self._read_all):
            self._count += of_range.pair_count
            self._small += of_range.pairs
            if self._count > MOST_PAIRS:
                self._small = []
            crowded.append(of_range.crowded)
            rows.append(of_range.rows)
        return np.concatenate(crowded), np.concatenate(rows)

    def _read_all(self, connection: Connection, buckets: Range) -> _RangePairs:
        return self._read_range(connection, buckets, ALL)

    def _read_range(self, connection: Connection, buckets: Range, part: Part) -> _RangePairs:
        shared = self._scan.shared(connection, buckets)
        is_two = (shared.sizes == 2) & (shared.lowest != shared.highest)
        pairs = pack(shared.lowest[is_two], shared.highest[is_two])
        is_crowded = shared.sizes > CROWDED_BUCKET
        several = (shared.sizes > 2) & ~is_crowded
        crowded = shared.buckets[is_crowded], shared.sizes[is_crowded]
        count = len(pairs) + count_pairs(shared.sizes[several].astype(np.int64))
        if part is ALL and self._count > MOST_PAIRS:
            return _RangePairs([], count, *crowded)
        members = self._scan.members(connection, shared.buckets[several], shared.sizes[several])
        pairs = pairs[left_of(pairs) % part.rounds == part.number]
        return _RangePairs([pairs, pairs_of(members, part)], count, *crowded)

    def _fold_crowded(self, buckets: Int32Array, rows: Int32Array) -> Members:
        """Read the documents of crowded buckets; one document stands for each class of copies."""
        folded = []
        for part in self._scan.parts(buckets, rows):
            members = self._scan.members(self._connection, buckets[part], rows[part])
            folded.append(self.copies.fold(members))
        return joined_members(folded)

    def _list(self, part: Part) -> Int64Array:
        with with_second(self._store.engine, self._connection) as connections:
            small = self._small if part.rounds == 1 else self._read_again(connections, part)
            self._small = []
            small.append(pairs_of(self._medium, part))
            pairs, counts = distinct(small)
            kept = self.copies.has_representatives(pairs)
            if self.large:
                kept &= self.in_large.least_shared(pairs) < 0
            pairs, counts = pairs[kept], counts[kept]
            if self._store.corpus.config.is_exact:
                return self._with_enough_rows(pairs, counts)
            return self._without_collisions(connections, pairs, counts == 1)

    def _with_enough_rows(self, pairs: Int64Array, counts: ByteArray) -> Int64Array:
        """Return the pairs that share as many rows as the sizes of their documents require.

        Only the sizes of small documents are read: all others need as many rows as any.
        """
        corpus = self._store.corpus
        threshold = corpus.config.threshold
        kept = counts >= MOST_SHARED
        few = np.flatnonzero(~kept)
        if len(few):
            statement = corpus.statement(statements.SMALL_DOCUMENTS)
            cursor = self._connection.cursor(binary=True)
            row = cursor.execute(statement, [most_of_small(threshold)]).fetchone() or (b"", b"")
            ids, sizes = (load_int4_array(column or b"") for column in row)
            left, right = left_of(pairs[few]), right_of(pairs[few])
            is_small = is_among(left, ids) & is_among(right, ids)
            few, left, right = few[is_small], left[is_small], right[is_small]
            sizes_of = sizes.astype(np.int64)
            left_sizes = sizes_of[np.searchsorted(ids, left)]
            right_sizes = sizes_of[np.searchsorted(ids, right)]
            shared = counts[few].astype(np.int64)
            kept[few] = share_enough(shared, left_sizes, right_sizes, threshold)
        return pairs[kept]

    def _without_collisions(
        self, connections: list[Connection], pairs: Int64Array, is_single: BoolArray
    ) -> Int64Array:
        """Remove pairs that share a bucket only by a collision of its hash.

        A pair that shares several buckets stays: two collisions in one pair are too unlikely.
        """
        if is_single.sum() <= FEW_PAIRS:
            return pairs
        kept = ~is_single
        kept[is_single] = has_equal_band(connections, self._store.corpus, pairs[is_single])
        return pairs[kept]

    def _read_again(self, connections: list[Connection], part: Part) -> list[Int64Array]:
        def read(connection: Connection, buckets: Range) -> _RangePairs:
            return self._read_range(connection, buckets, part)

        for connection in connections[1:]:
            self._scan.prepare(connection)
        return [
            pairs
            for of_range in on_each(connections, self._ranges, read)
            for pairs in of_range.pairs
        ]


def documents_of(pairs: Int64Array) -> Ids:
    """Return the ids of all documents of packed pairs, sorted, each once."""
    return np.unique(np.concatenate((left_of(pairs), right_of(pairs))))
