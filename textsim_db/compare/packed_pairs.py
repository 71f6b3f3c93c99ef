"""Buckets as lists of documents, and the pairs of documents that share buckets; pure.

A pair is packed into one number. To count the buckets that every two documents share, a document is
compared with the later documents of its buckets, and each later document has a counter. So the pairs are
neither listed once for each bucket nor sorted. The algorithm is ScanCount: Li, Lu and Lu, "Efficient
Merging and Filtering Algorithms for Approximate String Searches", ICDE 2008, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import (
    BoolArray,
    ByteArray,
    Int16Array,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
)
from textsim_db.sketch.exact_prefix import MOST_SHARED, most_of_small, shares_enough
from textsim_db.sketch.ragged import Ragged, begins_run, offsets_of

AnyIds = npt.NDArray[np.signedinteger[Any]]
"""Ids of documents: int32 as they are read, int64 in comparisons."""

_LOW = 0xFFFFFFFF
PAIRS_AT_ONCE = 1_000_000
"""The pairs of a list; a list has more if a single document has more pairs."""
_MOST_COUNTED = 255
_SPARSE = 8
"""If the ids leave more numbers unused, for each row, documents are numbered anew."""


class Members(NamedTuple):
    ids: Int32Array
    """The ids of one bucket after another, sorted in each; a repeated bucket repeats its document."""
    offsets: Int64Array
    """The bounds of each bucket: (buckets + 1,)."""

    @property
    def sizes(self) -> Int64Array:
        return np.diff(self.offsets)

    def take(self, chosen: BoolArray) -> Members:
        sizes = self.sizes
        return Members(self.ids[np.repeat(chosen, sizes)], offsets_of(sizes[chosen]))

    def keep(self, kept: BoolArray) -> Members:
        """Return the buckets with the kept documents only; kept: (ids,)."""
        return Members(self.ids[kept], offsets_of(kept)[self.offsets])


class Round(NamedTuple):
    """The pairs of one round, chosen by the id of their left document."""

    number: int
    """The remainder of these ids, divided by the number of rounds."""
    rounds: int


ONLY_ROUND = Round(0, 1)


def grouped(rows: Int64Array, crowded: int) -> tuple[Members, Members]:
    """Return the small buckets, of up to `crowded` rows, and the large buckets, of several documents.

    rows: band rows, sorted, each the bucket in the high half, and the id plus 2^31 in the low half.
    """
    begins = begins_run(rows >> 32)
    # Most buckets have one row. Without these rows, what follows takes a fraction of the time.
    rows = rows[~(begins & np.append(begins[1:], True))]
    starts = np.flatnonzero(begins_run(rows >> 32))
    members = Members(ids_of_rows(rows), np.append(starts, len(rows)))
    is_shared = rows[starts] != rows[members.offsets[1:] - 1]
    is_small = members.sizes <= crowded
    return members.take(is_shared & is_small), members.take(is_shared & ~is_small)


def ids_of_rows(rows: Int64Array) -> Int32Array:
    return ((rows & _LOW) - 2**31).astype(np.int32)


def of_round(members: Members, current: Round) -> Members:
    if current.rounds == 1:
        return members
    is_left = members.ids % current.rounds == current.number
    return members.take(np.logical_or.reduceat(is_left, members.offsets[:-1]))


def joined_members(several: list[Members]) -> Members:
    sizes = np.concatenate([np.zeros(0, np.int64), *(each.sizes for each in several)])
    ids = np.concatenate([np.zeros(0, np.int32), *(each.ids for each in several)])
    return Members(ids, offsets_of(sizes))


def pack(left: AnyIds, right: AnyIds) -> Int64Array:
    """Pack pairs into numbers, which sort by the left and then by the right document."""
    return (left.astype(np.int64) << 32) | (right.astype(np.int64) & _LOW)


def left_of(pairs: Int64Array) -> Int64Array:
    return pairs >> 32


def right_of(pairs: Int64Array) -> Int64Array:
    return pairs.astype(np.int32).astype(np.int64)


def documents_of(pairs: Int64Array) -> Int64Array:
    """Return the ids of all documents of packed pairs, sorted, each once."""
    return np.unique(np.concatenate((left_of(pairs), right_of(pairs))))


def is_among(ids: AnyIds, chosen: AnyIds) -> BoolArray:
    """Return for each id whether it is among the chosen ids, which are sorted."""
    if not len(chosen):
        return np.zeros(len(ids), np.bool_)
    places = np.minimum(np.searchsorted(chosen, ids), len(chosen) - 1)
    among: BoolArray = chosen[places] == ids
    return among


class BucketsOfDocuments:
    """For each document, the numbers of its buckets, among a few large buckets."""

    def __init__(self, members: Members) -> None:
        numbers = np.repeat(np.arange(len(members.offsets) - 1), members.sizes)
        order = np.argsort(members.ids, kind="stable")
        self._ids, sizes = np.unique(members.ids, return_counts=True)
        self._numbers = numbers[order]
        self._offsets = offsets_of(sizes)

    def least_shared(self, pairs: Int64Array) -> Int64Array:
        """Return for each pair the lowest number of a bucket that both documents are in, or -1."""
        shared = np.full(len(pairs), -1, np.int64)
        left, right = left_of(pairs), right_of(pairs)
        both = np.flatnonzero(is_among(left, self._ids) & is_among(right, self._ids))
        places = (np.searchsorted(self._ids, side[both]) for side in (left, right))
        shared[both] = _least_shared(self._numbers, self._offsets, *places)
        return shared


@kernel
def _least_shared(
    numbers: Int64Array, offsets: Int64Array, left: Int64Array, right: Int64Array
) -> Int64Array:
    shared = np.empty(len(left), np.int64)
    for pair in range(len(left)):
        a, end = offsets[left[pair]], offsets[left[pair] + 1]
        b, other_end = offsets[right[pair]], offsets[right[pair] + 1]
        while a < end and b < other_end and numbers[a] != numbers[b]:
            if numbers[a] < numbers[b]:
                a += 1
            else:
                b += 1
        shared[pair] = numbers[a] if a < end and b < other_end else -1
    return shared


@kernel
def same_anywhere(values: Int16Array, left: Int64Array, right: Int64Array) -> BoolArray:
    """Return which pairs of rows have the same value in any column; values: (rows, columns)."""
    same = np.zeros(len(left), np.bool_)
    for pair in range(len(left)):
        for column in range(values.shape[1]):
            if values[left[pair], column] == values[right[pair], column]:
                same[pair] = True
                break
    return same


@kernel
def count_shared(
    left: Ragged, right: Ragged, left_numbers: Int64Array, right_numbers: Int64Array
) -> Int64Array:
    """Return how many buckets the documents of each pair share, as a join counts them: (pairs,)."""
    shared = np.zeros(len(left_numbers), np.int64)
    for pair in range(len(left_numbers)):
        a, b = left_numbers[pair], right_numbers[pair]
        for i in range(left.offsets[a], left.offsets[a + 1]):
            for k in range(right.offsets[b], right.offsets[b + 1]):
                shared[pair] += left.values[i] == right.values[k]
    return shared


class Sizes(NamedTuple):
    """The number of shingles of each document of an exact corpus, sorted by id."""

    ids: Int32Array
    """(documents,)."""
    counts: Int32Array
    """The shingles of each document: (documents,)."""


class Listed(NamedTuple):
    """Pairs, and the number of buckets that each of them shares."""

    pairs: Int64Array
    """Packed and sorted: (pairs,)."""
    counts: ByteArray
    """At most 255: (pairs,)."""


class _Rows(NamedTuple):
    """Band rows, bucket by bucket and document by document."""

    documents: Int32Array
    """The number of the document of each row: (rows,)."""
    is_last: BoolArray
    """Whether a row is the last of its bucket: (rows,)."""
    places: Int32Array
    """The places of the rows of each document of the round."""
    offsets: Int64Array
    """The bounds of each document in places: (documents + 1,)."""
    sizes: Int32Array
    """In an exact corpus, the shingles of each document: (documents,)."""
    small: int
    """If two documents have more shingles than this together, they must share MOST_SHARED rows."""


class _Output(NamedTuple):
    """Arrays that the kernel writes: the pairs of documents by number, with their counts."""

    left: Int32Array
    right: Int32Array
    counts: ByteArray


def lists(
    members: Members,
    current: Round = ONLY_ROUND,
    sizes: Sizes | None = None,
    threshold: float = 0.0,
) -> Iterator[Listed]:
    """Yield the pairs of documents that share buckets, each pair once, in the order of the left id.

    With sizes, only the candidates of an exact corpus with this threshold.
    """
    if not len(members.ids):
        return
    documents, ids = _numbered(members.ids)
    is_left = ids % current.rounds == current.number
    places, offsets = _by_document(documents, is_left)
    small = 0 if sizes is None else most_of_small(threshold)
    is_last = np.zeros(len(members.ids), np.bool_)
    is_last[members.offsets[1:] - 1] = True
    rows = _Rows(documents, is_last, places, offsets, _sizes_of(ids, sizes), small)
    most = max(min(PAIRS_AT_ONCE, len(ids) ** 2), len(ids))
    output = _Output(np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8))
    counters, met = np.zeros(len(ids), np.uint8), np.empty(len(ids), np.int32)
    document = 0
    while document < len(ids):
        document, count = _next_pairs(rows, document, threshold, counters, met, output)
        pairs = pack(ids[output.left[:count]], ids[output.right[:count]])
        order = np.argsort(pairs)
        yield Listed(pairs[order], output.counts[:count][order])


def _numbered(ids: Int32Array) -> tuple[Int32Array, Int64Array]:
    """Return the number of the document of each row, and the ids by number, which are sorted."""
    lowest, highest = int(ids.min()), int(ids.max())
    if highest - lowest < _SPARSE * len(ids):
        return ids - np.int32(lowest), np.arange(lowest, highest + 1)
    distinct, numbers = np.unique(ids, return_inverse=True)
    return numbers.astype(np.int32), distinct.astype(np.int64)


def _sizes_of(ids: Int64Array, sizes: Sizes | None) -> Int32Array:
    """Return the size of each document, 0 if it is not known."""
    if sizes is None or not len(sizes.ids):
        return np.zeros(0 if sizes is None else len(ids), np.int32)
    places = np.minimum(np.searchsorted(sizes.ids, ids), len(sizes.ids) - 1)
    return np.where(sizes.ids[places] == ids, sizes.counts[places], np.int32(0))


@kernel
def _by_document(documents: Int32Array, is_left: BoolArray) -> tuple[Int32Array, Int64Array]:
    """Return the places of the rows of each left document, and the bounds of each."""
    ends = np.zeros(len(is_left) + 2, np.int64)
    for document in documents:
        ends[document + 2] += is_left[document]
    for i in range(2, len(ends)):
        ends[i] += ends[i - 1]
    places = np.empty(ends[-1], np.int32)
    for i in range(len(documents)):
        document = documents[i]
        if is_left[document]:
            places[ends[document + 1]] = i
            ends[document + 1] += 1
    return places, ends[:-1]


@kernel
def _next_pairs(
    rows: _Rows,
    document: int,
    threshold: float,
    counters: ByteArray,
    met: Int32Array,
    output: _Output,
) -> tuple[int, int]:
    """Write pairs until they no longer fit; return the next document, and the number of pairs."""
    count = 0
    while document < len(counters):
        others = _count_others(rows, document, counters, met)
        fits = count + others <= len(output.left)
        for i in range(others):
            other = met[i]
            if fits and _is_listed(rows, document, other, counters[other], threshold):
                output.left[count], output.right[count] = document, other
                output.counts[count] = counters[other]
                count += 1
            counters[other] = 0
        if not fits:
            break
        document += 1
    return document, count


@inlined_kernel
def _count_others(rows: _Rows, document: int, counters: ByteArray, met: Int32Array) -> int:
    """Count the rows that later documents share with a document; return the number of documents."""
    others = 0
    for i in range(rows.offsets[document], rows.offsets[document + 1]):
        place = rows.places[i]
        while not rows.is_last[place]:
            place += 1
            other = rows.documents[place]
            if other != document:
                if counters[other] == 0:
                    met[others] = other
                    others += 1
                counters[other] += counters[other] < _MOST_COUNTED
    return others


@inlined_kernel
def _is_listed(rows: _Rows, left: int, right: int, shared: int, threshold: float) -> bool:
    if len(rows.sizes) == 0:
        return True
    if shared < MOST_SHARED and rows.sizes[left] + rows.sizes[right] > rows.small:
        return False  # most pairs end here, so this test is a cheap one
    if shared == _MOST_COUNTED:  # or more
        shared = rows.sizes[left]
    return shares_enough(shared, rows.sizes[left], rows.sizes[right], threshold)
