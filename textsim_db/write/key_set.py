"""A set of 64-bit hashes that only grows, at 16 to 32 bytes each: which keys a call has met."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from textsim_db.text.compiler import kernel


class SeenKeys:
    """The keys met so far, by Python's own hash.

    Two different ones are taken for the same with a probability of 2^-64, which would put one of
    them into the wrong count of a report.
    """

    def __init__(self) -> None:
        self._table = np.zeros(1 << 14, np.int64)
        self._count = 0

    def meet(self, keys: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Take in some keys, all different, and say which of them were there: shape (keys,)."""
        # 0 marks an empty slot, so it gives way to a neighbour.
        hashes = np.fromiter((hash(key) or 1 for key in keys), np.int64)
        if 2 * (self._count + len(hashes)) > len(self._table):
            size = 1 << (4 * (self._count + len(hashes))).bit_length()
            former, self._table = self._table[self._table != 0], np.zeros(size, np.int64)
            _enter(self._table, former)
        known = _enter(self._table, hashes)
        self._count += int(np.count_nonzero(~known))
        return known


@kernel
def _enter(table: npt.NDArray[np.int64], hashes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    mask = len(table) - 1
    known = np.zeros(len(hashes), np.bool_)
    for i in range(len(hashes)):
        slot = hashes[i] & mask
        while table[slot] != 0 and table[slot] != hashes[i]:
            slot = (slot + 1) & mask
        known[i] = table[slot] != 0
        table[slot] = hashes[i]
    return known
