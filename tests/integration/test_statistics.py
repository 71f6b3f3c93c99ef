"""Statistics against plain counting, and the command that shows them."""

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

pytestmark = pytest.mark.one_server


@pytest.mark.parametrize("shingle", sample(["char:5", "word:1"], 2))
def test_against_plain_counting(
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
    done: list[tuple[int, int]] = []
    found = corpus.statistics(5, progress=lambda *counts: done.append(counts))
    with db.engine.connect() as connection:
        order = connection.exec_driver_sql("SELECT key FROM textsim.document_1 ORDER BY id")
        every = [words(texts[key]) for (key,) in order]
    counts = Counter(word for document in every for word in document)
    assert done[-1] == (len(texts), len(texts))
    assert (found.documents, found.empty) == (len(texts), 1)
    assert found.words == counts.total()
    assert found.vocabulary == len(counts) == found.growth[-1].vocabulary
    assert found.growth[-1][:2] == (len(texts), counts.total())
    assert len(found.growth) == 20
    assert [step.vocabulary for step in found.growth] == [
        len(set().union(*every[: step.documents])) for step in found.growth
    ]
    assert [word.occurrences for word in found.frequent] == [n for _, n in counts.most_common(5)]
    for word in found.frequent:
        assert counts[word.word] == word.occurrences
        assert word.documents == sum(word.word in document for document in every)
    assert found.lengths[0] == 0
    assert found.lengths[100] == max(map(len, every))
    weights = corpus.idf_weights()
    frequencies = document_frequencies(every)
    assert weights == idf_weights(frequencies, len(every))
    near = [
        jaccard(shingles(text, shingle), shingles(texts[candidate.key], shingle))
        for key, text in texts.items()
        for candidate in corpus.candidates(text)
        if candidate.key != key
    ]
    assert (found.sampled, found.candidates) == (len(texts) - 1, len(near))
    expected = Counter(min(int(value * 100 + 1e-9), 99) for value in near)
    assert sum(found.similarities) == len(near)
    assert sum(abs(n - expected[i]) for i, n in enumerate(found.similarities)) <= len(near) / 10
    buckets = Counter(bucket for text in texts.values() for bucket in corpus.buckets(text).tolist())
    assert dict(found.buckets) == Counter(buckets.values())
    assert all(size > 0 for size in found.storage.values())
    assert set(found.storage) == {
        "documents",
        "documents, indexes",
        "band rows",
        "band rows, indexes",
    }


def test_an_empty_corpus(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    for texts in ([], [("empty", "")]):
        corpus.add_many(texts)
        found = corpus.statistics()
        assert (found.documents, found.words, found.vocabulary) == (len(texts), 0, 0)
        assert corpus.idf_weights() == {}
        assert (found.frequent, found.buckets, sum(found.similarities)) == ([], [], 0)


def test_the_command(textsim: Textsim, database_url: str, tmp_path: Path) -> None:
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
    assert "take --format jsonl" in textsim("stats", "news", "--format", "csv", status=2).stderr
    assert "words is -1" in textsim("stats", "news", "--words", "-1", status=2).stderr
