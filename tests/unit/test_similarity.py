"""The similarity kernel against plain sets of tuples."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.support.document_rows import grams, rows_of
from tests.support.reference import jaccard
from textsim_db.compare.jaccard import jaccard_pairs


def every_pair(count: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(count) for b in range(count)]


def similarities(documents: list[list[int]], pairs: list[tuple[int, int]], n: int) -> list[float]:
    computed = jaccard_pairs(
        rows_of(documents, n),
        np.array([pair[0] for pair in pairs], np.int64),
        np.array([pair[1] for pair in pairs], np.int64),
    )
    return [float(value) for value in computed]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("variety", [1, 2, 5, 2**31 - 1])
def test_similarities_of_random_documents_equal_the_reference(
    rng: random.Random, n: int, variety: int
) -> None:
    documents = [
        [rng.randrange(variety) for _ in range(rng.choice([0, 1, 2, 3, 5, 20, 60]))]
        for _ in range(40)
    ]
    documents += [document[: len(document) // 2] for document in documents[:10]]
    pairs = every_pair(len(documents))
    computed = similarities(documents, pairs, n)
    expected = [jaccard(grams(documents[a], n), grams(documents[b], n)) for a, b in pairs]
    assert computed == expected
    order = list(range(len(pairs)))
    rng.shuffle(order)
    shuffled = similarities(documents, [pairs[i] for i in order], n)
    assert shuffled == [expected[i] for i in order]


def test_similarities_are_exact_for_tokens_that_confuse_a_rolling_hash() -> None:
    documents = [
        [0, 0, 0, 1],
        [0, 0, 1],
        [0, 1],
        [1, 0],
        [1],
        [0],
        [],
        [-1, -1],
        [-1],
        [2**31 - 1] * 3,
    ]
    pairs = every_pair(len(documents))
    for n in (1, 2, 3, 4):
        assert similarities(documents, pairs, n) == [
            jaccard(grams(documents[a], n), grams(documents[b], n)) for a, b in pairs
        ]


def test_no_pairs_have_no_similarities() -> None:
    assert similarities([[1, 2]], [], 2) == []
    assert similarities([], [], 2) == []
