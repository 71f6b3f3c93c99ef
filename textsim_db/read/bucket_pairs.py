"""Candidate pairs of a whole corpus: the pairs of each bucket, and buckets too large to list.

scan of the band index -> small buckets, and crowded ones -> fold copies -> medium and large buckets
small and medium ones  -> the buckets that each pair shares -> candidates
                       -> without collisions of 32-bit buckets

Collisions are found without reading words. If two documents have an equal band, they have the same
first value in it. The first values of all bands are a twentieth of the bytes of a document of 200
words, and unrelated documents rarely have one in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import LiteralString

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, Int16Array, Int32Array, Int64Array
from textsim_db.cluster.join import CopyClasses
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.cluster.split_large_buckets import split_large
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.packed_pairs import (
    Listed,
    Members,
    Round,
    Sizes,
    grouped,
    ids_of_rows,
    is_among,
    joined_members,
    left_of,
    lists,
    of_round,
    right_of,
    same_anywhere,
)
from textsim_db.db.binary_format import array, load_int4_array, load_int8_array
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.read.document_cache import CopyFinder
from textsim_db.read.snapshot import fetch, fetch_arrays, on_each, with_second
from textsim_db.sketch.plan_options import BUCKETS
from textsim_db.sketch.ragged import begins_run, mixed, of_arrays

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
        self._uncounted = uncounted_ids(connection, corpus)

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
        if len(self._uncounted):
            rows = rows[~is_among(ids_of_rows(rows), self._uncounted)]
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
                connection, self._corpus, statements.PARTS_OF_IDS, [array(unread)]
            )
            read = load_int4_array(documents)
            self._parts[read] = load_int8_array(parts)
            if self._has_guards:
                self._parts[read] = mixed(load_int8_array(parts), load_int8_array(guards))
            self._is_read[read] = True
        return self._parts[places]


def uncounted_ids(connection: Connection, corpus: StoredCorpus) -> Int32Array:
    if not corpus.alive:
        return np.empty(0, np.int32)
    return load_int4_array(*fetch_arrays(connection, corpus, statements.UNCOUNTED_DOCUMENTS))


CROWDED_BUCKET = 16
"""Only buckets with more rows than this are searched for copies."""
MOST_ROWS = 100_000_000
"""The most band rows in buckets of several documents that are held at once.

