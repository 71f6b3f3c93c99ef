"""The similarities of a sample to all documents, by an inverted index of the sample's shingles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import HashArray, Int32Array, Int64Array, kernel, longest
from textsim_db.compare.pair_values import Rows, most_shingles, rolling_hashes
from textsim_db.sketch.ragged import begins_run
from textsim_db.text.hashing import SPREAD, HashTable, find, is_taken, number_at, table_of

BINS = 100
COUNTED_AT_ONCE = 4_000_000
"""The pairs whose shared shingles are counted at once; they take 16 MB."""


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
    histogram = np.zeros(BINS + 1, np.int64)
    few, many = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    documents = len(rows.shingle_counts)
    step = 1 + COUNTED_AT_ONCE // (1 + len(index.shingle_counts))
    for start in range(0, documents, step):
        counts = _count_shared(index, rows, start, min(start + step, documents))
        places = np.flatnonzero(counts)
        shared, left = counts.ravel()[places], places % len(index.shingle_counts)
        right = start + places // len(index.shingle_counts)
        total = index.shingle_counts[left] + rows.shingle_counts[right]
        similarity = shared / np.maximum(total - shared, shared)
        histogram += np.bincount((similarity * BINS).astype(np.int64), minlength=BINS + 1)
        is_close = similarity >= close - 1e-9
        few.append(left[is_close])
        many.append(right[is_close])
    return Overlaps(histogram, np.concatenate(few), np.concatenate(many))


@kernel
def _count_shared(index: Index, rows: Rows, start: int, end: int) -> Int32Array:
    """Return the shingles that documents share with the sample: (end - start, documents of it)."""
    shared = np.zeros((end - start, len(index.shingle_counts)), np.int32)
    hashes = np.empty(longest(rows.offsets), np.uint64)
    counted_in = np.full(len(index.table.hashes), -1, np.int64)
    for document in range(start, end):
        for k in range(rolling_hashes(rows, document, index.table.spread, hashes)):
            slot = find(index.table, hashes[k])
            if not is_taken(index.table, slot):
                continue
            shingle = number_at(index.table, slot)
            if counted_in[shingle] != document:
                counted_in[shingle] = document
                for i in range(index.starts[shingle], index.starts[shingle + 1]):
                    shared[document - start, index.owners[i]] += 1
    return shared
