"""The harness of the benchmarks, its documents, and brute force beside the peers."""

from __future__ import annotations

import random
from functools import partial
from itertools import combinations

import numpy as np
import pytest

from benchmarks.beside_peers import BruteForce, count_pairs, summary
from benchmarks.generate import documents, pair_of_similarity, vocabulary
from benchmarks.harness import (
    in_turns,
)
from benchmarks.peers import THRESHOLD, word_trigrams
from tests.support.reference import similarity
from textsim_db.text.shingles import shingles


def test_sides_take_turns_and_the_order_is_reversed_from_round_to_round() -> None:
    calls: list[str] = []

    def call(side: str, number: int) -> int:
        calls.append(f"{side}{number}")
        return number

    sides = {side: partial(call, side) for side in "ab"}
    assert in_turns(sides, 3) == {"a": [0, 1, 2], "b": [0, 1, 2]}
    assert calls == ["a0", "b0", "b1", "a1", "a2", "b2"]
    calls.clear()
    in_turns(sides, 2, first=1)
    assert calls == ["b0", "a0", "a1", "b1"]


def test_peers_get_the_shingles_of_the_project() -> None:
    for _, text in documents(20, words=50):
        assert {shingle.decode() for shingle in word_trigrams(text)} == set(
            shingles(text, "word:3")
        )


def test_brute_force_finds_the_pairs_that_the_shingles_have() -> None:
    some = list(documents(300, words=40, planted=0.5, seed=3))
    sets = {key: set(shingles(text, "word:3")) for key, text in some}
    brute_force = BruteForce(some)
    for limit in (300, 120):
        expected: dict[str, set[str]] = {key: set() for key, _ in some[:limit]}
        for a, b in combinations(expected, 2):
            if len(sets[a] & sets[b]) / len(sets[a] | sets[b]) >= THRESHOLD:
                expected[a].add(b)
                expected[b].add(a)
        assert any(expected.values())
        assert brute_force.similar(list(expected), limit) == expected
        asked = list(expected)[::7]
        assert brute_force.similar(asked, limit) == {key: expected[key] for key in asked}


def test_recall_and_precision_are_counted_over_the_pairs_of_all_rounds() -> None:
    similar = {"a": {"b", "c"}, "b": {"a"}, "c": {"a"}, "d": set[str]()}
    figures = {"version": "1", "rate": 2.0}
    rounds = [
        count_pairs(figures | {"found": [["a", "b"], ["b"]]}, ["a", "b"], similar),
        count_pairs(figures | {"rate": 4.0, "found": [["a", "d"], ["c"]]}, ["c", "d"], similar),
    ]
    assert rounds[0] == figures | {"pairs": 3, "hits": 1, "reported": 1}
    expected = {"pairs": 4, "reported": 4, "recall": 0.5, "precision": 0.5}
    assert summary(rounds) == {"version": "1", "rate": 3.0} | expected
    missing = {"missing": "not measured: no such module"}
    assert summary([rounds[0], missing]) == missing


@pytest.mark.long
@pytest.mark.parametrize("requested", [0.3, 0.5, 0.7, 0.8, 0.9, 1.0])
def test_pairs_have_the_stated_similarity(rng: random.Random, requested: float) -> None:
    generator = np.random.default_rng(rng.randrange(2**32))
    words = vocabulary(2000).tolist()
    for _ in range(20):
        a, b, stated = pair_of_similarity(generator, words, 200, requested)
        assert similarity(a, b) == stated == pytest.approx(requested, abs=0.02)
