"""Whether two documents are taken for one; pure. textsim._merges decides the same in SQL."""

from __future__ import annotations

import numpy as np

from textsim_db.text.array_types import BoolArray, FloatArray, Int64Array
from textsim_db.text.numba_compiler import inlined_kernel, kernel

NONE_APART = np.empty(0, np.int64)
"""No pair was judged different."""


@inlined_kernel
def merges(similarity: float, threshold: float, left: int, right: int, apart: Int64Array) -> bool:
    """Return whether two documents match, and nobody judged them different.

    left, right: the numbers of the documents. apart: the pairs that were judged different, packed by
    pack() with either document on the left, and sorted.
    """
    if similarity < threshold:
        return False
    pair = (np.int64(left) << 32) | np.int64(right)
    place = np.searchsorted(apart, pair)
    return not (place < len(apart) and apart[place] == pair)


@kernel
def which_merge(
    similarities: FloatArray,
    threshold: float,
    left: Int64Array,
    right: Int64Array,
    apart: Int64Array,
) -> BoolArray:
    """Return for each pair whether its documents merge: (pairs,); apart is as in merges()."""
    are_merged = np.zeros(len(left), np.bool_)
    for pair in range(len(left)):
        are_merged[pair] = merges(similarities[pair], threshold, left[pair], right[pair], apart)
    return are_merged
