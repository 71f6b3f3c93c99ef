"""Buckets as lists of documents, and pairs of documents, each packed into one number; pure."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import (
    BoolArray,
    Int16Array,
    Int32Array,
    Int64Array,
    kernel,
)
from textsim_db.sketch.ragged import Ragged, begins_run, offsets_of

AnyIds = npt.NDArray[np.signedinteger[Any]]
"""Ids of documents: int32 as they are read, int64 in comparisons."""

_LOW = 0xFFFFFFFF


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
    """The number of rounds."""


ONLY_ROUND = Round(0, 1)


def grouped(rows: Int64Array, crowded: int) -> tuple[Members, Members]:
    """Return the small buckets, of up to `crowded` rows, and the large buckets, of several documents.

    rows: band rows, sorted, each the bucket in the high half, and the id plus 2^31 in the low half.
    """
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
