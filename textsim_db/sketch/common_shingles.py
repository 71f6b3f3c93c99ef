"""The values of common shingles, which an exact corpus puts last in the prefix of a document; pure.

A search reads all documents that share a value with the query, so a rare value is cheap. Any order of
the values finds the same pairs, if all documents of a corpus have the same order.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

import numpy as np

from textsim_db.settings import Shingle
from textsim_db.text.array_types import Int16Array, Int32Array, Int64Array
from textsim_db.text.numba_compiler import inlined_kernel
from textsim_db.text.shingles import find_shingles
from textsim_db.text.tokens import Tokens

FEWEST_DOCUMENTS = 100
"""A sample of fewer documents does not show which shingles are common."""
COMMON_SHARE = 1 / 20_000
"""A shingle is common if this share of the documents of a sample has it, and at least two documents."""


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


def learn_common(samples: Iterable[Tokens], shingle: Shingle) -> CommonValues:
    """Return the common shingles of a sample of documents, which comes in parts.

    Returns none if there are fewer than FEWEST_DOCUMENTS documents.
    """
    hashes = [np.empty(0, np.int64)]
    documents = 0
    for tokens in samples:
        documents += len(tokens.word_offsets) - 1
        hashes.append(find_shingles(tokens, shingle).hashes.view(np.int64))
    if documents < FEWEST_DOCUMENTS:
        return NO_COMMON
    return _values_with(np.concatenate(hashes), max(2, ceil(documents * COMMON_SHARE)))


def _values_with(hashes: Int64Array, least: int) -> CommonValues:
    """Return the values that occur `least` times or more, with their classes; sorts the hashes.

    least: 2 or more.
    """
    hashes.sort()
    # A value that occurs n times is here n - least + 1 times.
    repeated = hashes[: 1 - least][hashes[: 1 - least] == hashes[least - 1 :]]
    starts = np.flatnonzero(np.append(True, repeated[1:] != repeated[:-1])[: len(repeated)])
    counts = np.diff(starts, append=len(repeated)) + least - 1
    return common_values(repeated[starts], np.log2(counts).astype(np.int16))
