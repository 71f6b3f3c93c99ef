"""Statistics equal plain counts, and a command shows them."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.commands import Textsim
from tests.support.sampling import sample
from textsim_db.measures import (
    document_frequencies,
    idf_weights,
    jaccard,
    shingles,
    words,
)
from textsim_db.read import corpus_statistics


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
    weights = corpus.idf_weights()
    frequencies = document_frequencies(words_of_documents)
    assert weights == idf_weights(frequencies, len(words_of_documents))
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
    buckets = Counter(bucket for text in texts.values() for bucket in corpus.buckets(text).tolist())
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
        assert corpus.idf_weights() == {}
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
