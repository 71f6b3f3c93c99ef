"""The similarities of some documents to all others by brute force, in one pass; pure.

An inverted index of the shingles of the few, through which the many are run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.compare.jaccard import most_shingles, rolling_hashes, similarity_of, width_of
from textsim_db.compare.prefix_filter import Numbers, Rows
from textsim_db.text.compiler import kernel

BINS = 100


class Index(NamedTuple):
    """The shingles of some documents: hashes in order, and for each the documents that have it."""

    hashes: npt.NDArray[np.uint64]
    starts: Numbers
    owners: Numbers
    shingle_counts: Numbers


class Overlaps(NamedTuple):
    """histogram: pairs by similarity, in a hundredth each. few, many: the pairs that are close."""

    histogram: Numbers
    few: Numbers
    many: Numbers


def make_index(rows: Rows) -> Index:
    """Index documents by their shingles."""
    hashes, owners = _distinct(*rows)
    order = np.argsort(hashes, kind="stable")
    found, starts = np.unique(hashes[order], return_index=True)
    return Index(found, np.append(starts, len(order)), owners[order], rows.shingle_counts)


def overlaps(index: Index, rows: Rows, close: float) -> Overlaps:
    """Compare every document of the index with every one of the rows.

    Pairs at or above close are returned by their numbers; the histogram has all pairs that share a
    shingle. Shingles are compared by 64-bit hashes.
    """
    return Overlaps(*_overlaps(*index, *rows, close - 1e-9))


@kernel
def _distinct(
    tokens: npt.NDArray[np.int32], offsets: Numbers, shingle_counts: Numbers, n: int
) -> tuple[npt.NDArray[np.uint64], Numbers]:
    longest = 0
    for i in range(len(shingle_counts)):
        longest = max(longest, offsets[i + 1] - offsets[i])
    hashes = np.empty(most_shingles(offsets, n), np.uint64)
    owners = np.empty(len(hashes), np.int64)
    some = np.empty(longest + 1, np.uint64)
    at = 0
    for i in range(len(shingle_counts)):
        width = width_of(offsets[i], offsets[i + 1], n)
        count = rolling_hashes(tokens, offsets[i], offsets[i + 1], width, some)
        ordered = np.sort(some[:count])
        for k in range(count):
            if k == 0 or ordered[k] != ordered[k - 1]:
                hashes[at] = ordered[k]
                owners[at] = i
                at += 1
    return hashes[:at], owners[:at]


@kernel
def _overlaps(
    hashes: npt.NDArray[np.uint64],
    starts: Numbers,
    owners: Numbers,
    few_counts: Numbers,
    tokens: npt.NDArray[np.int32],
    offsets: Numbers,
    shingle_counts: Numbers,
    n: int,
    close: float,
) -> tuple[Numbers, Numbers, Numbers]:
    size = 16
    while size < 2 * len(hashes):
        size *= 2
    mask = size - 1
    table = np.full(size, -1, np.int64)
    for number in range(len(hashes)):
        slot = np.int64(hashes[number] >> np.uint64(20)) & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = number
    longest = 0
    for i in range(len(shingle_counts)):
        longest = max(longest, offsets[i + 1] - offsets[i])
    some = np.empty(longest + 1, np.uint64)
    counted = np.full(len(hashes), -1, np.int64)
    shared = np.zeros(len(few_counts), np.int64)
    touched = np.empty(len(few_counts), np.int64)
    histogram = np.zeros(BINS + 1, np.int64)
    few = np.empty(1024, np.int64)
    many = np.empty(1024, np.int64)
    pairs = 0
    for i in range(len(shingle_counts)):
        reached = 0
        width = width_of(offsets[i], offsets[i + 1], n)
        for k in range(rolling_hashes(tokens, offsets[i], offsets[i + 1], width, some)):
            slot = np.int64(some[k] >> np.uint64(20)) & mask
            while table[slot] >= 0 and hashes[table[slot]] != some[k]:
                slot = (slot + 1) & mask
            number = table[slot]
            if number < 0 or counted[number] == i:
                continue
            counted[number] = i
            for at in range(starts[number], starts[number + 1]):
                owner = owners[at]
                if shared[owner] == 0:
                    touched[reached] = owner
                    reached += 1
                shared[owner] += 1
        for at in range(reached):
            owner = touched[at]
            similarity = similarity_of(shared[owner], few_counts[owner], shingle_counts[i])
            shared[owner] = 0
            histogram[int(similarity * BINS)] += 1
            if similarity >= close:
                if pairs == len(few):
                    few = np.concatenate((few, np.empty(len(few), np.int64)))
                    many = np.concatenate((many, np.empty(len(many), np.int64)))
                few[pairs] = owner
                many[pairs] = i
                pairs += 1
    return histogram, few[:pairs], many[:pairs]
