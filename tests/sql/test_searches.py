"""Searches in SQL equal those in Python."""

from __future__ import annotations

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import Connection
from tests.support.sampling import sample


@pytest.mark.both_servers
@pytest.mark.parametrize("shingle", sample(["word:3", "char:5", "word:1"], 3))
def test_searches_in_sql_equal_those_in_python(
    db: ts.Database, connection: Connection, shingle: str
) -> None:
    corpus = db.create_corpus("c", shingle=shingle)
    texts = dict(documents(150, words=30, planted=0.5, seed=3))
    texts |= {"empty": "", "short": "word", "Zoë": "漢字 word กิ่ง"}
    corpus.add_many(texts.items())
    for key, text in list(texts.items())[:25]:
        assert connection.execute(
            "SELECT * FROM textsim.candidates('c', %s)", [text]
        ).fetchall() == (list(map(tuple, corpus.candidates(text))))
        expected = [match[:2] for match in corpus.query(text, threshold=0.3)]
        matches = connection.execute(
            "SELECT * FROM textsim.matches('c', %s, 0.3)", [text]
        ).fetchall()
        assert matches == expected
        neighbours = [match[:2] for match in corpus.neighbours(key, threshold=0.3, max_results=3)]
        query = "SELECT * FROM textsim.neighbours('c', %s, 0.3, 3)"
        assert connection.execute(query, [key]).fetchall() == neighbours
    assert len(list(corpus.pairs(0.3))) > 10
    pairs = connection.execute("SELECT * FROM textsim.pairs('c', 0.3)").fetchall()
    assert sorted(pairs) == sorted(map(tuple, corpus.pairs(0.3)))
    candidate_pairs = connection.execute(
        "SELECT a, b, shared FROM textsim.candidate_pairs('c')"
    ).fetchall()
    assert len(candidate_pairs) == len({row[:2] for row in candidate_pairs}) >= len(pairs)
    for a, b, shared in candidate_pairs[:20]:
        assert a < b
        assert shared == len({*corpus.buckets(texts[a])} & {*corpus.buckets(texts[b])})
    in_both_orders = sorted(
        [*candidate_pairs, *((b, a, shared) for a, b, shared in candidate_pairs)]
    )
    query = "SELECT p.* FROM textsim.candidates_of('c', %s) p"
    for key in texts:
        expected = [pair[1:] for pair in in_both_orders if pair[0] == key]
        assert sorted(connection.execute(query, [key]).fetchall()) == expected


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
        ("candidates_of('c', m.key)", [("a", "b")]),
        ("matches('c', m.body)", [("a", "a"), ("a", "b")]),
        ("candidates('c', m.body)", [("a", "a"), ("a", "b")]),
    ):
        query = f"SELECT m.key, f.* FROM mine m CROSS JOIN LATERAL textsim.{function} f"
        key_pairs = [row[:2] for row in connection.execute(query.encode()).fetchall()]
        assert key_pairs == rows, function
    for function in (
        "pairs(NULL)",
        "clusters(NULL)",
        "duplicates(NULL)",
        "candidate_pairs(NULL)",
        "candidates_of(NULL, 'a')",
    ):
        assert connection.execute(f"SELECT * FROM textsim.{function}".encode()).fetchall() == []
    with pytest.raises(ts.DocumentNotFound):
        corpus.neighbours("new")
