"""Classic MinHash signatures of sets, as in textbooks, for teaching.

A corpus does not use them: it uses textsim_db.sketch.fast_similarity, which is many times as fast.

h_i = min over the shingle values x of (a_i * x + b_i) mod p, with p = 2^31 - 1. Broder, Charikar,
Frieze and Mitzenmacher, "Min-wise independent permutations", 2000.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.sketch.fast_similarity import splitmix64

PRIME = 2**31 - 1


class Coefficients(NamedTuple):
    """The hash functions (a x + b) mod p."""

    a: npt.NDArray[np.int64]
    """From 1 to p - 1: (num_hashes,)."""
    b: npt.NDArray[np.int64]
    """From 0 to p - 1: (num_hashes,)."""


@lru_cache(maxsize=64)
def coefficients(seed: int, num_hashes: int) -> Coefficients:
    """Draw a and b of each hash in turn from splitmix64."""
    draws = list(islice(splitmix64(seed), 2 * num_hashes))
    a = np.array([1 + draw % (PRIME - 1) for draw in draws[0::2]], np.int64)
    b = np.array([draw % PRIME for draw in draws[1::2]], np.int64)
    return Coefficients(a, b)


def signatures(
    hashes: npt.NDArray[np.uint64],
    offsets: npt.NDArray[np.int64],
    a: npt.NDArray[np.int64],
    b: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    """Return the signatures of several documents: int32 of shape (documents, num_hashes).

    hashes: the low 31 bits of the hash of each distinct shingle are used. offsets: (documents + 1,).
    The signature of a document without shingles is all p.
    """
    prime = np.uint64(PRIME)
    x = hashes & prime
    result = np.full((len(offsets) - 1, len(a)), PRIME, np.int32)
    documents = np.flatnonzero(np.diff(offsets))
    if len(documents):
        for k in range(len(a)):  # all products are below 2^62
            values = (np.uint64(a[k]) * x + np.uint64(b[k])) % prime
            result[documents, k] = np.minimum.reduceat(values, offsets[documents])
    return result
