"""Ids of documents, and documents that have a bucket twice."""

from __future__ import annotations

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, value

FIRST, SECOND, SINGLE = (f"some words and {number}" for number in (5592, 9978, 9999))
"""Two texts that have a bucket twice, and one text whose buckets all differ, in the corpus below."""


@pytest.fixture
def corpus(db: ts.Database) -> ts.Corpus:
    """A corpus in which one document in some 2,048 has two equal buckets."""
    return db.create_corpus("c", shingle="word:1", num_hashes=4096, bands=2048, rows=2)


def count_band_rows(connection: Connection) -> dict[str, tuple[int, int]]:
    """Return the numbers of band rows and of distinct buckets of each document."""
    rows = connection.execute(
        "SELECT d.key, count(*), count(DISTINCT b.bucket) FROM textsim.band_1 b "
        "JOIN textsim.document_1 d ON d.id = b.document_id GROUP BY 1"
    ).fetchall()
    return {key: (band_rows, buckets) for key, band_rows, buckets in rows}


@pytest.mark.parametrize("way", ["python", "sql"])
def test_documents_with_equal_buckets_are_written_replaced_and_removed(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, way: str
) -> None:
    def write(text: str) -> None:
        if way == "python":
            corpus.add("k", text)
        else:
            connection.execute("SELECT textsim.add('c', 'k', %s)", [text])

    for text in (FIRST, SINGLE, SECOND, FIRST, "", FIRST, SECOND, SINGLE, FIRST):
        write(text)
        assert corpus.check() == []
        if text:
            band_rows, buckets = count_band_rows(connection)["k"]
            assert band_rows == 2048
            assert (buckets < 2048) == (text != SINGLE)
        assert [match.key for match in corpus.query(text)] == ["k"] * bool(text)
    if way == "python":
        corpus.remove(["k"])
    else:
        connection.execute("SELECT textsim.remove('c', 'k')")
    assert count_band_rows(connection) == {}
    db.worker().run(until_idle=True)
    assert corpus.check() == []


def ids(connection: Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT key, id FROM textsim.document_1").fetchall())


def test_updates_keep_the_ids_of_documents(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many([("a", "one two three"), ("b", "four five six")])
    connection.execute("SELECT textsim.add('c', 'd', 'seven eight nine')")
    before = ids(connection)
    assert before == {"a": 1, "b": 2, "d": 3}
    corpus.add_many([("a", "another text of Python's"), ("d", "")])
    connection.execute("SELECT textsim.add('c', 'b', 'another text of SQL''s')")
    db.worker().run(until_idle=True)
    assert ids(connection) == before
    assert corpus.check() == []
    corpus.remove(["a"])
    corpus.add("a", "one two three")
    assert ids(connection) == before | {"a": 4}
    corpus.rebuild(seed=3)
    query = "SELECT id FROM textsim.document_2 ORDER BY id"
    assert connection.execute(query).fetchall() == [(1,), (2,), (3,)]


def test_a_corpus_without_free_ids_refuses_new_documents(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("my corpus")
    corpus.add("a", "one two three")
    connection.execute("SELECT setval('textsim.document_1_id_seq', 2147483646)")
    assert value(connection, "SELECT textsim.add('my corpus', 'last', 'four five six')")
    for number in range(2):
        with pytest.raises(pg.SequenceGeneratorLimitExceeded, match="document_1_id_seq"):
            connection.execute("SELECT textsim.add('my corpus', 'b', 'one two three')")
        with pytest.raises(ts.DatabaseError, match="has given out all 2,147,483,647 ids") as error:
            corpus.add_many([(f"{number}", "one two three"), ("b", "one two three")])
        assert "textsim rebuild 'my corpus'" in str(error.value)
    # Stored documents can still be changed.
    assert corpus.add("last", "seven eight nine").replaced == 1
    assert connection.execute("SELECT textsim.add('my corpus', 'a', 'ten')").fetchone() == (True,)
    assert corpus.check() == []
    corpus.rebuild(seed=2)
    assert corpus.add("b", "one two three").added == 1
    query = "SELECT key, id FROM textsim.document_2 ORDER BY id"
    assert [id for _, id in connection.execute(query).fetchall()] == [1, 2, 3]  # noqa: A001
    db.worker().run(until_idle=True)
    assert corpus.check() == []


def test_a_batch_that_does_not_fit_writes_nothing(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c")
    connection.execute("SELECT setval('textsim.document_1_id_seq', 2147483640)")
    with pytest.raises(ts.DatabaseError, match="has given out all"):
        corpus.add_many((f"{i}", f"text {i}") for i in range(10))
    assert len(corpus) == 0
    assert corpus.check() == []
    connection.execute("SELECT setval('textsim.document_1_id_seq', 2147483637)")
    assert corpus.add_many((f"{i}", f"text {i}") for i in range(10)).added == 10
    assert max(ids(connection).values()) == 2147483647
    assert [match.key for match in corpus.query("text 7", 1.0)] == ["7"]
    assert corpus.check() == []
    assert len(list(corpus.pairs(0.1))) == 0
