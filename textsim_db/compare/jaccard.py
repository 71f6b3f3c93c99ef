"""Exact Jaccard similarity of documents given as rows of integers; pure, with no database."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from textsim_db.text.compiler import kernel

_BASE = 0x9E3779B97F4A7C15  # any odd number with well mixed bits: 2^64 divided by the golden ratio


@kernel
def width_of(start: int, end: int, n: int) -> int:
    """Return the length of a document's shingles: n, or all of it where it is shorter."""
    return min(n, end - start)


@kernel
def most_shingles(offsets: npt.NDArray[np.int64], n: int) -> int:
    """Return how many distinct shingles all documents together can have.

    What is stored says how many they have, but may be damaged: no array is as long as it says.
    """
    total = 0
    for i in range(len(offsets) - 1):
        width = width_of(offsets[i], offsets[i + 1], n)
        if width:
            total += offsets[i + 1] - offsets[i] - width + 1
    return total


@kernel
def similarity_of(shared: int, count: int, other_count: int) -> float:
    """Return the Jaccard similarity of two sets of these sizes that share something.

    At most 1 whatever the sizes are, which were stored and may be damaged.
    """
    return shared / max(count + other_count - shared, shared)


@kernel
def _same(tokens: npt.NDArray[np.int32], a: int, b: int, width: int) -> bool:
    for i in range(width):
        if tokens[a + i] != tokens[b + i]:
            return False
    return True


@kernel
def rolling_hashes(
    tokens: npt.NDArray[np.int32], start: int, end: int, width: int, out: npt.NDArray[np.uint64]
) -> int:
    """Write a hash of each n-gram of tokens[start:end] and return how many there are."""
    if width == 0:
        return 0
    base = np.uint64(_BASE)
    value = np.uint64(0)
    leaving = np.uint64(1)
    for _ in range(width):
        leaving *= base
    for i in range(start, start + width):
        value = value * base + np.uint64(tokens[i]) + np.uint64(1)
    count = end - start - width + 1
    out[0] = value
    for k in range(1, count):
        gone = np.uint64(tokens[start + k - 1]) + np.uint64(1)
        come = np.uint64(tokens[start + k - 1 + width]) + np.uint64(1)
        value = value * base + come - gone * leaving
        out[k] = value
    return count


@kernel
def slots_for(offsets: npt.NDArray[np.int64]) -> int:
    """Return the size of a table for the n-grams of any of the documents: a power of two.

    Most places of a sparse table are free, which the processor foresees; a large one must fit.
    """
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    wanted = longest * (8 if longest <= 2048 else 2)
    size = 16
    while size < wanted:
        size *= 2
    return size


@kernel
def enter(
    tokens: npt.NDArray[np.int32],
    start: int,
    end: int,
    n: int,
    table: npt.NDArray[np.int64],
    base: int,
    hashes: npt.NDArray[np.uint64],
) -> int:
    """Put the places of a document's distinct n-grams, plus a base, into a table.

    What is below the base counts as free: with bases that grow by more than the places, such as
    multiples of 2^32, a table that was filled with -1 once need not be emptied. hashes: (tokens + 1,)
    at least, receives the hashes of all n-grams. Returns their number.
    """
    mask = np.int64(len(table) - 1)
    spread = np.uint64(_BASE)
    width = width_of(start, end, n)
    count = rolling_hashes(tokens, start, end, width, hashes)
    for k in range(count):
        slot = np.int64((hashes[k] * spread) >> np.uint64(32)) & mask
        while table[slot] >= base:
            other = table[slot] - base
            if hashes[other] == hashes[k] and _same(tokens, start + other, start + k, width):
                break
            slot = (slot + 1) & mask
        table[slot] = base + k
    return count


@kernel
def shared_with(
    tokens: npt.NDArray[np.int32],
    start: int,
    end: int,
    other_start: int,
    other_end: int,
    n: int,
    table: npt.NDArray[np.int64],
    base: int,
    hashes: npt.NDArray[np.uint64],
    seen: npt.NDArray[np.int64],
    mark: int,
    other_hashes: npt.NDArray[np.uint64],
) -> int:
    """Return how many n-grams another document shares with the one that was entered.

    seen, as long as the table and filled with -1, holds marks, which differ from one call to the
    next.
    """
    width = width_of(start, end, n)
    # Shingles of different lengths are never equal.
    if width == 0 or width_of(other_start, other_end, n) != width:
        return 0
    mask = np.int64(len(table) - 1)
    spread = np.uint64(_BASE)
    shared = 0
    for k in range(rolling_hashes(tokens, other_start, other_end, width, other_hashes)):
        slot = np.int64((other_hashes[k] * spread) >> np.uint64(32)) & mask
        while table[slot] >= base:
            other = table[slot] - base
            if hashes[other] == other_hashes[k] and _same(
                tokens, start + other, other_start + k, width
            ):
                if seen[slot] != mark:
                    seen[slot] = mark
                    shared += 1
                break
            slot = (slot + 1) & mask
    return shared


@kernel
def jaccard_pairs(
    tokens: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    shingle_counts: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    n: int,
) -> npt.NDArray[np.float64]:
    """Return the Jaccard similarity of the shingle sets of pairs of documents: shape (pairs,).

    tokens: int32, the word ids or code points of all documents; offsets: (documents + 1,);
    shingle_counts: (documents,), the distinct shingles of each; left, right: (pairs,), numbers of
    documents, fastest where equal lefts stand together; n: tokens in a shingle. Hashes only find
    the place to look: shingles are equal where all their tokens are. The similarity of documents
    without shingles is 0.
    """
    size = slots_for(offsets)
    table = np.full(size, -1, np.int64)  # the number of an n-gram of the left document
    seen = np.full(size, -1, np.int64)  # the last pair in which the slot was counted
    left_hashes = np.empty(size, np.uint64)
    right_hashes = np.empty(size, np.uint64)
    result = np.zeros(len(left), np.float64)
    current = -1
    base = 0
    for pair in range(len(left)):
        a, b = left[pair], right[pair]
        if a != current:
            current = a
            base += 1 << 32
            enter(tokens, offsets[a], offsets[a + 1], n, table, base, left_hashes)
        shared = shared_with(
            tokens,
            offsets[a],
            offsets[a + 1],
            offsets[b],
            offsets[b + 1],
            n,
            table,
            base,
            left_hashes,
            seen,
            pair,
            right_hashes,
        )
        if shared:
            result[pair] = similarity_of(shared, shingle_counts[a], shingle_counts[b])
    return result


@kernel
def shares_earlier_band(
    signatures: npt.NDArray[np.int32],
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    bands: npt.NDArray[np.int16],
    rows: int,
) -> npt.NDArray[np.bool_]:
    """Say for each pair whether a band before the given one is equal in both signatures.

    signatures: (documents, num_hashes); left, right, bands: (pairs,).
    """
    result = np.zeros(len(left), np.bool_)
    for pair in range(len(left)):
        for j in range(bands[pair]):
            equal = True
            for k in range(j * rows, (j + 1) * rows):
                if signatures[left[pair], k] != signatures[right[pair], k]:
                    equal = False
                    break
            if equal:
                result[pair] = True
                break
    return result
