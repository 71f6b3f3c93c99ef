"""A bounded cache of dictionary entries, looked up by kernels for whole batches of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from textsim_db.text.numba_compiler import kernel
from textsim_db.text.tokens import Tokens

Scalar = TypeVar("Scalar", bound=np.generic)

MAX_WORDS = 2_000_000
MAX_BYTES = 64 * 1024 * 1024


class WordCache:
    """Words with their hashes and ids; emptied when it is full, as hot words come back at once.

    At its limits it takes about 120 MB. Words are compared by their bytes: the hash only finds the
    place to look.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget every word."""
        self._count = 0
        self._table = np.full(1 << 12, -1, np.int32)
        self._hashes: npt.NDArray[np.int64] = np.empty(1 << 11, np.int64)
        self._ids: npt.NDArray[np.int32] = np.empty(1 << 11, np.int32)
        self._starts: npt.NDArray[np.int64] = np.zeros((1 << 11) + 1, np.int64)
        self._bytes: npt.NDArray[np.uint8] = np.empty(1 << 14, np.uint8)

    def __len__(self) -> int:
        return self._count

    def find(self, tokens: Tokens, hashes: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the id of each word of a batch, 0 where it is not here: int32 of shape (words,)."""
        return _find(
            self._table,
            self._hashes,
            self._ids,
            self._starts,
            self._bytes,
            tokens.normal,
            tokens.starts,
            tokens.ends,
            hashes,
        )

    def add(
        self, hashes: npt.NDArray[np.int64], ids: npt.NDArray[np.int32], words: Sequence[bytes]
    ) -> None:
        """Take in words that are not here yet, all of them different."""
        if not len(hashes):
            return
        data = b"".join(words)
        if (
            self._count + len(words) > MAX_WORDS
            or self._starts[self._count] + len(data) > MAX_BYTES
        ):
            self.clear()
        first = self._count
        count = first + len(words)
        used = int(self._starts[first])
        self._hashes = _grown(self._hashes, count)
        self._ids = _grown(self._ids, count)
        self._starts = _grown(self._starts, count + 1)
        self._bytes = _grown(self._bytes, used + len(data))
        self._hashes[first:count] = hashes
        self._ids[first:count] = ids
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        self._starts[first + 1 : count + 1] = used + np.cumsum(lengths)
        self._bytes[used : used + len(data)] = np.frombuffer(data, np.uint8)
        if 2 * count > len(self._table):
            self._table = np.full(_power_of_two(4 * count), -1, np.int32)
            first = 0
        _enter(self._table, self._hashes, first, count)
        self._count = count


def _power_of_two(at_least: int) -> int:
    return 1 << (at_least - 1).bit_length()


def _grown(array: npt.NDArray[Scalar], size: int) -> npt.NDArray[Scalar]:
    if size <= len(array):
        return array
    larger = np.empty(_power_of_two(size), array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def _find(
    table: npt.NDArray[np.int32],
    cached_hashes: npt.NDArray[np.int64],
    cached_ids: npt.NDArray[np.int32],
    cached_starts: npt.NDArray[np.int64],
    cached_bytes: npt.NDArray[np.uint8],
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int32],
    ends: npt.NDArray[np.int32],
    hashes: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    mask = len(table) - 1
    ids = np.zeros(len(starts), np.int32)
    for i in range(len(starts)):
        slot = hashes[i] & mask
        length = ends[i] - starts[i]
        while table[slot] >= 0:
            entry = table[slot]
            begin = cached_starts[entry]
            if cached_hashes[entry] == hashes[i] and cached_starts[entry + 1] - begin == length:
                equal = True
                for k in range(length):
                    if cached_bytes[begin + k] != data[starts[i] + k]:
                        equal = False
                        break
                if equal:
                    ids[i] = cached_ids[entry]
                    break
            slot = (slot + 1) & mask
    return ids


@kernel
def _enter(
    table: npt.NDArray[np.int32], hashes: npt.NDArray[np.int64], first: int, count: int
) -> None:
    mask = len(table) - 1
    for entry in range(first, count):
        slot = hashes[entry] & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = entry
