"""How often the same numbers occur in two documents, for measures of counts; pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.compare.jaccard import slots_for
from textsim_db.text.compiler import kernel

_SPREAD = 0x9E3779B97F4A7C15


class Sums(NamedTuple):
    """Sums over the items of pairs of documents, x and y being their counts: int64 (pairs,) each.

    products: of x y; left, right: of x^2 and of y^2; differences: of |x - y|; shared: of min(x, y).
    """

    products: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    differences: npt.NDArray[np.int64]
    shared: npt.NDArray[np.int64]


def sums_of_pairs(
    tokens: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
) -> Sums:
    """Return the sums for pairs of documents.

    tokens: int32, the numbers of all documents; offsets: (documents + 1,); left, right: (pairs,),
    numbers of documents, fastest where equal lefts stand together.
    """
    return Sums(*_sums(tokens, offsets, left, right))


@kernel
def _sums(
    tokens: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    size = 2 * slots_for(offsets)  # for the items of two documents
    entered = np.empty(size, np.int64)
    distinct = 0
    mask = np.int64(size - 1)
    spread = np.uint64(_SPREAD)
    items = np.zeros(size, np.int32)
    counts = np.zeros(size, np.int64)  # in the left document; 0: the slot is free
    others = np.zeros(size, np.int64)  # in the right one, set back after each pair
    touched = np.empty(size, np.int64)
    result = np.zeros((5, len(left)), np.int64)
    current = -1
    squares = 0
    for pair in range(len(left)):
        a, b = left[pair], right[pair]
        if a != current:
            current = a
            for i in range(distinct):
                counts[entered[i]] = 0
            squares, distinct = 0, 0
            for i in range(offsets[a], offsets[a + 1]):
                slot = np.int64((np.uint64(tokens[i]) * spread) >> np.uint64(40)) & mask
                while counts[slot] and items[slot] != tokens[i]:
                    slot = (slot + 1) & mask
                if not counts[slot]:
                    items[slot] = tokens[i]
                    entered[distinct] = slot
                    distinct += 1
                squares += 2 * counts[slot] + 1  # (x + 1)^2 - x^2
                counts[slot] += 1
        product, shared, met, other_squares = 0, 0, 0, 0
        # Items that the left document lacks take free slots for as long as the pair lasts.
        for i in range(offsets[b], offsets[b + 1]):
            slot = np.int64((np.uint64(tokens[i]) * spread) >> np.uint64(40)) & mask
            while (counts[slot] or others[slot]) and items[slot] != tokens[i]:
                slot = (slot + 1) & mask
            if not others[slot]:
                items[slot] = tokens[i]
                touched[met] = slot
                met += 1
            other_squares += 2 * others[slot] + 1
            product += counts[slot]
            if others[slot] < counts[slot]:
                shared += 1
            others[slot] += 1
        for i in range(met):
            others[touched[i]] = 0
        lengths = offsets[a + 1] - offsets[a] + offsets[b + 1] - offsets[b]
        result[0, pair] = product
        result[1, pair] = squares
        result[2, pair] = other_squares
        result[3, pair] = lengths - 2 * shared
        result[4, pair] = shared
    return result
