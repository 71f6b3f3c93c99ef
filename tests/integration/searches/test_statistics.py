"""Statistics and measured recall of a corpus equal plain counts."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.truth import brute_force
from textsim_db.measures import document_frequencies, jaccard, shingles, words
from textsim_db.read import corpus_statistics
from textsim_db.read.measure_recall import distribution, measured_options
from textsim_db.sketch import sketch_texts


@pytest.mark.parametrize("shingle", sample(["char:5", "word:1"], 2))
def test_statistics_equal_plain_counts(
    db: ts.Database, rng: random.Random, shingle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_statistics, "DOCUMENTS_AT_ONCE", 37)
    texts = dict(documents(200, words=30, planted=0.5, seed=rng.randrange(10**6)))
    texts |= {"empty": "", "copy": texts["doc-0000001"].upper()}
    corpus = db.create_corpus("c", shingle=shingle, threshold=0.5)
    corpus.add_many(texts.items())
    with db.engine.begin() as connection:
        for key, text in {"sql": "unheard of words words", "more": "unheard again"}.items():
            connection.exec_driver_sql("SELECT textsim.add('c', %s, %s)", (key, text))
            texts[key] = text
    progress: list[tuple[int, int]] = []
    statistics = corpus.statistics(5, progress=lambda *counts: progress.append(counts))
    with db.engine.connect() as connection:
        order = connection.exec_driver_sql("SELECT key FROM textsim.document_1 ORDER BY id")
        words_of_documents = [words(texts[key]) for (key,) in order]
    counts = Counter(word for document in words_of_documents for word in document)
    assert progress[-1] == (len(texts), len(texts))
    assert (statistics.documents, statistics.empty) == (len(texts), 1)
    assert statistics.words == counts.total()
    assert statistics.vocabulary == len(counts) == statistics.growth[-1].vocabulary
    assert statistics.growth[-1][:2] == (len(texts), counts.total())
    assert len(statistics.growth) == 20
    assert [step.vocabulary for step in statistics.growth] == [
        len(set().union(*words_of_documents[: step.documents])) for step in statistics.growth
    ]
    assert [word.occurrences for word in statistics.frequent] == [
        n for _, n in counts.most_common(5)
    ]
    for word in statistics.frequent:
        assert counts[word.word] == word.occurrences
        assert word.documents == sum(word.word in document for document in words_of_documents)
    assert statistics.lengths[0] == 0
    assert statistics.lengths[100] == max(map(len, words_of_documents))
    every_word = corpus.statistics(words=len(counts), sample=0).frequent
    assert {each.word: each.documents for each in every_word} == document_frequencies(
        words_of_documents
    )
    similarities = [
        jaccard(shingles(text, shingle), shingles(texts[candidate.key], shingle))
        for key, text in texts.items()
        for candidate in corpus.candidates(text)
        if candidate.key != key
    ]
    assert (statistics.sampled, statistics.candidates) == (len(texts) - 1, len(similarities))
    expected = Counter(min(int(value * 100 + 1e-9), 99) for value in similarities)
    assert sum(statistics.similarities) == len(similarities)
    assert (
        sum(abs(n - expected[i]) for i, n in enumerate(statistics.similarities))
        <= len(similarities) / 10
    )
    buckets = Counter(
        bucket
        for text in texts.values()
        for bucket in sketch_texts.buckets(text, corpus.config).tolist()
    )
    assert dict(statistics.buckets) == Counter(buckets.values())
    assert all(size > 0 for size in statistics.storage.values())
    assert set(statistics.storage) == {
        "documents",
        "documents, indexes",
        "band rows",
        "band rows, indexes",
    }


def test_statistics_of_an_empty_corpus_are_zero(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    for texts in ([], [("empty", "")]):
        corpus.add_many(texts)
        statistics = corpus.statistics()
        assert (statistics.documents, statistics.words, statistics.vocabulary) == (len(texts), 0, 0)
        assert (statistics.frequent, statistics.buckets, sum(statistics.similarities)) == (
            [],
            [],
            0,
        )


def test_the_command_shows_and_plots_statistics(
    textsim: Textsim, database_url: str, tmp_path: Path
) -> None:
    with ts.connect(database_url) as db:
        db.create_corpus("news").add_many(documents(200, 40, 0.5))
    plot = tmp_path / "plot.svg"
    result = textsim("stats", "news", "--words", "3", "--plot", str(plot))
    assert "distinct words" in result.stdout
    assert "similarity of the candidates of 200 documents" in result.stdout
    assert "<svg" in plot.read_text()
    data = json.loads(textsim("stats", "news", "--format", "jsonl").stdout)
    assert data["documents"] == 200
    assert len(data["similarities"]) == 100
    textsim("corpus", "create", "empty")
    assert "documents" in textsim("stats", "empty").stdout
    assert "use --format jsonl" in textsim("stats", "news", "--format", "csv", status=2).stderr
    assert "words is -1" in textsim("stats", "news", "--words", "-1", status=2).stderr


@pytest.mark.parametrize("shingle", sample(["word:3", "word:1", "char:5"], 3))
def test_measured_recall_equals_a_brute_force(
    db: ts.Database, rng: random.Random, shingle: str
) -> None:
    texts = dict(documents(400, words=30, planted=0.4, seed=rng.randrange(10**6)))
    texts |= {"empty": "", "copy": texts["doc-0000003"], "short": "one two"}
    # These bands miss many pairs, so that the test sees missed pairs.
    corpus = db.create_corpus("c", shingle=shingle, threshold=0.5, bands=3, rows=5)
    corpus.add_many(texts.items())
    report = corpus.measure_recall(sample=1000)
    similarities = brute_force(texts, shingle, 1e-9)  # all pairs that share a shingle
    expected = {pair: value for pair, value in similarities.items() if value >= 0.5}
    reported = {pair[:2]: pair.similarity for pair in corpus.pairs()}
    assert (report.documents, report.sampled, report.empty) == (403, 402, 1)
    assert report.threshold == 0.5
    assert (report.pairs, report.candidate_pairs) == (len(expected), len(reported))
    missed = {pair[:2]: pair.similarity for pair in report.missed}
    assert missed == {pair: v for pair, v in expected.items() if pair not in reported}
    assert len(missed) > 5
    assert report.recall == len(reported) / len(expected)
    assert report.promised == pytest.approx(mean(map(corpus.config.probability, expected.values())))
    assert sum(report.histogram) == len(similarities)
    assert report.histogram[100] == sum(value == 1 for value in similarities.values())
    assert sum(report.histogram[50:]) == len(expected)
    assert report.sampled_histogram == report.histogram
    reached = {key for pair in reported for key in pair}
    assert report.lost == sorted({key for pair in missed for key in pair} - reached)
    candidates = [len(corpus.candidates(text)) - 1 for key, text in texts.items() if text]
    assert report.candidates == sorted(candidates)


def test_a_sample_measures_the_recall_of_some_documents(
    db: ts.Database, rng: random.Random
) -> None:
    texts = dict(documents(600, words=40, planted=0.4, seed=3))
    corpus = db.create_corpus("c", threshold=0.5, bands=3, rows=5)
    corpus.add_many(texts.items())
    seed = rng.randrange(2**32)
    report = corpus.measure_recall(sample=200, seed=seed)
    assert report == corpus.measure_recall(sample=200, seed=seed)
    expected = brute_force(texts, "word:3", 0.5)
    assert report.sampled == len(report.candidates) == 200
    assert 0 < report.pairs < len(expected)
    assert sum(report.histogram[50:]) == report.pairs
    within, pairs = sum(report.sampled_histogram), sum(report.histogram)
    assert 0 < within < pairs
    assert sum(distribution(report).documents) * 200 == pytest.approx(pairs + within)
    assert {pair[:2] for pair in report.missed} <= expected.keys()
    other = corpus.measure_recall(0.9, sample=200, seed=seed)
    assert other.pairs < report.pairs
    progress: list[tuple[int, int]] = []
    corpus.measure_recall(sample=1, progress=lambda *done: progress.append(done))
    assert progress[-1] == (600, 600)


def test_a_corpus_without_pairs_has_no_recall(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    for texts in ([], [("empty", "")], [("a", "some words of a text"), ("b", "nothing in common")]):
        corpus.add_many(texts)
        report = corpus.measure_recall()
        assert (report.pairs, report.recall, report.promised, report.missed) == (0, None, None, [])
        assert sum(report.histogram) == 0
        assert report.interval == (0.0, 1.0)
        assert len(measured_options(report, 0.95, 128, None, "word")) == 128


@pytest.mark.long
def test_a_plan_of_a_corpus_estimates_candidates_and_storage(db: ts.Database) -> None:
    corpus = db.create_corpus("c", num_hashes=64)
    corpus.add_many(documents(20_000, words=200, seed=4))
    report = corpus.measure_recall(sample=5000)
    options = measured_options(report, 0.95, 64, None, "word")
    assert len(options) == 64
    (chosen,) = [option for option in options if option.chosen]
    assert (chosen.bands, chosen.rows) == corpus.config.banding
    assert chosen.candidates == pytest.approx(mean(report.candidates), rel=0.3)
    with db.engine.connect() as connection:
        size = connection.exec_driver_sql(
            "SELECT pg_total_relation_size('textsim.document_1') "
            "+ pg_total_relation_size('textsim.band_1')"
        ).scalar_one()
    assert chosen.storage == pytest.approx(float(size) / 20_000, rel=0.1)
    with pytest.raises(ts.ConfigurationError, match="sample is 0; expected 1 to"):
        corpus.measure_recall(sample=0)


def test_documents_that_are_stored_as_text_have_words(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c")
    texts = dict(documents(100, words=60, planted=0.5, seed=3)) | {"漢": "漢字 漢字", "empty": "!"}
    for key, text in texts.items():
        connection.execute("SELECT textsim.add('c', %s, %s)", [key, text])
    expected = mean(len(words(text)) for text in texts.values())
    assert corpus.measure_recall(sample=10).words == expected
    connection.execute("CALL textsim.index_pending('c')")
    assert corpus.measure_recall(sample=10).words == expected


def test_impossible_seeds_are_refused(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    seeds: tuple[Any, ...] = (-1, 1.5, 2**63)
    for seed in seeds:
        with pytest.raises(ts.ConfigurationError, match=f"seed is {seed}; expected"):
            corpus.measure_recall(seed=seed)
    assert corpus.measure_recall(seed=2**63 - 1).pairs == 0
