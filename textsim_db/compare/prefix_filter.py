"""Pairs that can reach a threshold, among documents that all share a bucket; pure, no database.

Of two sets with Jaccard similarity t or more, both have an element in common among the first few of
any one order of all elements. With the rarest first, what everybody has, such as a paragraph of
boilerplate, is never looked at. Chaudhuri, Ganti and Kaushik, "A primitive operator for similarity
joins in data cleaning", 2006; Bayardo, Ma and Srikant, "Scaling up all pairs similarity search", 2007.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.compare.jaccard import most_shingles, rolling_hashes, width_of
from textsim_db.text.compiler import kernel

CHUNK_PAIRS = 200_000
_SLOTS = 20
_SPREAD = 0x9E3779B97F4A7C15

Numbers = npt.NDArray[np.int64]


class Rows(NamedTuple):
    """Documents as the similarity kernels take them.

    tokens: int32; offsets: (documents + 1,); shingle_counts: (documents,); n: tokens in a shingle.
    """

    tokens: npt.NDArray[np.int32]
    offsets: Numbers
    shingle_counts: Numbers
    n: int


def promising_pairs(
    rows: Rows, groups: Numbers, threshold: float
) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield every pair of documents of different groups whose similarity may reach the threshold.

    groups has the shape (documents,). Each pair comes once, in chunks of two arrays of shape
    (pairs,); none that reaches the threshold is left out.
    """
    order = np.argsort(groups, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    keys, owners = _prefixes(*rows, threshold)
    owners = place[owners]
    sorted_ = np.lexsort((owners, keys))
    keys, owners = keys[sorted_], owners[sorted_]
    grouped = groups[order]
    begins, lengths = _runs(keys)
    # What only documents of one group have joins none of another.
    several = grouped[owners[begins]] != grouped[owners[begins + lengths - 1]]
    kept = np.repeat(several, lengths)
    keys, owners = keys[kept], owners[kept]
    begins, lengths = _runs(keys)
    lists = np.repeat(begins, lengths)
    by_owner = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[by_owner], np.arange(len(order) + 1))
    counts = rows.shingle_counts[order]
    start = 0
    while start < len(order):
        left, right, start = _paired(
            start, owners, lists, by_owner, bounds, grouped, counts, threshold
        )
        if len(left):
            yield order[left], order[right]


def _runs(keys: npt.NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
    """Return where runs of equal keys begin, and how long they are."""
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return begins, np.diff(begins, append=len(keys))


@kernel
def _prefixes(
    tokens: npt.NDArray[np.int32],
    offsets: Numbers,
    shingle_counts: Numbers,
    n: int,
    threshold: float,
) -> tuple[npt.NDArray[np.uint64], Numbers]:
    """Return the rarest shingles of each document, as many as count, and their owners.

    A key is the number of documents with the shingle, roughly, before bits of its hash: what is
    equal is so in all documents, and the order is one.
    """
    spread = np.uint64(_SPREAD)
    frequencies = np.zeros(1 << _SLOTS, np.uint32)
    longest = 0
    for i in range(len(shingle_counts)):
        longest = max(longest, offsets[i + 1] - offsets[i])
    hashes = np.empty(longest + 1, np.uint64)
    for i in range(len(shingle_counts)):
        width = width_of(offsets[i], offsets[i + 1], n)
        for k in range(rolling_hashes(tokens, offsets[i], offsets[i + 1], width, hashes)):
            frequencies[(hashes[k] * spread) >> np.uint64(64 - _SLOTS)] += np.uint32(1)
    keys = np.empty(most_shingles(offsets, n), np.uint64)
    owners = np.empty(len(keys), np.int64)
    at = 0
    for i in range(len(shingle_counts)):
        width = width_of(offsets[i], offsets[i + 1], n)
        count = rolling_hashes(tokens, offsets[i], offsets[i + 1], width, hashes)
        for k in range(count):
            mixed = hashes[k] * spread
            frequency = min(frequencies[mixed >> np.uint64(64 - _SLOTS)], np.uint32(0xFFFFFF))
            hashes[k] = (np.uint64(frequency) << np.uint64(40)) | (mixed & np.uint64(0xFFFFFFFFFF))
        ordered = np.sort(hashes[:count])
        # All but so many that, without one of these, too few could be shared.
        wanted = shingle_counts[i] - np.int64(np.ceil(threshold * shingle_counts[i] - 1e-9)) + 1
        taken = 0
        for k in range(count):
            if taken >= wanted:
                break
            if k == 0 or ordered[k] != ordered[k - 1]:
                keys[at] = ordered[k]
                owners[at] = i
                at += 1
                taken += 1
    return keys[:at], owners[:at]


@kernel
def _paired(
    start: int,
    owners: Numbers,
    lists: Numbers,
    by_owner: Numbers,
    bounds: Numbers,
    groups: Numbers,
    shingle_counts: Numbers,
    threshold: float,
) -> tuple[Numbers, Numbers, int]:
    """Return pairs of documents from start on, until there are many, and where to go on.

    Documents are numbered group by group. owners: (entries,), key by key, in order within each;
    lists: where the list of an entry's key begins; by_owner and bounds: the entries of each document.
    """
    documents = len(shingle_counts)
    size = max(CHUNK_PAIRS, documents)
    left = np.empty(size, np.int64)
    right = np.empty(size, np.int64)
    seen = np.full(documents, -1, np.int64)
    count = 0
    for x in range(start, documents):
        if count + x > size:
            return left[:count], right[:count], x
        for e in range(bounds[x], bounds[x + 1]):
            entry = by_owner[e]
            for other in range(lists[entry], entry):
                y = owners[other]
                if groups[y] == groups[x]:
                    break  # the rest before this entry is of its group
                if seen[y] == x:
                    continue
                seen[y] = x
                fewer = min(shingle_counts[x], shingle_counts[y])
                if fewer >= threshold * max(shingle_counts[x], shingle_counts[y]) - 1e-9:
                    left[count] = y
                    right[count] = x
                    count += 1
    return left[:count], right[:count], documents
