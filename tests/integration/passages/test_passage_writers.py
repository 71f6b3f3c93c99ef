"""Documents have passages whoever wrote them, and none when they are gone."""

from __future__ import annotations

import random

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.passages import QUOTATION, WORDS, create_corpus, expected, places, related_texts

WAYS = (
    "add",
    "add_many",
    "sql",
    "sql with ids",
    "update",
    "sql update",
    "rebuild",
    "other passages",
)


def write(
    db: ts.Database, connection: Connection, way: str, documents: dict[str, str]
) -> ts.Corpus:
    """Store documents in one way; return the corpus."""
    if way == "other passages":
        corpus = db.create_corpus("c")
        corpus.add_many(documents.items())
        corpus.rebuild(passages=WORDS)
        return corpus
    corpus = create_corpus(db)
    if "update" in way:
        corpus.add_many((key, f"other words of {key} " * 5) for key in documents)
    if way == "add":
        for key, text in documents.items():
            corpus.add(key, text)
    elif way.startswith("sql"):
        for item in documents.items():
            connection.execute("SELECT textsim.add('c', %s, %s)", item)
        if way == "sql with ids":
            connection.execute("CALL textsim.index_pending('c')")
    else:
        corpus.add_many(documents.items())
    if way == "rebuild":
        corpus.rebuild(threshold=0.7)
    return corpus


def test_documents_have_passages_whatever_way_they_came(
    db: ts.Database, connection: Connection, seed: int
) -> None:
    documents = related_texts(random.Random(seed), 8)
    left = dict(list(documents.items())[3::2])
    for way in WAYS:
        corpus = write(db, connection, way, documents)
        assert corpus.check() == [], way
        for text in documents.values():
            assert places(corpus.passages(text)) == expected(text, documents), way
        corpus.remove(list(documents)[::2])
        connection.execute("SELECT textsim.remove('c', %s)", [list(documents)[1]])
        assert corpus.check() == [], way
        for text in documents.values():
            assert places(corpus.passages(text)) == expected(text, left), way
        db.drop_corpus("c")


def test_an_attached_table_has_passages(db: ts.Database, connection: Connection) -> None:
    corpus = create_corpus(db)
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    connection.execute("INSERT INTO t VALUES ('a', %s)", [QUOTATION])
    corpus.attach("t", "id", "body", mode="inline")
    db.worker().run(until_idle=True)
    assert places(corpus.passages(QUOTATION)) == [("a", 9, 0, 0)]
    connection.execute("INSERT INTO t VALUES ('b', %s)", [f"and {QUOTATION}"])
    assert places(corpus.passages(QUOTATION)) == [("a", 9, 0, 0), ("b", 9, 0, 1)]
    passage = corpus.passages(QUOTATION)[1]
    assert corpus.characters(passage) == (4, 4 + len(QUOTATION))
    connection.execute("UPDATE t SET body = 'other words' WHERE id = 'a'")
    connection.execute("DELETE FROM t WHERE id = 'b'")
    with pytest.raises(ts.DocumentNotFound, match='no attached table of corpus "c" has "b"'):
        corpus.characters(passage)
    assert corpus.passages(QUOTATION) == []
    assert corpus.check() == []


def test_a_search_sees_the_passages_of_a_rebuild(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    corpus.add("a", QUOTATION)
    other = db.corpus("c")
    assert other.config.passages is None
    corpus.rebuild(passages=9)
    assert places(other.passages(QUOTATION)) == [("a", 9, 0, 0)]
    corpus.rebuild(passages=6)
    assert places(other.passages(QUOTATION, 6)) == [("a", 9, 0, 0)]
    stale = db.corpus("c")
    corpus.rebuild(passages=8)
    assert stale.passages("seven one two three four five six seven") == []
