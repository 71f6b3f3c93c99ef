"""The formulas for many pairs of documents, compared with the functions on plain sequences."""

from __future__ import annotations

import random

import numpy as np
import pytest

from textsim_db.compare.document_rows import Rows
from textsim_db.compare.verify import Criterion, values_of_pairs
from textsim_db.measures import MEASURES, Measure

Document = list[int]


def shingles_of(document: Document, n: int) -> set[tuple[int, ...]]:
    width = min(n, len(document))
    return {tuple(document[i : i + width]) for i in range(len(document) - width + 1) if width}


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
def test_a_batch_has_the_values_of_the_function(measure: Measure, rng: random.Random) -> None:
    n = rng.choice((1, 2, 3))
    documents = [[rng.randrange(9) for _ in range(rng.randrange(12))] for _ in range(40)]
    sets = [shingles_of(document, n) for document in documents]
    rows = Rows(
        np.array([token for document in documents for token in document], np.int32),
        np.cumsum([0, *map(len, documents)], dtype=np.int64),
        np.array([len(shingles) for shingles in sets], np.int64),
        n,
    )
    left, right = (side.ravel() for side in np.indices((40, 40)))
    loosest = 1000.0 if measure.is_distance else 1e-9
    values = values_of_pairs(Criterion(measure, loosest), rows, left, right)
    compared = [list(s) for s in sets] if measure.of_shingles else documents
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    assert values.tolist() == [measure.function(compared[a], compared[b]) for a, b in pairs]


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
def test_no_match_is_below_the_least_jaccard_similarity(
    measure: Measure, rng: random.Random
) -> None:
    jaccard, bounds = MEASURES["jaccard"].function, 0
    for _ in range(500):
        a = "".join(rng.choices("abc", k=rng.randrange(1, 6)))
        b = rng.choice((a, a + "d", "".join(rng.choices("abc", k=3))))
        threshold = measure.function(a, b)
        if not measure.is_distance and not threshold:
            continue
        least = measure.least_jaccard(threshold)
        bounds += least is not None
        assert least is None or jaccard(a, b) >= least - 1e-12
    assert bool(bounds) == (measure.least_jaccard(0.0 if measure.is_distance else 1.0) is not None)
