"""The values of common shingles, which an exact corpus puts last among the keys of a document; pure.

A look-up reads all documents that have a key, so a key that few documents have is cheap. Any order of
the values finds the same pairs, if all documents of a corpus have the same order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from textsim_db.settings import Shingle
from textsim_db.text.array_types import Int16Array, Int64Array
from textsim_db.text.shingles import find_shingles
from textsim_db.text.tokens import Tokens

FEWEST_DOCUMENTS = 100
"""A sample of fewer documents does not show which shingles are common."""
COMMON_SHARE = 1 / 20_000
"""A shingle is common if this share of the documents of a sample has it, and at least two have."""


class CommonValues(NamedTuple):
    """The values of common shingles, sorted, and their classes: (values,) each.

    The class is the logarithm to base 2 of the number of documents that have the shingle in the sample,
    rounded down, and at least 1. Values that are not listed have class 0.
    """

    values: Int64Array
    classes: Int16Array


NO_COMMON = CommonValues(np.empty(0, np.int64), np.empty(0, np.int16))


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
    values, counts = np.unique(np.concatenate(hashes), return_counts=True)
    is_common = counts >= max(2, documents * COMMON_SHARE)
    classes = np.log2(counts[is_common]).astype(np.int16)
    return CommonValues(values[is_common], classes)