A row takes 20 bytes, and less in larger buckets.
"""
ROWS_AT_ONCE = 2_000_000
"""The rows of crowded buckets in which copies are folded at once."""


class CandidatePairs:
    """The candidate pairs of a corpus in one snapshot, with copies folded."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        criterion: Criterion,
        only: Ids | None = None,
    ) -> None:
        """only: the ids of the documents to compare, sorted; None: all documents."""
        self._connection = connection
        self._store = store
        self._scan = BucketScan(connection, store.corpus, criterion)
        self._only = only
        self._copy_finder = CopyFinder(connection, store.corpus)
        self._small: list[Members] = []
        self._row_count = 0
        self._pair_count = 0
        self._sizes = self._read_sizes() if store.corpus.config.is_exact else None
        with with_second(store.engine, connection) as connections:
            for each in connections:
                self._scan.prepare(each)
            self._ranges = self._scan.ranges(connection)
            members = self._scan_all(connections)
        self._medium, self.large = split_large(members, self._sizes is not None)
        """The buckets whose pairs lists() leaves out."""
        self._row_count += len(self._medium.ids)
        self.copies = CopyClasses(of_arrays(self._copy_finder.classes))
        """Only one document of each class is in pairs."""

    def lists(self) -> Iterator[Int64Array]:
        """Yield sorted lists of packed pairs, each pair once, without pairs of large buckets.

        If there are more rows than MOST_ROWS, several rounds are needed. A round has the pairs whose
        left id leaves one remainder, and reads the band index again.
        """
        rounds = 1
        if self._row_count > MOST_ROWS:
            rounds = -(-(self._row_count + 2 * self._pair_count) // MOST_ROWS)
        with with_second(self._store.engine, self._connection) as connections:
            for each in connections[1:]:
                self._scan.prepare(each)
            for number in range(rounds):
                current = Round(number, rounds)
                for listed in self._lists_of(connections, current):
                    yield self._kept(connections, listed)

    def _read_sizes(self) -> Sizes:
        statement = statements.COUNTS_OF_SHINGLES
        columns = fetch_arrays(self._connection, self._store.corpus, statement)
        ids, counts = map(load_int4_array, columns)
        order = np.argsort(ids)
        return Sizes(ids[order], counts[order])

    def _scan_all(self, connections: list[Connection]) -> Members:
        """Read all ranges, keep the small buckets, and return the crowded ones with copies folded."""
        folded: list[Members] = []
        waiting: list[Members] = []
        for small, crowded in on_each(connections, self._ranges, self._read_range):
            self._row_count += len(small.ids)
            self._pair_count += int((small.sizes * (small.sizes - 1) // 2).sum())
            self._small.append(small)
            if self._row_count > MOST_ROWS:
                self._small = []
            waiting.append(crowded)
            if sum(len(members.ids) for members in waiting) > ROWS_AT_ONCE:
                folded.append(self._copy_finder.fold(joined_members(waiting)))
                waiting = []
        return joined_members([*folded, self._copy_finder.fold(joined_members(waiting))])

    def _read_range(self, connection: Connection, buckets: Range) -> tuple[Members, Members]:
        """Return the small and the crowded buckets of a range that several documents have."""
        rows = self._scan.rows(connection, buckets)
        if self._only is not None:
            rows = rows[is_among(ids_of_rows(rows), self._only)]
        return grouped(rows, CROWDED_BUCKET)

    def _lists_of(self, connections: list[Connection], current: Round) -> Iterator[Listed]:
        """Yield the pairs of a round, with pairs that large buckets have too."""
        small, self._small = self._small, []
        if current.rounds > 1:
            small = list(
                on_each(connections, self._ranges, partial(self._read_round, current=current))
            )
        small.append(of_round(self._medium, current))
        members = joined_members(small)
        del small
        threshold = self._store.corpus.config.threshold
        yield from lists(members, current, self._sizes, threshold)

    def _read_round(self, connection: Connection, buckets: Range, current: Round) -> Members:
        return of_round(self._read_range(connection, buckets)[0], current)

    def _kept(self, connections: list[Connection], listed: Listed) -> Int64Array:
        """Return the pairs that neither a large bucket nor another document represents."""
        pairs, counts = listed
        kept = self._copy_finder.has_representatives(pairs)
        kept &= self.large.first_shared(pairs) < 0
        pairs, counts = pairs[kept], counts[kept]
        is_single = counts == 1
        if self._sizes is None and np.count_nonzero(is_single) > FEW_PAIRS:
            # Two collisions in one pair are too unlikely, so pairs that share several buckets stay.
            kept = ~is_single
            kept[is_single] = has_equal_band(connections, self._store.corpus, pairs[is_single])
            pairs = pairs[kept]
        return pairs


FEW_PAIRS = 20_000
"""Up to this number of pairs, reading their words takes no longer than this check."""
VALUES_AT_ONCE = 100_000_000
SIGNATURES_AT_ONCE = 50_000
_HEADER = 28  # of an array of two dimensions
_LENGTH_AND_INT2 = np.dtype([("length", ">i4"), ("value", ">i2")])


def has_equal_band(
    connections: list[Connection], corpus: StoredCorpus, pairs: Int64Array
) -> BoolArray:
    """Return for each packed pair whether a band may be equal; false means that no band is equal."""
    assert corpus.config.banding is not None
    at_once = VALUES_AT_ONCE // (2 * corpus.config.banding.bands)
    is_equal = np.zeros(len(pairs), np.bool_)
    for start in range(0, len(pairs), at_once):
        chosen = slice(start, start + at_once)
        sides = left_of(pairs[chosen]), right_of(pairs[chosen])
        ids = np.unique(np.concatenate(sides)).astype(np.int32)
        values, is_known = _first_values(connections, corpus, ids)
        left, right = (np.searchsorted(ids, side) for side in sides)
        is_equal[chosen] = same_anywhere(values, left, right) | ~is_known[left] | ~is_known[right]
    return is_equal


def _first_values(
    connections: list[Connection], corpus: StoredCorpus, ids: Int32Array
) -> tuple[Int16Array, BoolArray]:
    """Return the first value of each band of documents, and which of the documents have values.

    int16 of shape (ids, bands), and bool of shape (ids,). A missing or damaged document has no
    values. Its pairs are kept, so that reading the document reports the damage.
    """
    assert corpus.config.banding is not None
    bands, rows = corpus.config.banding
    firsts = ", ".join(f"d.signature[{band * rows + 1}]" for band in range(bands))
    statement = corpus.statement(statements.FIRST_VALUES).replace("d.signature", firsts, 1)
    values = np.zeros((len(ids), bands), np.int16)
    is_known = np.zeros(len(ids), np.bool_)

    def read(connection: Connection, chosen: Int32Array) -> None:
        parameters = [corpus.config.num_hashes, array(chosen)]
        row = connection.execute(statement, parameters, binary=True).fetchone()
        if row is not None and row[0] is not None:
            known_ids = load_int4_array(row[0])
            if len(row[1]) == _HEADER + _LENGTH_AND_INT2.itemsize * bands * len(known_ids):
                elements = np.frombuffer(row[1], _LENGTH_AND_INT2, offset=_HEADER)["value"]
                places = np.searchsorted(ids, known_ids)
                values[places], is_known[places] = elements.reshape(-1, bands), True

    batches = [ids[i : i + SIGNATURES_AT_ONCE] for i in range(0, len(ids), SIGNATURES_AT_ONCE)]
    for _ in on_each(connections, batches, read):
        pass
    return values, is_known
