"""Every measure compared with an independent implementation: SciPy or NLTK."""

from __future__ import annotations

import itertools
import math
import random
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.spatial import distance

from tests.support.real_corpora import records
from textsim_db import measures
from textsim_db.measures import words

pytestmark = pytest.mark.more

PAIRS = 2000
CORPORA = ["arxiv", "arxiv_revisions", "licences", "articles", "scripture", "languages"]
Pair = tuple[list[str], list[str]]


def random_pairs(rng: random.Random) -> list[Pair]:
    """Return pairs of sequences of up to twelve words, half of them similar."""
    pairs = []
    for _ in range(PAIRS):
        items = [f"w{i}" for i in range(rng.choice([2, 5, 20]))]
        a = rng.choices(items, k=rng.randrange(13))
        b = rng.choices(items, k=rng.randrange(13))
        if rng.random() < 0.5:
            b = [item if rng.random() < 0.8 else rng.choice(items) for item in a]
        pairs.append((a, b))
    return pairs


@cache
def real_pairs(name: str) -> list[Pair]:
    return list(itertools.pairwise(words(record["text"])[:400] for record in records(name, 800)))


@pytest.fixture(params=["random", *CORPORA])
def pairs(request: pytest.FixtureRequest, rng: random.Random) -> list[Pair]:
    return random_pairs(rng) if request.param == "random" else real_pairs(request.param)


@pytest.fixture
def nltk() -> Any:
    """NLTK, whose import takes seconds; a run without these tests does not import it."""
    import nltk

    return nltk


def test_measures_of_counts_equal_scipy(pairs: list[Pair]) -> None:
    for a, b in pairs:
        items, x, y = measures.frequencies(a, b)
        assert len(items) == len(set(a) | set(b))
        if not a or not b:
            assert (measures.cosine_similarity(a, b), measures.cosine_distance(a, b)) == (0, 90)
        else:
            cosine = measures.cosine_similarity(a, b)
            assert cosine == pytest.approx(1 - distance.cosine(x, y), abs=1e-12)
            degrees = measures.cosine_distance(a, b)
            assert math.cos(math.radians(degrees)) == pytest.approx(cosine, abs=1e-12)
        if not items:
            continue
        assert measures.euclidean(a, b) == pytest.approx(distance.euclidean(x, y), 1e-12)
        assert measures.manhattan(a, b) == distance.cityblock(x, y)
        for r in (1, 1.5, 3, 10):
            assert measures.lr_norm(a, b, r) == pytest.approx(distance.minkowski(x, y, r), 1e-12)
        assert measures.lr_norm(a, b, math.inf) == distance.chebyshev(x, y)
        other = distance.braycurtis(x, y)
        expected = (1 - other) / (1 + other)
        assert measures.jaccard_of_counts(a, b) == pytest.approx(expected, abs=1e-12)


def test_measures_of_sets_equal_nltk_and_scipy(pairs: list[Pair], nltk: Any) -> None:
    for a, b in pairs:
        set_a, set_b = set(a), set(b)
        if not set_a | set_b:
            assert measures.jaccard(a, b) == measures.dice(a, b) == measures.overlap(a, b) == 0
            continue
        similarity = measures.jaccard(a, b)
        assert similarity == pytest.approx(1 - nltk.jaccard_distance(set_a, set_b), abs=1e-12)
        assert measures.dice(a, b) == pytest.approx(2 * similarity / (1 + similarity), abs=1e-12)
        if set_a and set_b:
            # Precision is the share of the first set in the second; recall is the reverse.
            precision = nltk.precision(set_b, set_a)
            assert measures.containment(a, b) == precision
            assert measures.overlap(a, b) == max(precision, nltk.recall(set_b, set_a))
        else:
            assert measures.containment(a, b) == 0
    for a, b in pairs[:500]:
        items, x, y = measures.frequencies(a, b)
        if items:
            assert measures.dice(a, b) == pytest.approx(1 - distance.dice(x > 0, y > 0), abs=1e-12)
            weights = {item: float(i % 7) for i, item in enumerate(items)}
            values = np.array([weights[item] for item in items])
            expected = values[(x > 0) & (y > 0)].sum() / values.sum() if values.any() else 0
            value = measures.weighted_jaccard(a, b, weights)
            assert value == pytest.approx(expected, abs=1e-12)


def cheapest(a: list[str], b: list[str], costs: tuple[float, float, float]) -> float:
    """Return the edit distance by the recursion of the textbooks."""
    insertion, deletion, substitution = costs

    @cache
    def cost(i: int, j: int) -> float:
        if not i or not j:
            return i * deletion + j * insertion
        return min(
            cost(i - 1, j) + deletion,
            cost(i, j - 1) + insertion,
            cost(i - 1, j - 1) + (0 if a[i - 1] == b[j - 1] else substitution),
        )

    return cost(len(a), len(b))


def test_edit_distances_and_alignments_with_costs_equal_the_recursion(rng: random.Random) -> None:
    for a, b in random_pairs(rng):
        costs = tuple(rng.choice([0, 1, 2, 3, 0.5, 2.25]) for _ in range(3))
        assert len(costs) == 3
        expected = cheapest(a, b, costs)
        assert measures.levenshtein(a, b, *costs) == pytest.approx(expected, abs=1e-12)
        aligned_a, aligned_b = measures.alignment(a, b, *costs)
        with pytest.MonkeyPatch.context() as patch:
            patch.delitem(sys.modules, "numba")  # Python fills the table
            assert measures.alignment(a, b, *costs) == (aligned_a, aligned_b)
        assert [item for item in aligned_a if item is not None] == a
        assert [item for item in aligned_b if item is not None] == b
        assert len(aligned_a) == len(aligned_b)
        insertion, deletion, substitution = costs
        total = 0.0
        for left, right in zip(aligned_a, aligned_b, strict=True):
            assert (left, right) != (None, None)
            if left != right:
                total += insertion if left is None else deletion if right is None else substitution
        assert total == pytest.approx(expected, abs=1e-12)
        table = measures.edit_table(a, b, *costs)
        assert table.distances[-1, -1] == pytest.approx(expected, abs=1e-12)
        similarity = measures.levenshtein_similarity(a, b, *costs)
        assert 0 <= similarity <= 1 + 1e-12
