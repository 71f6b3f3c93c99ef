"""The classic experiment on a tenth of its documents: each way finds what the formulas say."""

from __future__ import annotations

import math
import random
from itertools import combinations, islice

import numpy as np
import pytest

import textsim_db as ts
from benchmarks import classic
from benchmarks.classic import BANDING, BY_NAME, HASHES, Sets
from benchmarks.harness import Bench
from tests.support.connections import Connection
from textsim_db.measures import jaccard
from textsim_db.settings.choose_bands import Bands
from textsim_db.sketch.fast_similarity import splitmix64


def sets_of(lists: list[list[int]]) -> Sets:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Sets(np.array([id_ for ids in lists for id_ in ids], np.int64), offsets)


def assert_as_often(found: int, probabilities: list[float], noun: str) -> None:
    """Assert that a number is within 4.5 standard deviations of its expectation."""
    expected = sum(probabilities)
    deviation = math.sqrt(sum(p * (1 - p) for p in probabilities))
    assert abs(found - expected) <= 4.5 * deviation + 0.5, (noun, found, expected, deviation)


@pytest.mark.more
def test_each_way_finds_what_its_formula_says(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    seed = rng.randrange(10**6)
    sets = classic.make_sets(1200, seed)
    result = classic.experiment(Bench(db, connection), sets, seed)
    lists = [*sets.lists()]
    for a, b in combinations(range(60), 2):
        similarity = jaccard(lists[a], lists[b])
        assert result.similarities.get((a, b), 0) == (similarity if similarity >= 0.5 else 0)
    assert len(result.similarities) > 550
    for name, way in result.ways.items():
        if "LSH" in name or name == "corpus with these bands":
            assert_as_often(
                len(way.found & result.similar),
                [BANDING.probability(result.similarities[pair]) for pair in result.similar],
                name,
            )
        if name.startswith(("brute", "corpus")):
            assert way.found <= result.similar, name
    assert len(result.ways["corpus as we would set it"].found) >= 0.98 * len(result.similar)
    for name, curve in result.curves.items():
        for point in curve.points:
            # Sketches may find some 1.3 points fewer than the formula, and often find more.
            slack = 0.05 if name.startswith("corpus") else 0.01
            deviation = 4.5 * math.sqrt(point.promised * (1 - point.promised) / point.pairs)
            assert abs(point.found - point.promised) <= deviation + slack, (name, point)
    assert result.curves["corpus as we would set it"].banding == Bands(18, 7)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_family_estimates_without_bias(name: str, rng: random.Random) -> None:
    similarities, errors = [], []
    for _ in range(40):
        sets = classic.make_sets(10, rng.randrange(10**6))
        matrix = BY_NAME[name](sets, rng.randrange(10**6))
        assert matrix.shape == (10, HASHES)
        lists = [*sets.lists()]
        for a in range(0, 10, 2):
            similarity = jaccard(lists[a], lists[a + 1])
            similarities.append(similarity)
            errors.append(float((matrix[a] == matrix[a + 1]).mean()) - similarity)
    variance = np.mean([s * (1 - s) / HASHES for s in similarities])
    assert abs(np.mean(errors)) <= 4.5 * math.sqrt(variance / len(errors))
    assert np.var(errors) == pytest.approx(variance, rel=0.5)


@pytest.mark.parametrize("name", BY_NAME)
def test_each_item_of_a_set_is_the_smallest_equally_often(name: str, rng: random.Random) -> None:
    """Also of sets whose ids have a pattern, such as multiples of a power of two."""
    for step in (1, 2**10, 37):
        ids = [step * (n + 1) for n in range(8)]
        smallest = [0] * len(ids)
        for _ in range(40):
            seed = rng.randrange(10**6)
            whole = BY_NAME[name](sets_of([ids]), seed)[0]
            alone = BY_NAME[name](sets_of([[id_] for id_ in ids]), seed)
            assert (alone.min(axis=0) == whole).all()
            for place in alone.argmin(axis=0).tolist():
                smallest[place] += 1
        # Both families are nearly min-wise independent only: an end of a run is smallest more often.
        assert min(smallest) > 0.5 * 40 * HASHES / len(ids), (step, smallest)
        assert max(smallest) < 2 * 40 * HASHES / len(ids), (step, smallest)


def test_documents_with_equal_rows_of_a_band_share_a_bucket(rng: random.Random) -> None:
    matrix = np.array([[rng.randrange(2) for _ in range(12)] for _ in range(200)], np.int64)
    banding = Bands(4, 3)
    buckets = classic.buckets_of(matrix, banding)
    assert [sum(map(len, band.values())) for band in buckets] == [200] * 4
    bands = matrix.reshape(200, 4, 3)
    for document in range(20):
        expected = {
            other
            for other in range(200)
            if other != document and (bands[document] == bands[other]).all(axis=1).any()
        }
        assert classic.candidates_of(document, matrix, buckets) == expected


def test_multiply_and_shift_is_plain_arithmetic(rng: random.Random) -> None:
    drawn = [*islice(splitmix64(3), 2 * HASHES)]
    ids = [rng.randrange(classic.IDS) for _ in range(50)]
    expected = [
        min((a * x + b) % 2**64 // 2**32 for x in ids)
        for a, b in zip(drawn[::2], drawn[1::2], strict=True)
    ]
    assert BY_NAME["multiply and shift"](sets_of([ids]), 3)[0].tolist() == expected
