"""Documents that the user forced: a unique corpus stores them although they match others."""

from __future__ import annotations

import math
from typing import Any

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, engine_of, value
from tests.support.unique_ways import CALLS

COMMON = "one two three four five six seven eight nine ten"
RED, BLUE, OTHER = f"{COMMON} red", f"{COMMON} blue", "nothing that any other text in here contains"


def create(db: ts.Database, **settings: Any) -> ts.Corpus:
    chosen: dict[str, Any] = {"shingle": "word:2", "threshold": 0.7, "recall": 1}
    return db.create_corpus("c", **(chosen | {"is_unique": True} | settings))


def forced_keys(connection: Connection) -> set[str]:
    """Return the keys of the forced documents of the only corpus."""
    corpus_id = value(connection, "SELECT id FROM textsim.corpus")
    query = f"SELECT key FROM textsim.document_{corpus_id} WHERE forced"
    return {key for (key,) in connection.execute(query.encode())}


STEPS: list[tuple[str, str, dict[str, float], list[str], set[str]]] = [
    ("a", RED, {}, [], set()),
    ("b", BLUE, {}, ["a"], set()),
    ("b", BLUE, {"force": False}, ["a"], set()),
    ("b", BLUE, {"force": True}, [], {"b"}),
    ("c", BLUE, {"force": True}, ["b"], {"b"}),
    ("c", BLUE, {"unique_from": math.inf}, [], {"b", "c"}),
    ("b", BLUE, {}, [], {"b", "c"}),
    ("b", OTHER, {}, [], {"c"}),
    ("d", f"{OTHER} too", {"force": True}, [], {"c", "d"}),
    ("e", "words of its own", {"force": True}, [], {"c", "d"}),
]
"""A key, a text and what is forced; the keys in the way, and the forced keys after it."""


@pytest.mark.parametrize("recall", [1.0, 0.95])
def test_a_forced_document_stands_beside_its_matches(
    db: ts.Database, connection: Connection, recall: float
) -> None:
    """Copies of a stored text are forced by a word of their own. A rebuild keeps what was forced."""
    for name, write in CALLS.items():
        corpus = create(db, recall=recall)
        for step in STEPS:
            key, text, force, in_the_way, forced = step
            written = write(corpus, connection, key, text, **force)
            assert written.standing == in_the_way, (name, step)
            assert forced_keys(connection) == forced, (name, step)
        assert corpus.rebuild(seed=7)
        assert forced_keys(connection) == {"c", "d"}
        assert corpus.check() == []
        db.drop_corpus("c")


def test_check_knows_the_forced_documents_alone(db: ts.Database, connection: Connection) -> None:
    corpus = create(db)
    corpus.add("a", RED)
    corpus.add("b", BLUE, force=True)
    assert corpus.check() == []
    corpus.add("d", "five six seven eight and others")
    with pytest.raises(ts.ConfigurationError, match='1 pair of its documents match: "a" and "d"'):
        corpus.rebuild(threshold=0.2)
    connection.execute("UPDATE textsim.document_1 SET forced = false")
    assert [problem.kind for problem in corpus.check()] == ["twin"]
    with pytest.raises(ts.ConfigurationError, match='"a" and "b"'):
        corpus.rebuild(seed=7)


def test_rows_that_attach_keeps_are_forced(db: ts.Database, connection: Connection) -> None:
    corpus = create(db)
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
    connection.execute("INSERT INTO t VALUES (1, %s), (2, %s), (3, %s)", [RED, BLUE, OTHER])
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', existing => 'keep')")
    assert forced_keys(connection) == {"2"}
    assert corpus.check() == []
    assert corpus.rebuild(seed=7)
    assert forced_keys(connection) == {"2"}
    connection.execute("UPDATE t SET body = %s WHERE id = 2", [f"{OTHER} that is not there"])
    assert forced_keys(connection) == set()
    with pytest.raises(pg.UniqueViolation):
        connection.execute("UPDATE t SET body = %s WHERE id = 2", [BLUE])


def test_check_needs_no_second_connection(db: ts.Database) -> None:
    options = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.1}
    with engine_of(db.url, **options) as engine, ts.connect(engine) as small:
        corpus = create(small)
        corpus.add("a", RED)
        corpus.add("b", BLUE, force=True)
        assert corpus.check() == []
