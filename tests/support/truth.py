"""All pairs of texts at or above a similarity, by the number of shingles that each two texts share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np
import pytest

from textsim_db.text.shingles import shingles

Pairs = dict[tuple[str, str], float]
CELLS_AT_ONCE = 50_000_000
"""The pairs of texts that are counted at once."""


def brute_force(texts: Mapping[str, str], shingle: str, threshold: float) -> Pairs:
    """Return the similarity of each pair that reaches the threshold, in the order of its keys.

    No filter: the product of the characteristic matrix with itself counts the shared shingles of all
    pairs. Empty texts are similar to none.
    """
    sparse = pytest.importorskip("scipy.sparse")
    keys = sorted(texts)
    sets = [set(shingles(texts[key], shingle)) for key in keys]
    number: dict[str, int] = {}
    columns = [number.setdefault(s, len(number)) for s in chain.from_iterable(sets)]
    sizes = np.array([len(elements) for elements in sets], np.int64)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    ones = np.ones(len(columns), np.int32)
    matrix = sparse.csr_matrix((ones, columns, offsets), shape=(len(keys), max(1, len(number))))
    transposed = matrix.T.tocsr()
    pairs: Pairs = {}
    for part in _parts(len(keys)):
        shared = (matrix[part] @ transposed).tocoo()
        left, right = shared.row.astype(np.int64) + part.start, shared.col.astype(np.int64)
        union = sizes[left] + sizes[right] - shared.data
        similarity = shared.data / union
        reach = (left < right) & (similarity >= threshold)
        columns_of_pairs = (left[reach], right[reach], similarity[reach])
        for a, b, value in zip(*(c.tolist() for c in columns_of_pairs), strict=True):
            pairs[keys[a], keys[b]] = value
    return pairs


def _parts(count: int) -> Iterator[slice]:
    step = max(1, CELLS_AT_ONCE // max(1, count))
    for start in range(0, count, step):
        yield slice(start, min(count, start + step))
