"""Candidates in SQL, and searches for rows that are not indexed."""

from __future__ import annotations

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import Connection
from textsim_db.sketch import sketch_texts


def test_candidates_share_buckets(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", shingle="word:1")
    texts = dict(documents(150, words=30, planted=0.5, seed=3))
    corpus.add_many(texts.items())
    buckets = {key: {*sketch_texts.buckets(text, corpus.config)} for key, text in texts.items()}
    for key in list(texts)[:50]:
        shared = {other: len(buckets[key] & buckets[other]) for other in texts}
        rows = connection.execute("SELECT * FROM textsim.candidates('c', %s)", [texts[key]])
        assert dict(rows.fetchall()) == {other: n for other, n in shared.items() if n}


def test_a_search_for_a_row_that_is_not_indexed_returns_no_rows(
    db: ts.Database, connection: Connection
) -> None:
    """A LATERAL join may meet a row that is not indexed yet, or has no key or text."""
    texts = {"a": "one two three four", "b": "One, two, three, four!"}
    corpus = db.create_corpus("c")
    corpus.add_many(texts.items())
    connection.execute("CREATE TABLE mine (key text, body text)")
    connection.execute(
        "INSERT INTO mine VALUES ('a', 'one two three four'), ('new', ''), (NULL, NULL)"
    )
    for function, rows in (
        ("neighbours('c', m.key)", [("a", "b")]),
        ("matches('c', m.body)", [("a", "a"), ("a", "b")]),
        ("candidates('c', m.body)", [("a", "a"), ("a", "b")]),
    ):
        query = f"SELECT m.key, f.* FROM mine m CROSS JOIN LATERAL textsim.{function} f"
        key_pairs = [row[:2] for row in connection.execute(query.encode()).fetchall()]
        assert key_pairs == rows, function
    with pytest.raises(ts.DocumentNotFound):
        corpus.neighbours("new")


def test_a_text_without_a_candidate_is_compared_with_nothing(
    corpus: ts.Corpus, connection: Connection
) -> None:
    """To plan the comparison takes as long as to sketch a text, and most texts have no candidate."""
    corpus.add("a", "one two three four five")
    ((id_,),) = connection.execute("SELECT id FROM textsim.corpus WHERE name = 'c'").fetchall()
    calls = "SELECT calls FROM pg_stat_xact_user_functions WHERE funcname = %s"
    for text, keys in (("six seven eight", []), ("one two three four five", ["a"])):
        with connection.transaction():
            connection.execute("SET LOCAL track_functions = 'pl'")
            matches = connection.execute("SELECT key FROM textsim.matches('c', %s)", [text])
            assert [key for (key,) in matches.fetchall()] == keys
            called = connection.execute(calls, [f"_candidates_{id_}"]).fetchall()
            assert len(called) == len(keys)
