"""Measured recall against an independent brute force, and promised recall against measured."""

from __future__ import annotations

import random
from itertools import combinations
from statistics import mean

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.sampling import sample
from textsim_db.text.shingles import shingles

pytestmark = pytest.mark.one_server

Pairs = dict[tuple[str, str], float]


def brute_force(texts: dict[str, str], shingle: str, threshold: float) -> tuple[Pairs, list[float]]:
    """Every pair at the threshold, and the similarities of all pairs that share a shingle."""
    sets = {key: frozenset(shingles(text, shingle)) for key, text in texts.items()}
    found: Pairs = {}
    every = []
    for a, b in combinations(sorted(sets), 2):
        shared = len(sets[a] & sets[b])
        if shared:
            value = shared / len(sets[a] | sets[b])
            every.append(value)
            if value >= threshold:
                found[a, b] = value
    return found, every


@pytest.mark.parametrize("shingle", sample(["word:3", "word:1", "char:5"], 3))
def test_against_plain_sets(db: ts.Database, rng: random.Random, shingle: str) -> None:
    texts = dict(documents(400, words=30, planted=0.4, seed=rng.randrange(10**6)))
    texts |= {"empty": "", "copy": texts["doc-0000003"], "short": "one two"}
    # Many pairs are missed on purpose.
    corpus = db.create_corpus("c", shingle=shingle, threshold=0.5, bands=3, rows=5)
    corpus.add_many(texts.items())
    report = corpus.measure_recall(sample=1000)
    expected, every = brute_force(texts, shingle, 0.5)
    reported = {pair[:2]: pair.similarity for pair in corpus.pairs()}
    assert (report.documents, report.sampled, report.threshold) == (403, 402, 0.5)
    assert (report.pairs, report.candidate_pairs) == (len(expected), len(reported))
    missed = {pair[:2]: pair.similarity for pair in report.missed}
    assert missed == {pair: v for pair, v in expected.items() if pair not in reported}
    assert len(missed) > 5
    assert report.recall == len(reported) / len(expected)
    assert report.promised == pytest.approx(
        mean(map(corpus.config.banding.probability, expected.values()))
    )
    assert sum(report.histogram) == 2 * len(every)
    assert report.histogram[100] == 2 * sum(value == 1 for value in every)
    assert sum(report.histogram[50:]) == 2 * len(expected)
    reached = {key for pair in reported for key in pair}
    assert report.lost == sorted({key for pair in missed for key in pair} - reached)
    candidates = [len(corpus.candidates(text)) - 1 for key, text in texts.items() if text]
    assert report.candidates == sorted(candidates)


def test_a_sample(db: ts.Database, rng: random.Random) -> None:
    texts = dict(documents(600, words=40, planted=0.4, seed=3))
    corpus = db.create_corpus("c", threshold=0.5, bands=3, rows=5)
    corpus.add_many(texts.items())
    seed = rng.randrange(2**32)
    report = corpus.measure_recall(sample=200, seed=seed)
    assert report == corpus.measure_recall(sample=200, seed=seed)
    expected, _ = brute_force(texts, "word:3", 0.5)
    assert report.sampled == len(report.candidates) == 200
    assert 0 < report.pairs < len(expected)
    assert {pair[:2] for pair in report.missed} <= expected.keys()
    other = corpus.measure_recall(0.9, sample=200, seed=seed)
    assert other.pairs < report.pairs
    found: list[tuple[int, int]] = []
    corpus.measure_recall(sample=1, progress=lambda *done: found.append(done))
    assert found[-1] == (600, 600)


@pytest.mark.parametrize("threshold", sample([0.8, 0.5, 0.7, 0.9], 4))
def test_what_is_promised_is_measured(
    db: ts.Database, threshold: float, rng: random.Random
) -> None:
    texts = documents(4000, words=100, planted=0.5, seed=rng.randrange(10**6))
    corpus = db.create_corpus("c", threshold=threshold, recall=0.9, seed=rng.randrange(10**6))
    corpus.add_many(texts)
    report = corpus.measure_recall(sample=4000)
    assert report.recall is not None
    assert report.promised is not None
    assert report.pairs > 100
    low, high = report.interval
    # Four times as wide as 95 %: this is one of many random tests.
    assert report.recall - 4 * (report.recall - low) <= report.promised
    assert report.promised <= report.recall + 4 * (high - report.recall)
    assert report.promised >= 0.9


def test_corpora_without_pairs(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    for texts in ([], [("empty", "")], [("a", "some words of a text"), ("b", "nothing in common")]):
        corpus.add_many(texts)
        report = corpus.measure_recall()
        assert (report.pairs, report.recall, report.promised, report.missed) == (0, None, None, [])
        assert sum(report.histogram) == 0
        assert report.interval == (0.0, 1.0)
        assert len(corpus.plan()) == 127


@pytest.mark.long
def test_plans_of_a_corpus(db: ts.Database) -> None:
    corpus = db.create_corpus("c", num_hashes=64)
    corpus.add_many(documents(20_000, words=200, seed=4))
    made = corpus.plan(sample=5000)
    assert len(made) == 63
    (chosen,) = [option for option in made if option.chosen]
    assert (chosen.bands, chosen.rows) == corpus.config.banding
    measured = mean(corpus.measure_recall(sample=5000).candidates)
    assert chosen.candidates == pytest.approx(measured, rel=0.3)
    assert len(corpus.plan(0.7, 0.9, 128)) == 127
    with db.engine.connect() as connection:
        size = connection.exec_driver_sql(
            "SELECT pg_total_relation_size('textsim.document_1') "
            "+ pg_total_relation_size('textsim.band_1')"
        ).scalar_one()
    assert chosen.storage == pytest.approx(float(size) / 20_000, rel=0.1)
    with pytest.raises(ts.ConfigurationError, match="sample is 0; expected 1 to"):
        corpus.plan(sample=0)


@pytest.mark.parametrize("seed", [-1, 1.5, 2**63])
def test_seeds_that_cannot_be(db: ts.Database, seed: int) -> None:
    corpus = db.create_corpus("c")
    with pytest.raises(ts.ConfigurationError, match=f"seed is {seed}; expected"):
        corpus.measure_recall(seed=seed)
    assert corpus.measure_recall(seed=2**63 - 1).pairs == 0
