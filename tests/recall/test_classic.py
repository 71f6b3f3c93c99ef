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
            # Two pairs may be found by chance where next to none is promised.
            most = deviation + slack + 2 / point.pairs
            assert abs(point.found - point.promised) <= most, (name, point)
    assert result.curves["corpus as we would set it"].banding == Bands(18, 7)


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
