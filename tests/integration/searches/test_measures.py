"""Searches by every measure, and for the nearest documents."""

from __future__ import annotations

import math
import random
from itertools import combinations
from typing import Any

import pytest
from psycopg import errors as pg

import textsim_db as ts
from benchmarks.generate import documents
from tests.support import reference
from tests.support.connections import Connection, value
from tests.support.sampling import sample
from textsim_db.cluster import split_large_buckets
from textsim_db.errors import MeasureError
from textsim_db.measures import MEASURES, Measure, shingles, words
from textsim_db.sketch import sketch_texts

THRESHOLDS = {"cosine_distance": 30.0, "euclidean": 4.0, "manhattan": 12.0, "levenshtein": 10.0}


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
    texts = dict(documents(90, words=25, planted=0.5, seed=rng.randrange(10**6)))
    model = texts["doc-0000001"]
    texts |= {f"copy {i}": model for i in range(3)}
    texts |= {f"twice {i}": f"{model} {model} {i} {i} {i}" for i in range(25)}
    texts |= {"empty": "", "short": "one two", "漢": "漢字 the the the"}
    corpus = db.create_corpus("c", shingle=shingle, threshold=0.5)
    corpus.add_many(texts.items())
    queries = [*rng.sample(sorted(texts.values()), 6), f"unknown {model} unheard unheard"]
    candidates_of = {text: {c.key for c in corpus.candidates(text)} for text in queries}
    buckets_of = {key: sketch_texts.buckets(text, corpus.config) for key, text in texts.items()}
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
    with pytest.raises(MeasureError, match="cosine_similarity needs a threshold"):
        corpus.query("a", measure="cosine_similarity")
    with pytest.raises(MeasureError, match='there is no measure "cos"'):
        corpus.neighbours("a", 0.5, measure="cos")  # type: ignore[arg-type]
    with pytest.raises(MeasureError, match="containment depends on the order"):
        corpus.pairs(0.5, measure="containment")
    for name, threshold in [
        ("cosine_similarity", 1.5),
        ("cosine_similarity", 0),
        ("cosine_distance", 91),
        ("euclidean", -1),
    ]:
        with pytest.raises(MeasureError, match=f"threshold is {threshold}; expected"):
            corpus.query("a", threshold, measure=name)  # type: ignore[arg-type]
    with pytest.raises(MeasureError, match="threshold is nan; expected 0 or more"):
        corpus.query("a", math.nan, measure="euclidean")
    with pytest.raises(ts.ConfigurationError, match=r"threshold is 1\.5"):
        corpus.query("a", 1.5)
    assert corpus.query("a", 5, measure="euclidean") == []
    assert list(corpus.pairs(0, measure="levenshtein")) == []


def ranked(sets: dict[str, set[str]], own: set[str]) -> list[tuple[str, float]]:
    """Return all documents that share a shingle with a text, the most similar first."""
    similarities = {key: reference.jaccard(own, other) for key, other in sets.items()}
    met = [(key, similarity) for key, similarity in similarities.items() if similarity > 0]
    return sorted(met, key=lambda each: (-each[1], each[0]))


def with_changes(text: str, rng: random.Random) -> str:
    """Return a text in which about a third of the words is missing, and one is new."""
    return " ".join(["changed", *(word for word in text.split() if rng.random() < 0.7)])


EXPIRED = "UPDATE textsim.document_{} SET expires_at = now() - interval '1 s' WHERE key = ANY (%s)"
FEW = (
    "CREATE OR REPLACE FUNCTION textsim._few_documents(is_exact boolean) RETURNS integer "
    "LANGUAGE sql RETURN {}"
)


