"""Signatures of shingle sets by fast similarity sketching, and their buckets.

Two signatures have equal values in one place with a probability equal to the Jaccard similarity of
their sets. Dahlgaard, Knudsen and Thorup, "Fast Similarity Sketching", FOCS 2017, section 2, with
t = num_hashes bins and t rounds.

In round r, hashint8extended(value, base + r) sends every shingle to a bin. The low half of the hash
chooses the bin; the high half, as a signed integer, is the shingle's value in that bin. A bin keeps
the smallest value of the first round that reaches it. A bin k that is still empty after t rounds
takes the smallest high half of hashint8extended(value, base + t + k) of all shingles. The signature
holds the low 16 bits of each bin.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import (
    HashArray,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt32Array,
    inlined_kernel,
    kernel,
)
from textsim_db.errors import DatabaseError
from textsim_db.settings.choose_bands import Bands
from textsim_db.text.hashing import States, fold, hash_folded, seeded, seeded_states

_EMPTY = 2**63 - 1
_BLOCK = 1024
"""Shingles that are hashed at once. More would not fit in the processor's nearest cache."""
_FEW_SHINGLES = 16
"""A document with at most this many shingles is sent to bins in several rounds at once."""
_ROUNDS = 16


class _Block(NamedTuple):
    """Some shingles of a document in one round: (_BLOCK,) each."""

    bins: UInt32Array
    """The bin of each shingle."""
    high_halves: Int32Array
    """The high half of the hash of each shingle."""


def base(seed: int) -> int:
    """Return the seed of the first round: the low 62 bits of the first number of splitmix64."""
    return next(splitmix64(seed)) & (2**62 - 1)


def splitmix64(state: int) -> Iterator[int]:
    """Yield the numbers of the generator splitmix64.

    Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014, figure 17.
    """
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def signatures(values: HashArray, offsets: Int64Array, seed: int, num_hashes: int) -> Int16Array:
    """Return the signatures of several documents: int16 of shape (documents, num_hashes).

    values: the values of the distinct shingles, uint64 of shape (shingles,); offsets:
    (documents + 1,). The signature of a document without shingles is all 0.
    """
    return _signatures(values.view(np.int64), offsets, _states(seed, num_hashes))


@lru_cache(maxsize=64)
def _states(seed: int, num_hashes: int) -> States:
    """Return the hash states of all rounds and of bins that stay empty: (3, 2 * num_hashes)."""
    return seeded_states(base(seed), 2 * num_hashes)


@kernel
def _signatures(values: Int64Array, offsets: Int64Array, states: States) -> Int16Array:
    num_hashes = states.shape[1] // 2
    result = np.zeros((len(offsets) - 1, num_hashes), np.int16)
    folded = _folded(values)
    smallest = np.empty(num_hashes, np.int64)
    block = _Block(np.empty(_BLOCK, np.uint32), np.empty(_BLOCK, np.int32))
    for i in range(len(result)):
        first, last = offsets[i], offsets[i + 1]
        if first < last:
            _fill_bins(folded, first, last, states, block, smallest)
            for k in range(num_hashes):
                result[i, k] = np.int16(smallest[k])
    return result


@kernel
def _folded(values: Int64Array) -> UInt32Array:
    folded = np.empty(len(values), np.uint32)
    for j in range(len(values)):
        folded[j] = fold(values[j])
    return folded


@inlined_kernel
def _fill_bins(
    folded: UInt32Array, first: int, last: int, states: States, block: _Block, smallest: Int64Array
) -> None:
    """Fill all bins of a document with at least one shingle."""
    num_hashes = len(smallest)
    smallest[:] = _EMPTY
    if last - first <= _FEW_SHINGLES:
        empty = _send_by_shingle(folded, first, last, states, block, smallest)
    else:
        empty = _send_by_round(folded, first, last, states, block, smallest)
    if empty > 0:
        for k in range(num_hashes):
            if smallest[k] == _EMPTY:
                smallest[k] = _smallest_of_all(folded, first, last, states, num_hashes + k)


@inlined_kernel
def _send_by_round(
    folded: UInt32Array, first: int, last: int, states: States, block: _Block, smallest: Int64Array
) -> int:
    """Send all shingles to bins, round by round; return how many bins stay empty."""
    num_hashes = len(smallest)
    empty, r = num_hashes, 0
    while empty > 0 and r < num_hashes:
        a, b, c = states[0, r], states[1, r], states[2, r]
        for start in range(first, last, _BLOCK):
            size = min(_BLOCK, last - start)
            for j in range(size):
                high, low = hash_folded(a, b, c, folded[start + j])
                block.bins[j] = _bin_of(low, num_hashes)
                block.high_halves[j] = np.int32(high)
            for j in range(size):
                empty -= _send(block.bins[j], r, block.high_halves[j], smallest)
        r += 1
    return empty


