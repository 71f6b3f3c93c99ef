"""Pairs of documents, each packed into one number: made from buckets, sorted, distinct; pure."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.sketch.ragged import Ragged
from textsim_db.text.array_types import BoolArray, ByteArray, Int16Array, Int32Array, Int64Array
from textsim_db.text.numba_compiler import inlined_kernel, kernel

Ids = npt.NDArray[np.signedinteger[Any]]
"""Ids of documents: int32 as they are read, int64 in comparisons."""

_LOW = 0xFFFFFFFF
_SIGN = 2**31


class Members(NamedTuple):
    """The documents of several buckets.

    ids: int32, one bucket after another, sorted in each; a document that has a bucket twice is in it
    twice. offsets: (buckets + 1,), the bounds of each bucket.
    """

    ids: Int32Array
    offsets: Int64Array

    @property
    def sizes(self) -> Int64Array:
        """The number of rows of each bucket."""
        return np.diff(self.offsets)

    def take(self, chosen: BoolArray) -> Members:
        """Return the chosen buckets; chosen: (buckets,)."""
        sizes = self.sizes
        return Members(self.ids[np.repeat(chosen, sizes)], offsets_of(sizes[chosen]))

    def keep(self, kept: BoolArray) -> Members:
        """Return the buckets with the kept documents only; kept: (ids,)."""
        return Members(self.ids[kept], offsets_of(kept)[self.offsets])


class Part(NamedTuple):
    """The pairs of one round: the id of the left document leaves the remainder number."""

    number: int
    rounds: int


ALL = Part(0, 1)


def offsets_of(sizes: npt.NDArray[np.integer[Any] | np.bool_]) -> Int64Array:
    """Return the bounds of parts of these sizes: int64 of shape (parts + 1,)."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def members_of(places: Int32Array, ids: Int32Array, buckets: int) -> Members:
    """Return the members of buckets from band rows, in any order.

    places: (rows,), the number of the bucket of each row, from 0; ids: (rows,).
    """
    rows = np.sort((places.astype(np.int64) << 32) + (ids.astype(np.int64) + _SIGN))
    bounds = np.searchsorted(rows, np.arange(buckets + 1, dtype=np.int64) << 32)
    return Members(((rows & _LOW) - _SIGN).astype(np.int32), bounds)


def joined_members(parts: list[Members]) -> Members:
    """Return the buckets of several parts as one."""
    sizes = np.concatenate([np.zeros(0, np.int64), *(part.sizes for part in parts)])
    ids = np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)])
    return Members(ids, offsets_of(sizes))


def pack(left: Ids, right: Ids) -> Int64Array:
    """Pack pairs into numbers, which sort by the left document and then by the right one."""
    return (left.astype(np.int64) << 32) | (right.astype(np.int64) & _LOW)


def left_of(pairs: Int64Array) -> Int64Array:
    """Return the left document of each pair."""
    return pairs >> 32


def right_of(pairs: Int64Array) -> Int64Array:
    """Return the right document of each pair."""
    return pairs.astype(np.int32).astype(np.int64)


def count_pairs(sizes: Int64Array) -> int:
    """Return the number of pairs in buckets of these sizes."""
    return int((sizes * (sizes - 1) // 2).sum())


def pairs_of(members: Members, part: Part = ALL) -> Int64Array:
    """Return the pairs of each bucket that belong to a part; a pair comes once for each bucket."""
    return _pairs_of(members, part)


@kernel
def _pairs_of(members: Members, part: Part) -> Int64Array:
    ids, offsets = members
    pairs = np.empty(_count_pairs_of(ids, offsets, part.number, part.rounds), np.int64)
    count = 0
    for bucket in range(len(offsets) - 1):
        for i in range(offsets[bucket], offsets[bucket + 1]):
            if ids[i] % part.rounds == part.number:
                for k in range(i + 1, offsets[bucket + 1]):
                    pairs[count] = np.int64(ids[i]) << 32 | np.int64(ids[k]) & _LOW
                    count += ids[i] != ids[k]
    return pairs[:count]


@inlined_kernel
def _count_pairs_of(ids: Int32Array, offsets: Int64Array, number: int, rounds: int) -> int:
    count = 0
    for bucket in range(len(offsets) - 1):
        for i in range(offsets[bucket], offsets[bucket + 1]):
            if ids[i] % rounds == number:
                count += offsets[bucket + 1] - i - 1
    return count


def distinct(parts: list[Int64Array]) -> tuple[Int64Array, ByteArray]:
    """Return the distinct pairs of all parts, sorted, and how often each occurred: uint8, at most 255.

    Empties the list of parts, so that their memory is free while the pairs are sorted.
    """
    pairs = np.concatenate([np.zeros(0, np.int64), *parts])
    parts.clear()
    pairs.sort()
    counts = np.ones(len(pairs), np.uint8)
    count = _remove_repeated(pairs, counts)
    return pairs[:count], counts[:count]


@kernel
def _remove_repeated(pairs: Int64Array, counts: ByteArray) -> int:
    """Move the distinct pairs of a sorted array to its front, and return their number."""
    count = 0
    for i in range(len(pairs)):
        if count and pairs[i] == pairs[count - 1]:
            counts[count - 1] += counts[count - 1] < 255
        else:
            pairs[count] = pairs[i]
            count += 1
    return count


def is_among(ids: Ids, chosen: Ids) -> BoolArray:
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
    """Return how many buckets the documents of each pair share, as a join counts them: (pairs,).

    left_numbers, right_numbers: (pairs,), the numbers of the documents on either side.
    """
    shared = np.zeros(len(left_numbers), np.int64)
    for pair in range(len(left_numbers)):
        a, b = left_numbers[pair], right_numbers[pair]
        for i in range(left.offsets[a], left.offsets[a + 1]):
            for k in range(right.offsets[b], right.offsets[b + 1]):
                shared[pair] += left.values[i] == right.values[k]
    return shared
