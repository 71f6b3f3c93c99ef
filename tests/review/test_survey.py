"""The counts and orders of pairs, beside brute force."""

from __future__ import annotations

import random

import numpy as np
import pytest

import textsim_db as ts
from textsim_db.results import Pair
from textsim_db.review import survey
from textsim_db.review.clusters import ChainClusters, Judged
from textsim_db.review.pair_arrays import Pairs, bins_of
from textsim_db.review.survey import read_pairs


def pairs_of(pairs: list[Pair], threshold: float = 0.5) -> Pairs:
    *_, found = read_pairs(pairs, threshold)
    assert isinstance(found, Pairs)
    return found


def random_pairs(rng: random.Random, documents: int, count: int) -> list[Pair]:
    keys = [f"k{i:03}" for i in range(documents)]
    chosen = {tuple(sorted(rng.sample(keys, 2))) for _ in range(count)}
    return [Pair(a, b, rng.randrange(30, 101) / 100) for a, b in sorted(chosen)]


def test_effects_and_clusters_are_those_of_all_pairs(rng: random.Random) -> None:
    for documents, count in ((2, 1), (20, 15), (60, 200)):
        pairs = random_pairs(rng, documents, count)
        found = pairs_of(pairs)
        assert len(found) == len(pairs)
        for step in range(101):
            chosen = [pair for pair in pairs if pair.similarity >= step / 100]
            groups = sorted(
                ts.group_pairs(chosen, linkage="single"), key=lambda g: (-len(g.keys), g.keys)
            )
            removals = sum(len(group.keys) - 1 for group in groups)
            assert found.effect(step / 100)[1:] == (len(chosen), len(groups), removals)
            clusters = ChainClusters(found, step / 100, Judged([], []), set())
            assert len(clusters) == len(groups)
            shown = clusters.page(0, len(groups))
            assert [tuple(each.keys) for each in shown] == [g.keys for g in groups]
            assert [each.links[0][2] for each in shown] == [g.weakest for g in groups]
            assert [clusters.cluster_of(each.keys[-1]) for each in shown] == shown


def test_each_pair_is_found_by_its_keys_and_is_once_in_each_order(rng: random.Random) -> None:
    pairs = random_pairs(rng, 40, 100)
    found = pairs_of(pairs)
    for pair in pairs:
        number = found.number(pair.a, pair.b)
        assert number is not None
        assert found.pair(number) == pair
    assert found.number("k000", "none") is None
    for order in (found.near, found.spread, found.nearest(0.9)):
        assert sorted(order.tolist()) == list(range(len(pairs)))
    distances = np.abs(found.links.similarity[found.near] - 0.5)
    assert np.all(np.diff(distances) >= 0)


def test_the_first_pairs_of_the_spread_order_are_a_fair_sample() -> None:
    # Of 10,000 pairs, 20 are above 0.9.
    pairs = [Pair(f"a{i}", f"b{i}", 0.5 + 0.1 * i / 10_000) for i in range(9_980)]
    pairs += [Pair(f"c{i}", f"d{i}", 0.9 + i / 1000) for i in range(20)]
    first = pairs_of(pairs)
    similarity = first.links.similarity[first.spread[:40]]
    assert np.count_nonzero(similarity < 0.55) >= 8
    assert np.count_nonzero((similarity > 0.55) & (similarity < 0.6)) >= 8
    assert np.count_nonzero(similarity >= 0.9) >= 3


def test_of_many_pairs_those_near_the_threshold_are_kept(
    monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    pairs = random_pairs(rng, 60, 500)
    rng.shuffle(pairs)
    expected = pairs_of(pairs).effect(0.3)
    monkeypatch.setattr(survey, "MOST_PAIRS", 50)
    monkeypatch.setattr(survey, "_PART", 20)
    found = pairs_of(pairs, 0.7)
    assert len(found.links.left) == 50
    assert len(found) == len(pairs)
    nearest = sorted(abs(pair.similarity - 0.7) for pair in pairs)[:50]
    assert sorted(np.abs(found.links.similarity - 0.7)) == nearest
    assert found.effect(0.3) == expected


def test_hundredths_compare_as_thresholds_do() -> None:
    for step in range(101):
        value = step / 100
        below = np.nextafter(value, 0)
        assert bins_of(np.array([value])).tolist() == [step]
        if step:
            assert bins_of(np.array([below])).tolist() == [step - 1]
