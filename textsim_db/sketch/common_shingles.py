"""The values of common shingles, which come last in the prefix of a document and in a window; pure.

A search reads all documents that share a value with the query, so a rare value is cheap. Any order of
the values finds the same pairs and passages, if all documents of a corpus have the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.text.array_types import Int16Array, Int32Array, Int64Array
from textsim_db.text.numba_compiler import inlined_kernel


class CommonValues(NamedTuple):
    """The values of common shingles and their classes.

    The class is the logarithm to base 2 of the number of documents that have the shingle in the sample,
    rounded down, and at least 1. A value that is not listed has class 0. A value is found by its leading
    bits: values are hashes, so few values begin with the same bits.
    """

    values: Int64Array
    """Sorted: (values,)."""
    classes: Int16Array
    """The class of each value: (values,)."""
    starts: Int32Array
    """For each number of leading bits, the place of the first value with these bits; then the end."""
    shift: int
    """How many bits follow the leading bits."""


def common_values(values: Int64Array, classes: Int16Array) -> CommonValues:
    """Return a list of common values; values: sorted, distinct."""
    bits = max(1, len(values).bit_length())
    first = np.arange(-(2 ** (bits - 1)), 2 ** (bits - 1)) << (64 - bits)
    starts = np.append(np.searchsorted(values, first), len(values))
    return CommonValues(values, classes, starts.astype(np.int32), 64 - bits)


NO_COMMON = common_values(np.empty(0, np.int64), np.empty(0, np.int16))


@inlined_kernel
def class_of(value: np.int64, common: CommonValues) -> int:
    """Return the class of a value, 0 if it is not listed."""
    slot = (value >> common.shift) + (1 << (63 - common.shift))
    for place in range(common.starts[slot], common.starts[slot + 1]):
        if common.values[place] == value:
            return int(common.classes[place])
    return 0