@pytest.mark.sampled
@pytest.mark.parametrize("shingle", sample(["word:2", "word:1", "word:4", "char:4"], 4))
@pytest.mark.parametrize(("threshold", "recall"), [(0.02, 1), (0.6, 1), (0.6, 0.95)])
def test_sql_and_python_find_the_nearest(
    db: ts.Database,
    connection: Connection,
    shingle: str,
    threshold: float,
    recall: float,
    rng: random.Random,
) -> None:
    texts = dict(documents(300, words=20, planted=0.5, boilerplate=30, seed=rng.randrange(1000)))
    texts |= {"empty": "", "one word": "word", "no spaces": "漢字 仮名 w1 w2", "no": "w1 w2 not 7"}
    options: dict[str, Any] = {} if rng.random() < 0.5 else {"scoped": True, "keep_for": "1 day"}
    corpus = db.create_corpus(
        "c", shingle=shingle, threshold=threshold, recall=recall, guards=["numbers"], **options
    )
    scopes = {key: rng.choice("ab") if options else None for key in texts}
    corpus.add_many([(key, texts[key], scopes[key]) for key in list(texts)[:200]])
    for key in list(texts)[200:]:  # some keep their words without ids
        connection.execute("SELECT textsim.add('c', %s, %s, %s)", [key, texts[key], scopes[key]])
    expired = rng.sample(sorted(texts), 20) if options else []
    corpus_id = value(connection, "SELECT id FROM textsim.corpus")
    connection.execute(EXPIRED.format(corpus_id).encode(), [expired])
    unit, _, length = shingle.partition(":")
    sets = {key: set(reference.shingles(text, unit, int(length))) for key, text in texts.items()}
    asked = [with_changes(texts[key], rng) for key in rng.sample(sorted(texts), 20)]
    for few in (1000, 5) if recall == 1 else (1000,):
        connection.execute(FEW.format(few).encode())
        for text in [*asked, "", "word", "字 w1 w2", "w1 w2 not 8"]:
            k, scope = rng.choice([1, 10, 1000]), "a" if options else None
            found = corpus.nearest(text, k, scope=scope)
            assert db.corpus("c", on_server=True).nearest(text, k, scope=scope) == found
            query = "SELECT key, similarity, differs FROM textsim.nearest('c', %s, %s, scope => %s)"
            rows = connection.execute(query, [text, k, scope]).fetchall()
            assert rows == [(m.key, m.similarity, list(m.differs)) for m in found]
            matches = [match[:2] for match in found]
            counted = {key: sets[key] for key in sets.keys() - expired if scopes[key] == scope}
            truth = ranked(counted, set(reference.shingles(text, unit, int(length))))
            if few == 1000 or (threshold < 0.1 and k == 1000):  # all are compared
                assert matches == truth[:k], text
            assert set(truth).issuperset(matches)
            assert matches == sorted(matches, key=lambda each: (-each[1], each[0]))
            similar = [each for each in truth if each[1] >= threshold]
            assert matches[: len(similar)] == similar[:k]


def test_only_documents_of_the_scope_that_count_are_found(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c", recall=1, scoped=True, keep_for="1 day", language="auto")
    text = "the city council approved the new budget for schools"
    corpus.add_many([("a", text, "x"), ("b", text, "y"), ("old", text, "x")])
    connection.execute(
        "UPDATE textsim.document_1 SET expires_at = now() - interval '1 s' WHERE key = 'old'"
    )
    assert [match.key for match in corpus.nearest(text, scope="x")] == ["a"]
    assert [match.key for match in corpus.nearest(text, language="en", scope="y")] == ["b"]
    assert corpus.nearest(text, language="de", scope="y") == []
    for options, keys in (("scope => 'x'", ["a"]), ("language => 'de', scope => 'y'", [])):
        query = f"SELECT key FROM textsim.nearest('c', %s, {options})"
        rows = connection.execute(query.encode(), [text]).fetchall()
        assert [key for (key,) in rows] == keys


def test_a_corpus_with_bands_and_a_bad_number_are_refused(
    db: ts.Database, connection: Connection
) -> None:
    banded = db.create_corpus("banded")
    assert banded.nearest("some text") == []
    banded.add_many([("a", "a"), ("b", "b")])
    connection.execute(FEW.format(1).encode())
    with pytest.raises(ts.ConfigurationError, match=r"is not exact.*with recall=1"):
        banded.nearest("some text")
    with pytest.raises(pg.ObjectNotInPrerequisiteState, match='"banded" is not exact') as error:
        connection.execute("SELECT key, similarity FROM textsim.nearest('banded', 'some text')")
    assert "recall => 1" in str(error.value.diag.message_hint)
    exact = db.create_corpus("exact", recall=1)
    bad: list[Any] = [0, -1, 1.5, None]
    for k in bad:
        with pytest.raises(ts.ConfigurationError, match="k is"):
            exact.nearest("some text", k)
    for k in (0, None):
        with pytest.raises(pg.InvalidParameterValue, match=r"k is .*; expected 1 or more"):
            connection.execute("SELECT textsim.nearest('exact', 'some text', %s)", [k])
    assert exact.nearest("some text") == exact.nearest("") == []
    query = "SELECT key, similarity FROM textsim.nearest('exact', %s)"
    for text in ("", None, "some text"):
        assert connection.execute(query, [text]).fetchall() == []
