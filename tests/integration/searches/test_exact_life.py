"""Exact corpora: writes, attached tables, rebuilds, and queries that are refused."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.rebuilds import stored_rows
from tests.support.sampling import sample
from tests.support.sources import MODES, index_all_pending
from tests.support.truth import brute_force
from textsim_db.db import stored_corpus
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read.measure_recall import measured_options
from textsim_db.settings.named_values import ModeName

TEXTS = dict(documents(150, words=25, planted=0.6, seed=21)) | {
    "empty": "",
    "one word": "Word!",
    "the same word": "word",
    "two words": "two words",
}


def exact_corpus(db: ts.Database, name: str = "c", **settings: Any) -> ts.Corpus:
    corpus = db.create_corpus(name, **({"threshold": 0.6, "recall": 1} | settings))
    assert corpus.config.is_exact
    return corpus


def assert_complete(db: ts.Database, corpus: ts.Corpus, texts: dict[str, str]) -> None:
    """Assert that a corpus lists exactly the similar pairs of these texts, and that it is sound."""
    truth = brute_force(texts, str(corpus.config.shingle), corpus.config.threshold)
    assert {(a, b): similarity for a, b, similarity in corpus.pairs()} == truth
    assert truth
    assert corpus.check() == []
    with db.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM textsim.pairs(%s)", (corpus.name,)).all()
    assert {(a, b): similarity for a, b, similarity in rows} == truth


def test_documents_are_added_replaced_and_removed(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    corpus = exact_corpus(db)
    texts = dict(TEXTS)
    corpus.add_many(list(texts.items())[:100])
    for key, text in list(texts.items())[100:]:
        assert connection.execute("SELECT textsim.add('c', %s, %s)", [key, text]).fetchall() == [
            (True,)
        ]
    assert_complete(db, corpus, texts)
    for turn, key in enumerate(rng.sample(sorted(texts), 60)):
        text = rng.choice([*texts.values(), f"entirely new {turn}", "", "word"])
        if turn % 4 == 0:
            del texts[key]
            assert corpus.remove([key]) == 1
        elif turn % 4 == 1:
            del texts[key]
            connection.execute("SELECT textsim.remove('c', %s)", [key])
        elif turn % 4 == 2:
            texts[key] = text
            corpus.add(key, text)
        else:
            texts[key] = text
            connection.execute("SELECT textsim.add('c', %s, %s)", [key, text])
    assert_complete(db, corpus, texts)
    connection.execute("CALL textsim.index_pending('c')")
    assert_complete(db, corpus, texts)
    fresh = exact_corpus(db, "fresh")
    fresh.add_many(texts.items())
    # The two corpora learned different lists of common shingles, so their signatures differ.
    rows, fresh_rows = (stored_rows(db, name)[0] for name in ("c", "fresh"))
    assert [(*row[:5], len(row[5])) for row in rows] == [
        (*row[:5], len(row[5])) for row in fresh_rows
    ]
    statistics = corpus.statistics()
    assert sum(size * n for size, n in statistics.buckets) == len(stored_rows(db, "c")[1])


@pytest.mark.parametrize("mode", sample(MODES[::-1], 2))
@pytest.mark.parametrize("is_sql", [False, True])
def test_an_empty_corpus_learns_from_the_first_attached_table(
    db: ts.Database, connection: Connection, mode: ModeName, is_sql: bool
) -> None:
    corpus = exact_corpus(db)
    connection.execute("CREATE TABLE few (id text PRIMARY KEY, body text)")
    connection.execute("INSERT INTO few VALUES ('few', 'a single row'), ('null', NULL)")
    corpus.attach("few", "id", "body", mode)
    assert corpus.config.common is None
    corpus.detach("few")
    corpus.remove(["few"])
    texts = dict(documents(200, words=25, planted=0.5, boilerplate=100, seed=5))
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", list(texts.items()))
    if is_sql:
        connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', %s)", [mode])
        assert db.worker().run(until_idle=True).added == len(texts)
    else:
        assert corpus.attach("t", "id", "body", mode).added == len(texts)
    corpus = db.corpus("c")
    assert corpus.config.common is not None
    learned = corpus.config.common
    connection.execute(
        "INSERT INTO t VALUES ('later', 'a later row of few words'), ('no text', NULL)"
    )
    connection.execute("DELETE FROM t WHERE id = %s", [min(texts)])
    index_all_pending(db, corpus)
    del texts[min(texts)]
    assert_complete(db, corpus, texts | {"later": "a later row of few words"})
    corpus.attach("few", "id", "body", mode)
    assert corpus.config.common.values.tolist() == learned.values.tolist()


def test_a_load_into_a_corpus_that_learns_does_not_load_its_settings(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*documents(200, words=25, planted=0.5, boilerplate=100, seed=5)]
    corpus, other = exact_corpus(db), db.corpus("c")
    loaded: list[str] = []

    def load(engine: Engine, name: str, check_golden: bool = True) -> StoredCorpus:
        loaded.append(name)
        return load_corpus(engine, name, check_golden)

    load_corpus = stored_corpus.load
    monkeypatch.setattr(stored_corpus, "load", load)
    assert corpus.add_many(texts).added == len(texts)
    assert corpus.config.common is not None
    assert loaded == []
    # The first load has rebuilt the corpus, so another object must read what it has learned.
    assert other.add_many([("later", "a later row of few words")]).added == 1
    assert loaded == ["c"]
    assert other.config == corpus.config
    assert corpus.check() == []


def test_a_threshold_below_that_of_the_corpus_is_refused(
    db: ts.Database, connection: Connection, textsim: Textsim
) -> None:
    corpus = exact_corpus(db)
    corpus.add_many(TEXTS.items())
    message = 'threshold is 0.5.*the exact corpus "c"'
    for search in (
        lambda: corpus.query("text", 0.5),
        lambda: corpus.query_many(["text"], 0.5),
        lambda: corpus.neighbours("empty", 0.5),
        lambda: list(corpus.pairs(0.5)),
        lambda: list(corpus.clusters(0.5)),
        lambda: list(corpus.duplicates(0.5)),
    ):
        with pytest.raises(ts.ConfigurationError, match=message):
            search()
    for statement in (
        "SELECT key, similarity FROM textsim.matches('c', 'text', 0.5)",
        "SELECT key, similarity FROM textsim.neighbours('c', 'empty', 0.5)",
        "SELECT * FROM textsim.pairs('c', 0.5)",
    ):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
            connection.execute(statement.encode())
    for arguments in (
        ["query", "c", "text", "--threshold", "0.5"],
        ["pairs", "c", "--threshold", "0.5"],
        ["clusters", "c", "--threshold", "0.5"],
    ):
        assert 'the exact corpus "c"' in textsim(*arguments, status=2).stderr
    # Measures other than Jaccard have thresholds of their own.
    assert corpus.query(TEXTS["two words"], 0.1, measure="containment")[0].key == "two words"
    assert [m.key for m in corpus.query("word", 1.0)] == ["one word", "the same word"]


def test_a_plan_and_the_recall_of_an_exact_corpus(db: ts.Database, textsim: Textsim) -> None:
    corpus = exact_corpus(db)
    corpus.add_many(TEXTS.items())
    report = corpus.measure_recall()
    truth = brute_force(TEXTS, "word:3", 0.6)
    assert (report.pairs, report.candidate_pairs) == (len(truth), len(truth))
    assert (report.missed, report.lost) == ([], [])
    assert report.recall == report.promised == 1
    (chosen,) = [each for each in measured_options(report, 1, 128, None, "word") if each.chosen]
    assert (chosen.banding, chosen.recall) == (None, 1.0)
    assert "exact" in textsim("plan", "c").stdout
    assert "exact" in textsim("stats", "c").stdout + textsim("corpus", "list", "c").stdout