@inlined_kernel
def _send_by_shingle(
    folded: UInt32Array, first: int, last: int, states: States, block: _Block, smallest: Int64Array
) -> int:
    """Send each shingle to bins in several rounds at once; return how many bins stay empty.

    This may compute rounds after all bins are full; they change nothing.
    """
    num_hashes = len(smallest)
    empty, r = num_hashes, 0
    while empty > 0 and r < num_hashes:
        rounds = min(_ROUNDS, num_hashes - r)
        for j in range(first, last):
            for q in range(rounds):
                high, low = hash_folded(
                    states[0, r + q], states[1, r + q], states[2, r + q], folded[j]
                )
                block.bins[q] = _bin_of(low, num_hashes)
                block.high_halves[q] = np.int32(high)
            for q in range(rounds):
                empty -= _send(block.bins[q], r + q, block.high_halves[q], smallest)
        r += rounds
    return empty


@inlined_kernel
def _bin_of(low: np.uint32, num_hashes: int) -> np.uint32:
    """Return (low * num_hashes) >> 32 in 32-bit arithmetic; exact for num_hashes below 2^16."""
    factor = np.uint32(num_hashes)
    upper = np.uint32(np.uint32(low >> np.uint32(16)) * factor)
    lower = np.uint32(np.uint32(low & np.uint32(0xFFFF)) * factor) >> np.uint32(16)
    return np.uint32(np.uint32(upper + lower) >> np.uint32(16))


@inlined_kernel
def _send(k: np.uint32, r: int, high_half: np.int32, smallest: Int64Array) -> int:
    """Send a shingle to a bin in round r; return 1 if the bin was empty, else 0.

    The values of a round are above the values of earlier rounds, so a full bin keeps its value.
    """
    was_empty = smallest[k] == _EMPTY
    smallest[k] = min(smallest[k], (np.int64(r) << 32) + np.int64(high_half))
    return int(was_empty)


@inlined_kernel
def _smallest_of_all(
    folded: UInt32Array, first: int, last: int, states: States, seed: int
) -> np.int64:
    """Return the smallest high half of the hashes of a document's shingles under a seed."""
    a, b, c = states[0, seed], states[1, seed], states[2, seed]
    smallest = np.int32(2**31 - 1)
    for j in range(first, last):
        high, _ = hash_folded(a, b, c, folded[j])
        smallest = min(smallest, np.int32(high))
    return np.int64(smallest)


def buckets_in_bands(signatures: Int16Array, banding: Bands) -> Int32Array:
    """Return the bucket of each document in each band: int32 of shape (documents, bands).

    signatures has the shape (documents, num_hashes). The bucket of band j is the low 32 bits, signed,
    of PostgreSQL's hash_array_extended(signature[j * rows:(j + 1) * rows], j). The band is the seed of
    the hash, so buckets of different bands are equal by chance only. Raises DatabaseError for
    signatures that are too short; only damaged rows of a database have them. Leskovec, Rajaraman and
    Ullman, "Mining of Massive Datasets", section 3.4.1.
    """
    needed = banding.bands * banding.rows
    if signatures.shape[1] < needed:
        raise DatabaseError(
            f"a stored signature has {signatures.shape[1]} values, but {banding.bands} bands of "
            f"{banding.rows} rows need {needed}; run textsim check"
        )
    return hash_bands(signatures, banding.bands, banding.rows)


@kernel
def hash_bands(signatures: Int16Array | Int32Array, bands: int, rows: int) -> Int32Array:
    """Return the low 32 bits of hash_array_extended(signature[j * rows:(j + 1) * rows], j), signed.

    signatures has the shape (documents, hashes); the result is int32 of shape (documents, bands).
    """
    buckets = np.empty((len(signatures), bands), np.int32)
    for j in range(bands):
        a, b, c = seeded(j)
        for i in range(len(signatures)):
            value = np.uint32(1)
            for k in range(j * rows, (j + 1) * rows):
                _, low = hash_folded(a, b, c, np.uint32(signatures[i, k]))
                value = np.uint32((value << np.uint32(5)) - value + low)
            buckets[i, j] = np.int32(value)
    return buckets
