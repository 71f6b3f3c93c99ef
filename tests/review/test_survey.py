"""The counts, orders and excerpts of pairs, computed without a server."""

from __future__ import annotations

import random

import numpy as np
import pytest

import textsim_db as ts
from textsim_db.measures.word_diff import Change, ShownText
from textsim_db.results import Pair
from textsim_db.review import survey
from textsim_db.review.pair_arrays import Pairs, bins_of
from textsim_db.review.rendering import begin_of, compare_texts, summary
from textsim_db.review.reviewed_clusters import ChainClusters, Judged
from textsim_db.review.survey import read_pairs


def pairs_of(pairs: list[Pair[str]], threshold: float = 0.5) -> Pairs:
    *_, found = read_pairs(pairs, threshold)
    assert isinstance(found, Pairs)
    return found


def random_pairs(rng: random.Random, documents: int, count: int) -> list[Pair[str]]:
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
            groups = ts.group_pairs(chosen, linkage="single")
            groups = sorted(groups, key=lambda g: (-len(g.keys), g.keys))
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


def test_a_fair_sample_has_similar_pairs_although_all_hundredths_occur() -> None:
    # The sample is of fewer pairs than there are hundredths.
    pairs = [Pair(f"a{i}", f"b{i}", 0.3 + 0.6 * i / 20_000) for i in range(20_000)]
    pairs += [Pair(f"c{i}", f"d{i}", 0.9 + i / 100) for i in range(11)]
    first = pairs_of(pairs)
    assert first.links.similarity[first.spread[:30]].max() >= 0.9


def test_pairs_near_threshold_are_kept(monkeypatch: pytest.MonkeyPatch, rng: random.Random) -> None:
    pairs = random_pairs(rng, 60, 500)
    rng.shuffle(pairs)
    expected = pairs_of(pairs).effect(0.3)
    monkeypatch.setattr(survey, "MOST_PAIRS", 50)
    monkeypatch.setattr(survey, "_LINKED_AT_ONCE", 20)
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


def test_excerpts_end_at_word_borders(rng: random.Random) -> None:
    words = [f"{'w' * rng.randrange(1, 12)}{i}" for i in range(60)]
    changed = [*words[:30], "changed", *words[31:]]
    a, b = (ShownText(" ".join(each), True) for each in (words, changed))
    parts = summary(a, b).excerpt
    changes = [change for change, _ in parts]
    assert changes == [Change.SAME, Change.REMOVED, Change.ADDED, Change.SAME]
    assert parts[0][1].startswith("… ")
    assert parts[3][1].endswith(" …")
    shown = [word for _, part in parts for word in part.split() if word != "…"]
    assert set(shown) <= {*words, "changed"}
    start = words.index(shown[0])
    assert shown == [*words[start:31], "changed", *words[31 : start + len(shown) - 1]]
    *begin, end = begin_of(a).split()
    assert begin == words[: len(begin)]
    assert end == "…"


def test_an_excerpt_says_that_the_texts_go_on() -> None:
    texts = ("one old word, and another old word", "one word, and another word")
    a, b = (ShownText(text, True) for text in texts)
    assert summary(a, b).excerpt[-1] == (Change.SAME, "…")
    assert not any("…" in part for _, part in summary(a, ShownText(f"new {a.text}", True)).excerpt)


def test_a_word_without_a_border_is_cut() -> None:
    excerpt = summary(ShownText("x" * 500, True), ShownText("y" * 500, True)).excerpt
    assert [part for _, part in excerpt] == [f"{'x' * 90} …", f"{'y' * 90} …"]


def test_folded_runs_end_at_word_borders(rng: random.Random) -> None:
    words = [f"{'w' * rng.randrange(1, 12)}{i}" for i in range(400)]
    changed = [*words[:200], *(f"new{i}" for i in range(200)), *words[200:]]
    a, b = (rng.choice(" \n\t").join(each) for each in (words, changed))
    for run in compare_texts(ShownText(a, True), ShownText(b, True)).right:
        assert {*run.head.split(), *run.hidden.split(), *run.tail.split()} <= {*changed}


def test_a_long_word_is_cut() -> None:
    runs = compare_texts(ShownText("x" * 1000, True), ShownText("x" * 1000, True)).left
    assert [(len(run.head), len(run.hidden), len(run.tail)) for run in runs] == [(200, 600, 200)]
