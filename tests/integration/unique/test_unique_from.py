"""A match is a twin of a unique corpus from unique_from on; below it the document is stored."""

from __future__ import annotations

import math

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.unique_ways import BATCHES, CALLS, OF_TABLES

WORDS = [f"w{n:02}" for n in range(20)]
STANDING = " ".join(WORDS)


def similar(similarity: float) -> str:
    """Return a text whose set of words is as similar to that of the standing text."""
    return " ".join(WORDS[: round(20 * similarity)])


RAISE = CALLS | {"add_many": BATCHES["add_many"]}
OBEY = RAISE | BATCHES | {"table": OF_TABLES["table"]}
OUTCOMES = [
    # similarity, unique_from of the call, whether the document is stored
    (0.7, None, True),
    (0.85, None, True),
    (0.9, None, False),
    (1.0, None, False),
    (0.9, 0.6, False),  # never lowered
    (0.85, 0.6, True),
    (0.9, 0.95, True),
    (0.95, 0.95, False),
    (1.0, 1, False),
    (1.0, math.inf, True),
]


@pytest.mark.parametrize("recall", sample([0.99, 1.0], 2, "more"), ids=["bands", "exact"])
def test_every_writer_asks_from_which_similarity_matches_are_twins(
    db: ts.Database, connection: Connection, recall: float
) -> None:
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text, scope text)")
    settings = {"shingle": "word:1", "threshold": 0.8, "recall": recall, "unique_from": 0.9}
    corpus = db.create_corpus("c", is_unique=True, **settings)  # type: ignore[arg-type]
    attach = "SELECT textsim.attach('c', 't', 'id', 'body')"
    connection.execute(attach)
    corpus.add("standing", STANDING)
    for similarity, raised, is_stored in OUTCOMES:
        named = {} if raised is None else {"unique_from": raised}
        for name, write in (RAISE if named else OBEY).items():
            written = write(corpus, connection, "new", similar(similarity), **named)
            assert written.is_stored == is_stored, (name, similarity, raised)
            assert is_stored or name != "sql add" or "unique_from is 0.9" in written.message
            assert corpus.check() == []
            connection.execute("DELETE FROM t")
            corpus.remove(["new"])


def test_a_batch_is_compared_at_the_similarity_of_its_call(db: ts.Database) -> None:
    """c is a twin of b, which is stored in this call although it is a twin of a by the settings."""
    texts = {"a": STANDING, "b": similar(0.9), "c": f"{similar(0.9)} w99"}
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.6, recall=1, is_unique=True)
    assert [twin[:2] for twin in corpus.add_many(texts, unique_from=0.92).twins] == [("c", "b")]
    assert corpus.check() == []
    assert corpus.rebuild(seed=7)


def test_a_rebuild_changes_it(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", shingle="word:1", is_unique=True, unique_from=0.95)
    corpus.add_many({"a": STANDING, "b": similar(0.9)})
    assert corpus.check() == []
    assert not corpus.rebuild(unique_from=1)
    with pytest.raises(
        ts.ConfigurationError, match=r"at unique_from 0\.85: 1 pair of its documents"
    ):
        corpus.rebuild(unique_from=0.85)
    assert corpus.config.unique_from == 1
    assert corpus.rebuild(unique_from=0.93)
    corpus.judge("a", "b", "different")
    assert corpus.rebuild(unique_from=0.8)
    assert corpus.config.unique_from is None


def test_the_value_of_a_call_lies_above_zero(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", unique_from=0.8)
    wrong_value = r"unique_from is .*; expected above 0, at"
    for wrong in (0, 1.5, math.nan):
        with pytest.raises(ts.ConfigurationError, match=wrong_value):
            corpus.add("a", "text", unique_from=wrong)
        with pytest.raises(pg.InvalidParameterValue, match=wrong_value):
            connection.execute("SELECT textsim.add('c', 'a', 'text', unique_from => %s)", [wrong])
