"""A set of keys that only grows; it takes 16 to 32 bytes a key."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from textsim_db.text.array_types import BoolArray, HashArray
from textsim_db.text.hash_table import SPREAD, HashTable, enter, find, is_taken, table_of
from textsim_db.text.numba_compiler import kernel


class KeySet:
    """The keys that a call has written so far, by Python's own hash.

    Two different keys have the same hash with a probability of 2^-64. Then a report would count one of
    them as a repeated key.
    """

    def __init__(self) -> None:
        self._table = table_of(np.empty(1 << 13, np.uint64), 0, SPREAD)
        self._count = 0

    def meet(self, keys: Iterable[str]) -> BoolArray:
        """Add distinct keys, and return which of them the set already had: bool of shape (keys,)."""
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
    """Enter hashes, numbered from count, and return which of them the table already had."""
    were_there = np.zeros(len(hashes), np.bool_)
    for i in range(len(hashes)):
        slot = find(table, hashes[i])
        were_there[i] = is_taken(table, slot)
        if not were_there[i]:
            enter(table, slot, count)
            table.hashes[count] = hashes[i]
            count += 1
    return were_there
