"""The harness of the benchmarks, its documents, and brute force beside the peers."""

from __future__ import annotations

from itertools import combinations

from benchmarks.beside_peers import BruteForce, count_pairs, summary
from benchmarks.generate import documents
from benchmarks.peers import THRESHOLD, word_trigrams
from textsim_db.text.shingles import shingles


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
