"""Counts the buckets that every two documents share, one document after another; pure.

A document is compared with the later documents of its buckets, and each later document has a counter.
So the pairs are neither listed once for each bucket nor sorted. The algorithm is ScanCount: Li, Lu and
Lu, "Efficient Merging and Filtering Algorithms for Approximate String Searches", ICDE 2008, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import (
    BoolArray,
    ByteArray,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
)
from textsim_db.compare.packed_pairs import ONLY_ROUND, AnyIds, Members, Round, pack
from textsim_db.sketch.exact_prefix import MOST_SHARED, most_of_small, shares_enough

PAIRS_AT_ONCE = 1_000_000
"""The pairs of a list; a list has more if a single document has more pairs."""
_MOST_COUNTED = 255
_SPARSE = 8
"""If the ids leave more numbers unused, for each row, documents are numbered anew."""


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
    is_last = _is_last(members.offsets)
    rows = _Rows(documents, is_last, places, offsets, _sizes_of(ids, sizes), small)
    most = max(min(PAIRS_AT_ONCE, len(ids) ** 2), len(ids))
    output = _Output(np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8))
    counters, met = np.zeros(len(ids), np.uint8), np.empty(len(ids), np.int32)
    document = 0
    while document < len(ids):
        document, count = _next_pairs(rows, document, threshold, counters, met, output)
        yield _sorted(ids, output, count)


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


def _is_last(offsets: Int64Array) -> BoolArray:
    is_last = np.zeros(offsets[-1], np.bool_)
    is_last[offsets[1:] - 1] = True
    return is_last


def _sorted(ids: AnyIds, output: _Output, count: int) -> Listed:
    pairs = pack(ids[output.left[:count]], ids[output.right[:count]])
    order = np.argsort(pairs)
    return Listed(pairs[order], output.counts[:count][order])


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
