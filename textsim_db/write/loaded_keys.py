"""A set of keys that only grows, at 16 to 32 bytes each: which keys a call has met."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from textsim_db.text.array_types import BoolArray, HashArray
from textsim_db.text.hash_table import SPREAD, HashTable, enter, find, is_taken, table_of
from textsim_db.text.numba_compiler import kernel


class KeySet:
    """The keys met so far, by Python's own hash.

    Two different keys are taken for the same with a probability of 2^-64, which would put one of
    them into the wrong count of a report.
    """

    def __init__(self) -> None:
        self._table = table_of(np.empty(1 << 13, np.uint64), 0, SPREAD)
        self._count = 0

    def meet(self, keys: Iterable[str]) -> BoolArray:
        """Take in keys, all different, and say which of them were there: shape (keys,)."""
        hashes = np.fromiter(map(hash, keys), np.int64).view(np.uint64)
        self._make_room(len(hashes))
        were_there = _enter_all(self._table, hashes, self._count)
        self._count += int(np.count_nonzero(~were_there))
        return were_there

    def _make_room(self, keys: int) -> None:
        if self._count + keys > len(self._table.hashes):
            hashes = np.empty(1 << (self._count + keys).bit_length(), np.uint64)
            hashes[: self._count] = self._table.hashes[: self._count]
            self._table = table_of(hashes, self._count, SPREAD)


@kernel
def _enter_all(table: HashTable, hashes: HashArray, count: int) -> BoolArray:
    """Enter hashes from the number count on, and say which of them were there."""
    were_there = np.zeros(len(hashes), np.bool_)
    for i in range(len(hashes)):
        slot = find(table, hashes[i])
        were_there[i] = is_taken(table, slot)
        if not were_there[i]:
            enter(table, slot, count)
            table.hashes[count] = hashes[i]
            count += 1
    return were_there
