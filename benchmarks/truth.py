"""Brute force: the similarities of some documents to all others, by a product of sparse matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from textsim_db.text import shingles

Documents = Sequence[tuple[str, str]]


def truth(documents: Documents, asked: Sequence[str], threshold: float) -> dict[str, set[str]]:
    """Return the keys of the documents whose similarity to each asked one reaches the threshold."""
    from scipy.sparse import csr_matrix

    columns: dict[str, int] = {}
    starts, places = [0], []
    for _, text in documents:
        places += [columns.setdefault(s, len(columns)) for s in shingles(text, "word:3")]
        starts.append(len(places))
    matrix = csr_matrix(
        (np.ones(len(places), np.int32), places, starts), (len(documents), len(columns))
    )
    sizes = np.diff(starts)
    number = {key: i for i, (key, _) in enumerate(documents)}
    rows = [number[key] for key in asked]
    shared = (matrix[rows] @ matrix.T).tocsr()
    found = {}
    for i, key in enumerate(asked):
        others = shared.indices[shared.indptr[i] : shared.indptr[i + 1]]
        both = shared.data[shared.indptr[i] : shared.indptr[i + 1]]
        similarity = both / (sizes[rows[i]] + sizes[others] - both)
        found[key] = {documents[j][0] for j in others[similarity >= threshold]} - {key}
    return found
