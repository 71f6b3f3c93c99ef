"""The similarities of a sample to all documents, by an inverted index of the sample's shingles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import HashArray, Int64Array, inlined_kernel, kernel, longest
from textsim_db.compare.jaccard import Rows, most_shingles, rolling_hashes, similarity_of
from textsim_db.sketch.ragged import begins_run
from textsim_db.text.hashing import SPREAD, HashTable, find, is_taken, number_at, table_of

BINS = 100


class Index(NamedTuple):
    table: HashTable
    """The number of each shingle, by its hash."""
    starts: Int64Array
    """The bounds of the documents of each shingle in owners: (shingles + 1,)."""
    owners: Int64Array
    """The documents of one shingle after another."""
    shingle_counts: Int64Array
    """The distinct shingles of each document: (documents,)."""


class Overlaps(NamedTuple):
    """The pairs of a sample and all documents."""

    histogram: Int64Array
    """Pairs by hundredths of similarity."""
    few: Int64Array
    """The number in the sample of one document of each close pair."""
    many: Int64Array
    """The number of the other document of each close pair."""


class _Shared(NamedTuple):
    """The shingles that one document at a time shares with the documents of the sample."""

    hashes: HashArray
    """Space for the hashes of the document's shingles."""
    counted: Int64Array
    """The last document in which each shingle of the index was counted."""
    counts: Int64Array
    """Shared shingles by document of the sample; all are 0 when the next document starts."""
    owners: Int64Array
    """The documents of the sample that share a shingle."""


def make_index(rows: Rows) -> Index:
    hashes, owners = _hashes(rows, SPREAD)
    order = np.lexsort((owners, hashes))
    hashes, owners = hashes[order], owners[order]
    is_first = begins_run(hashes, owners)
    distinct, starts = np.unique(hashes[is_first], return_index=True)
    table = table_of(distinct, len(distinct), SPREAD)
    return Index(table, np.append(starts, is_first.sum()), owners[is_first], rows.shingle_counts)


@kernel
def _hashes(rows: Rows, odd_base: int) -> tuple[HashArray, Int64Array]:
    """Return the hashes of each document's shingles, and the document of each hash."""
    hashes = np.empty(most_shingles(rows), np.uint64)
    owners = np.empty(len(hashes), np.int64)
    end = 0
    for document in range(len(rows.shingle_counts)):
        count = rolling_hashes(rows, document, odd_base, hashes[end:])
        owners[end : end + count] = document
        end += count
    return hashes, owners


def overlaps(index: Index, rows: Rows, close: float) -> Overlaps:
    """Compare every document of the index with every document of the rows.

    The histogram counts all pairs that share a shingle. few and many list the pairs whose similarity
    is at least close, less 1e-9 for rounding. Shingles are compared by 64-bit hashes.
    """
    return Overlaps(*_overlaps(index, rows, close))


@kernel
def _overlaps(index: Index, rows: Rows, close: float) -> tuple[Int64Array, Int64Array, Int64Array]:
    sample = len(index.shingle_counts)
    shared = _Shared(
        np.empty(longest(rows.offsets), np.uint64),
        np.full(len(index.table.hashes), -1, np.int64),
        np.zeros(sample, np.int64),
        np.empty(sample, np.int64),
    )
    none = np.empty(0, np.int64)
    pairs = Overlaps(np.zeros(BINS + 1, np.int64), none, none)
    count = 0
    for document in range(len(rows.shingle_counts)):
        if count + sample > len(pairs.few):
            pairs = _enlarged(pairs, 2 * (count + sample))
        owners = _count_shared(index, rows, document, shared)
        for k in range(owners):
            similarity = _take_similarity(index, rows, document, shared, shared.owners[k])
            pairs.histogram[int(similarity * BINS)] += 1
            if similarity >= close - 1e-9:
                pairs.few[count], pairs.many[count] = shared.owners[k], document
                count += 1
    return pairs.histogram, pairs.few[:count], pairs.many[:count]


@kernel
def _enlarged(pairs: Overlaps, size: int) -> Overlaps:
    few = np.empty(size, np.int64)
    many = np.empty(size, np.int64)
    for k in range(len(pairs.few)):
        few[k], many[k] = pairs.few[k], pairs.many[k]
    return Overlaps(pairs.histogram, few, many)


@inlined_kernel
def _count_shared(index: Index, rows: Rows, document: int, shared: _Shared) -> int:
    """Count the shingles shared with each document of the sample; return how many share any."""
    owners = 0
    for k in range(rolling_hashes(rows, document, index.table.spread, shared.hashes)):
        slot = find(index.table, shared.hashes[k])
        if not is_taken(index.table, slot):
            continue
        shingle = number_at(index.table, slot)
        if shared.counted[shingle] == document:
            continue
        shared.counted[shingle] = document
        for i in range(index.starts[shingle], index.starts[shingle + 1]):
            owner = index.owners[i]
            if shared.counts[owner] == 0:
                shared.owners[owners] = owner
                owners += 1
            shared.counts[owner] += 1
    return owners


@inlined_kernel
def _take_similarity(index: Index, rows: Rows, document: int, shared: _Shared, owner: int) -> float:
    """Return the similarity to a document of the sample, and reset their count to 0."""
    count = shared.counts[owner]
    shared.counts[owner] = 0
    return similarity_of(count, index.shingle_counts[owner], rows.shingle_counts[document])
