"""Brute force: the similarities of some documents to all documents, as a product of sparse matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from textsim_db.text.shingles import shingles

Documents = Sequence[tuple[str, str]]


def truth(documents: Documents, asked: Sequence[str], threshold: float) -> dict[str, set[str]]:
    """Return, for each asked key, the keys of the documents whose similarity reaches the threshold."""
    from scipy.sparse import csr_matrix

    # Only the shingles of the asked documents can be shared with them.
    texts = dict(documents)
    columns: dict[str, int] = {}
    for key in asked:
        for shingle in shingles(texts[key], "word:3"):
            columns.setdefault(shingle, len(columns))
    starts, places, counts = [0], [], []
    for _, text in documents:
        found_here = shingles(text, "word:3")
        places += [columns[s] for s in found_here if s in columns]
        starts.append(len(places))
        counts.append(len(found_here))
    matrix = csr_matrix(
        (np.ones(len(places), np.int32), places, starts), (len(documents), len(columns))
    )
    sizes = np.array(counts)
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
