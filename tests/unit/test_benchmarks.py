"""The harness of the benchmarks, its documents, and brute force beside the peers."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from functools import partial
from itertools import combinations

import numpy as np
import pytest

from benchmarks.beside_checkout import ratio
from benchmarks.beside_peers import BruteForce, count_pairs, summary
from benchmarks.generate import documents, pair_of_similarity, vocabulary
from benchmarks.harness import (
    Figures,
    identifier,
    in_turns,
    median_and_p99,
    medians,
    shown,
    span,
    table_of,
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


def test_a_figure_is_the_median_of_its_rounds() -> None:
    rounds = [{"ms": 9.0, "recall": None}, {"ms": 1.0, "recall": None}, {"ms": 2.0, "recall": None}]
    assert medians(rounds) == {"ms": 2.0, "recall": None}
    assert median_and_p99(range(1000)) == (499.5, 990)


def test_a_ratio_says_how_many_times_as_fast_or_what_share_is_left() -> None:
    assert ratio("query_ms", this=1.0, other=3.0) == 3.0
    assert ratio("rate", this=3.0, other=1.0) == 3.0
    assert ratio("bytes", this=1.0, other=4.0) == 0.25


def test_a_table_has_a_row_for_each_label_with_a_figure() -> None:
    sides: dict[str, Figures] = {
        "one": {"ms": 1.5, "mb": None},
        "two": {"ms": 1500.0, "rate": 0.25},
    }
    labels = {"rate": "per s", "ms": "time, ms", "mb": "MB"}
    table = table_of(sides, labels, "corner")
    expected = [["corner", "one", "two"], ["per s", "", "0.250"], ["time, ms", "1.50", "1,500"]]
    assert table == expected


def test_figures_are_shown_with_three_digits() -> None:
    values = [0.1234, 1.234, 12.34, 1234.5, 2.0, None]
    assert [shown(value) for value in values] == ["0.123", "1.23", "12.3", "1,234", "2", ""]
    assert span([106.2, 82.4, 90.0]) == "82.4 to 106"
    assert span([2.001, 2.002]) == "2.00"
    assert identifier("one query, cold, median ms") == "one_query_cold_median_ms"


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
def test_the_same_arguments_give_the_same_documents() -> None:
    plain = list(documents(300, words=50, seed=4))
    assert plain == list(documents(300, words=50, seed=4))
    assert plain != list(documents(300, words=50, seed=5))
    mixed = list(documents(300, words=50, seed=4, identical=20, boilerplate=40))
    changed = [i for i, (a, b) in enumerate(zip(plain, mixed, strict=True)) if a != b]
    assert len(changed) == 60


@pytest.mark.long
def test_documents_are_identical_or_share_boilerplate_as_often_as_asked() -> None:
    texts = [text for _, text in documents(500, words=40, seed=6, identical=50, boilerplate=100)]
    (model, number), *_ = Counter(texts).most_common(1)
    assert number == 50
    start = " ".join(model.split()[:20])
    assert sum(text.startswith(start) for text in texts) == 150


@pytest.mark.long
def test_moved_sentences_change_little() -> None:
    plain = [text for _, text in documents(300, words=150, planted=0.5, seed=7)]
    moved = [text for _, text in documents(300, words=150, planted=0.5, seed=7, moved=1.0)]
    pairs = [(a, b) for a, b in zip(plain, moved, strict=True) if a != b]
    assert len(pairs) > 100
    assert 0.7 < statistics.median(similarity(a, b) for a, b in pairs) < 0.9


@pytest.mark.long
@pytest.mark.parametrize("requested", [0.3, 0.5, 0.7, 0.8, 0.9, 1.0])
def test_pairs_have_the_stated_similarity(rng: random.Random, requested: float) -> None:
    generator = np.random.default_rng(rng.randrange(2**32))
    words = vocabulary(2000).tolist()
    for _ in range(20):
        a, b, stated = pair_of_similarity(generator, words, 200, requested)
        assert similarity(a, b) == stated == pytest.approx(requested, abs=0.02)


@pytest.mark.long
def test_a_similarity_that_the_words_cannot_have_is_refused() -> None:
    generator = np.random.default_rng(1)
    with pytest.raises(ValueError, match="4 words are too few"):
        pair_of_similarity(generator, vocabulary(100).tolist(), 4, 0.0)
