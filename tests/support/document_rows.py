"""Documents of numbered words as the kernels compare them, and the shingles of one by Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from textsim_db.compare.pair_values import Rows


def grams(document: Sequence[int], n: int) -> set[tuple[int, ...]]:
    """Return the shingles of n words; a shorter document is one shingle."""
    width = min(n, len(document))
    return {tuple(document[i : i + width]) for i in range(len(document) - width + 1) if width}


def rows_of(documents: Sequence[Sequence[int]], n: int) -> Rows:
    return Rows(
        np.array([token for document in documents for token in document], np.int32),
        np.cumsum([0, *map(len, documents)], dtype=np.int64),
        np.array([len(grams(document, n)) for document in documents], np.int64),
        n,
    )
