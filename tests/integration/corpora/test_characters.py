"""Corpora of characters store normal forms: they have no dictionary, and wait for no worker."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support import collision
from tests.support.connections import Connection, value
from tests.support.sampling import sample
from textsim_db.text.tokens import normal_form

STORED = """
SELECT d.key, d.normal_form, d.word_ids, d.language FROM textsim.document_{0} d ORDER BY d.key
"""
WORDS, LOG = "SELECT count(*) FROM textsim.word_{0}", "SELECT kind, keys FROM textsim.pending"


def stored(connection: Connection, corpus: ts.Corpus) -> list[tuple[Any, ...]]:
    id_ = value(connection, "SELECT id FROM textsim.corpus WHERE name = %s", [corpus.name])
    assert value(connection, WORDS.format(id_)) == 0
    return connection.execute(STORED.format(id_).encode()).fetchall()


@pytest.mark.parametrize("recall", sample([0.95, 1], 2))
def test_each_way_to_write_stores_the_normal_form(
    db: ts.Database, connection: Connection, rng: random.Random, recall: float
) -> None:
    texts = dict(documents(60, 8, seed=rng.randrange(1000))) | {"empty": "?!", "CJK": "漢字 かな!"}
    corpus = db.create_corpus("c", shingle="char:3", threshold=0.6, recall=recall)
    corpus.add_many(list(texts.items())[:30])
    corpus.add_many(dict.fromkeys(list(texts)[:5], "Other words").items())
    for key, text in texts.items():
        if rng.random() < 0.5:
            corpus.add(key, text)
        else:
            connection.execute("SELECT textsim.add('c', %s, %s)", [key, text])
    expected = [(key, normal_form(text), None, None) for key, text in sorted(texts.items())]
    assert stored(connection, corpus) == expected
    assert connection.execute(LOG).fetchall() == []
    status = corpus.status()
    assert (status.pending, status.as_text, status.problems) == (0, 0, [])
    assert corpus.add_many(texts.items()).unchanged == len(texts)
    with pytest.raises(psycopg.errors.CheckViolation, match="document_no_word_ids"):
        connection.execute("UPDATE textsim.document_1 SET word_ids = '{}', normal_form = NULL")
    pairs = sorted(tuple(pair) for pair in corpus.pairs())
    corpus.rebuild()
    assert stored(connection, corpus) == expected
    assert sorted(tuple(pair) for pair in corpus.pairs()) == pairs
    assert corpus.check() == []


def test_a_worker_gives_a_document_its_language_only(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c", shingle="char:3", language="auto")
    text = "The city council has approved the new budget for the schools of the town."
    for key in ("a", "b"):
        connection.execute("SELECT textsim.add('c', %s, %s)", [key, text])
    connection.execute("SELECT textsim.add('c', 'empty', '')")
    form = normal_form(text)
    waiting = [("a", form, None, None), ("b", form, None, None), ("empty", "", None, "und")]
    assert stored(connection, corpus) == waiting
    assert connection.execute(LOG).fetchall() == [("words", ["a"]), ("words", ["b"])]
    assert corpus.status().pending == 2
    corpus.rebuild()  # the documents still wait
    assert stored(connection, corpus) == waiting
    assert corpus.check() == []
    assert corpus.add_many([("a", text)]).unchanged == 1
    db.worker().run(until_idle=True)
    complete = [("a", form, None, "en"), ("b", form, None, "en"), ("empty", "", None, "und")]
    assert stored(connection, corpus) == complete
    assert (corpus.status().pending, corpus.check()) == (0, [])


def test_a_word_with_the_hash_of_another_stays_text(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c", shingle="char:3")
    assert corpus.add_many([("a", collision.FIRST), ("b", collision.SECOND)]).added == 2
    corpus.rebuild(shingle="word:1")
    (problem,) = corpus.check()
    assert (problem.kind, problem.subject in ("a", "b")) == ("words", True)
    assert [corpus.normal_form(key) for key in ("a", "b")] == [collision.FIRST, collision.SECOND]
    assert len(corpus.query(collision.SECOND)) == 1


def test_a_rebuild_makes_words_of_characters_and_back(
    db: ts.Database, connection: Connection
) -> None:
    texts = dict(documents(40, 8)) | {"empty": "?!"}
    corpus = db.create_corpus("c", shingle="char:3")
    corpus.add_many(texts.items())
    before = stored(connection, corpus)
    corpus.rebuild(shingle="word:1")
    connection.execute("SELECT textsim.add('c', 'late', 'words without ids')")
    id_ = value(connection, "SELECT id FROM textsim.corpus WHERE name = 'c'")
    rows = connection.execute(STORED.format(id_).encode()).fetchall()
    assert {key for key, _, word_ids, _ in rows if word_ids is None} == {"late"}
    assert (corpus.check(), corpus.normal_form("empty")) == ([], "")
    corpus.rebuild(shingle="char:3")
    late = ("late", "words without ids", None, None)
    assert stored(connection, corpus) == sorted([*before, late])
    db.worker().run(until_idle=True)
    assert connection.execute(LOG).fetchall() == []
    assert corpus.check() == []
