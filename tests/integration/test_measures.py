"""Searches by any measure equal the measures of every candidate."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.sampling import sample
from textsim_db.cluster import split_large_buckets
from textsim_db.measures import MEASURES, Measure, shingles, words

THRESHOLDS = {
    "cosine_distance": 30.0,
    "euclidean": 4.0,
    "manhattan": 12.0,
    "levenshtein": 10.0,
}


def measure_texts(measure: Measure, a: str, b: str, shingle: str) -> float:
    if measure.of_shingles:
        return measure.function(shingles(a, shingle), shingles(b, shingle))
    return measure.function(words(a), words(b))


def reaches_threshold(measure: Measure, value: float, threshold: float) -> bool:
    return value <= threshold if measure.is_distance else value >= threshold


@pytest.mark.parametrize("shingle", sample(["word:3", "word:1", "char:5"], 3))
def test_searches_by_every_measure_equal_the_measures_of_candidates(
    db: ts.Database, rng: random.Random, shingle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_large_buckets, "LARGE_BUCKET", 20)
    texts = dict(documents(150, words=25, planted=0.5, seed=rng.randrange(10**6)))
    model = texts["doc-0000001"]
    texts |= {f"copy {i}": model for i in range(3)}
    texts |= {f"twice {i}": f"{model} {model} {i} {i} {i}" for i in range(25)}
    texts |= {"empty": "", "short": "one two", "漢": "漢字 the the the"}
    corpus = db.create_corpus("c", shingle=shingle, threshold=0.5)
    corpus.add_many(texts.items())
    queries = [*rng.sample(sorted(texts.values()), 10), f"unknown {model} unheard unheard"]
    candidates_of = {text: {c.key for c in corpus.candidates(text)} for text in queries}
    buckets_of = {key: corpus.buckets(text) for key, text in texts.items()}
    candidate_pairs = {
        (a, b)
        for a, b in combinations(sorted(texts), 2)
        if (buckets_of[a][:, None] == buckets_of[b]).diagonal().any() and len(buckets_of[a])
    }
    for measure in MEASURES.values():
        threshold = THRESHOLDS.get(measure.name, 0.6)
        tolerance = 1e-12
        results = corpus.query_many(queries, threshold, measure=measure.name)
        for text, matches_of_text in zip(queries, results, strict=True):
            expected = {
                key: measure_texts(measure, text, texts[key], shingle)
                for key in candidates_of[text]
            }
            expected = {
                k: v for k, v in expected.items() if reaches_threshold(measure, v, threshold)
            }
            assert {m.key: m.similarity for m in matches_of_text} == pytest.approx(
                expected, abs=tolerance
            )
            assert matches_of_text == corpus.query(text, threshold, measure=measure.name)
            order = [
                m.similarity if measure.is_distance else -m.similarity for m in matches_of_text
            ]
            assert order == sorted(order)
        expected = {
            key: measure_texts(measure, texts["copy 1"], texts[key], shingle)
            for key in candidates_of.get(model) or {c.key for c in corpus.candidates(model)}
            if key != "copy 1"
        }
        matches = corpus.neighbours("copy 1", threshold, measure=measure.name)
        expected = {k: v for k, v in expected.items() if reaches_threshold(measure, v, threshold)}
        assert {m.key: m.similarity for m in matches} == pytest.approx(expected, abs=tolerance)
        if measure.is_symmetric:
            values = {
                (a, b): measure_texts(measure, texts[a], texts[b], shingle)
                for a, b in candidate_pairs
            }
            values = {k: v for k, v in values.items() if reaches_threshold(measure, v, threshold)}
            listed = list(corpus.pairs(threshold, measure=measure.name))
            assert len(listed) == len({pair[:2] for pair in listed})
            found_pairs = {pair[:2]: pair.similarity for pair in listed}
            assert found_pairs == pytest.approx(values, abs=tolerance)
            assert len(found_pairs) > 10


def test_impossible_measures_and_thresholds_are_refused(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    with pytest.raises(ts.MeasureError, match="cosine_similarity needs a threshold"):
        corpus.query("a", measure="cosine_similarity")
    with pytest.raises(ts.MeasureError, match='there is no measure "cos"'):
        corpus.neighbours("a", 0.5, measure="cos")
    with pytest.raises(ts.MeasureError, match="containment depends on the order"):
        corpus.pairs(0.5, measure="containment")
    for name, threshold in [
        ("cosine_similarity", 1.5),
        ("cosine_similarity", 0),
        ("cosine_distance", 91),
        ("euclidean", -1),
    ]:
        with pytest.raises(ts.MeasureError, match=f"threshold is {threshold}; expected"):
            corpus.query("a", threshold, measure=name)
    with pytest.raises(ts.MeasureError, match="threshold is nan; expected 0 or more"):
        corpus.query("a", math.nan, measure="euclidean")
    with pytest.raises(ts.ConfigurationError, match=r"threshold is 1\.5"):
        corpus.query("a", 1.5)
    assert corpus.query("a", 5, measure="euclidean") == []
    assert list(corpus.pairs(0, measure="levenshtein")) == []
