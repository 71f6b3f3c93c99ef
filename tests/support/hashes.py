"""PostgreSQL's hashes of integers and arrays, from the steps of textsim_db.text.hashing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from textsim_db.text.hashing import fold, hash_folded, seeded
from textsim_db.text.numba_compiler import Int64Array, kernel


@kernel
def hash_integers(values: Int64Array, seed: int) -> Int64Array:
    """Return hashint8extended(value, seed) of each value: int64 of the same shape."""
    a, b, c = seeded(seed)
    hashes = np.empty(len(values), np.int64)
    for i in range(len(values)):
        high, low = hash_folded(a, b, c, fold(values[i]))
        hashes[i] = np.int64((np.uint64(high) << np.uint64(32)) | np.uint64(low))
    return hashes


def hash_array(values: Sequence[int], seed: int) -> int:
    """Return hash_array_extended(values, seed) of integers of any type."""
    value = 1
    for element in hash_integers(np.array(values, np.int64), seed).tolist():
        value = value * 31 + element
    return (value + 2**63) % 2**64 - 2**63
