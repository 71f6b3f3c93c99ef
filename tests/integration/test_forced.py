"""Documents that the user forced: a unique corpus stores them although they match others."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, engine_of, value
from tests.support.reference import similarity
from tests.support.sampling import sample
from tests.support.sources import index_all_pending

COMMON = "one two three four five six seven eight nine ten"
RED, BLUE, OTHER = f"{COMMON} red", f"{COMMON} blue", "nothing that any other text in here contains"
TEXTS = [f"{COMMON} {end}" for end in ("red", "blue", "green")] + [OTHER, f"{OTHER} too", "else"]
KEYS = "abcdefg"
FORCE, COPIES = {"force": True}, {"copies": True}


def create(db: ts.Database, **settings: Any) -> ts.Corpus:
    chosen: dict[str, Any] = {"shingle": "word:2", "threshold": 0.7, "recall": 1}
    return db.create_corpus("c", **(chosen | {"is_unique": True} | settings))


def forced_keys(connection: Connection) -> set[str]:
    """Return the keys of the forced documents of the only corpus."""
    number = value(connection, "SELECT id FROM textsim.corpus")
    query = f"SELECT key FROM textsim.document_{number} WHERE forced"
    return {key for (key,) in connection.execute(query.encode())}


@dataclass
class Stored:
    text: str
    scope: str | None
    forced: bool = False
    expired: bool = False


class Life:
    """A unique corpus that is written at random, and a model of it."""

    def __init__(self, db: ts.Database, connection: Connection, corpus: ts.Corpus) -> None:
        self._db = db
        self._connection = connection
        self.corpus = corpus
        self.stored: dict[str, Stored] = {}
        self.different: set[frozenset[str]] = set()

    def step(self, rng: random.Random) -> None:
        kind = rng.choice(["write"] * 8 + ["judge", "remove", "work", "rebuild", "expire"])
        if kind == "write":
            key = rng.choice(KEYS)
            known = self.stored.get(key)
            text, scope = rng.choice(TEXTS), rng.choice("xy")
            if known is not None and rng.random() < 0.4:
                text, scope = known.text, known.scope or scope
            chosen_scope = scope if self.corpus.config.scoped else None
            self._write(rng, key, text, chosen_scope, rng.choice([*[{}] * 5, FORCE, FORCE, COPIES]))
        elif kind == "judge":
            self._judge(*rng.sample(KEYS, 2))
        elif kind == "remove":
            key = rng.choice(KEYS)
            assert self.corpus.remove([key]) == (self.stored.pop(key, None) is not None)
        elif kind == "work":
            index_all_pending(self._db, self.corpus)  # the worker removes what has expired
            self.stored = {key: d for key, d in self.stored.items() if not d.expired}
        elif kind == "rebuild":
            self.corpus.rebuild(seed=rng.randrange(1000))
        elif self.corpus.config.keep_for is not None:
            keys = [key for key in self.stored if rng.random() < 0.3]
            number = value(self._connection, "SELECT id FROM textsim.corpus")
            self._connection.execute(
                f"UPDATE textsim.document_{number} SET expires_at = now() WHERE key = ANY (%s)",
                [keys],
            )
            for key in keys:
                self.stored[key].expired = True

    def _write(
        self, rng: random.Random, key: str, text: str, scope: str | None, force: dict[str, bool]
    ) -> None:
        expected = self._expected(key, text, scope, force)
        way = rng.choice(["add", "add unique", "python add", "python add unique"])
        if way.startswith("python"):
            method = self.corpus.add if way == "python add" else self.corpus.add_unique
            try:
                result = method(key, text, scope, **force)
                found = [match.key for match in result] if isinstance(result, list) else []
            except ts.DuplicateError as error:
                found = [match.key for match in error.matches]
        else:
            function = "add" if way == "add" else "add_unique"
            named = "".join(f", {name} => true" for name in force)
            query = f"SELECT * FROM textsim.{function}('c', %s, %s, %s{named})"
            try:
                rows = self._connection.execute(query.encode(), [key, text, scope])
                found = [row[0] for row in rows] if way == "add unique" else []
                assert all(row[2] == scope for row in rows if way == "add unique")
            except pg.UniqueViolation as error:
                found = [str(error.diag.message_detail).split("(")[1].split(")")[0]]
                assert found[0] in expected
                found = sorted(expected)
        assert sorted(found) == sorted(expected), (key, text, scope, force, way)

    def _judge(self, a: str, b: str) -> None:
        """Judge two documents different, unless their scopes differ."""
        scopes = {self.stored[key].scope for key in (a, b) if key in self.stored}
        if len(scopes) <= 1:
            self.corpus.judge(a, b, "different")
            self.different.add(frozenset((a, b)))

    def _expected(
        self, key: str, text: str, scope: str | None, force: dict[str, bool]
    ) -> list[str]:
        """Write to the model, and return the keys that keep the document out."""
        twins = {
            other: similarity(document.text, text, n=2)
            for other, document in self.stored.items()
            if other != key and not document.expired and document.scope == scope
            if self.corpus.config.threshold <= similarity(document.text, text, n=2)
            if frozenset((key, other)) not in self.different
        }
        known = self.stored.get(key)
        is_same = known is not None and (known.text, known.scope) == (text, scope)
        if known is not None and is_same and not known.expired:
            known.forced |= bool(force and twins) and self.corpus.config.keep_for is not None
            return []
        unique_from = 2 if force == COPIES else 1 if force else 0
        in_the_way = [other for other in twins if twins[other] >= unique_from]
        if in_the_way:
            return in_the_way
        was_forced = known is not None and is_same and known.forced
        self.stored[key] = Stored(text, scope, forced=was_forced or bool(twins))
        return []

    def check(self) -> None:
        assert forced_keys(self._connection) == {k for k, d in self.stored.items() if d.forced}
        assert len(self.corpus) == sum(not document.expired for document in self.stored.values())
        assert self.corpus.check() == []


@pytest.mark.parametrize(
    ("recall", "keep_for"),
    sample([(1.0, "30 days"), (0.95, None), (1.0, None), (0.95, "30 days")], 4),
)
def test_a_life_at_random_equals_its_model(
    db: ts.Database,
    connection: Connection,
    keep_for: str | None,
    recall: float,
    rng: random.Random,
) -> None:
    corpus = create(db, keep_for=keep_for, recall=recall, scoped=rng.random() < 0.5)
    life = Life(db, connection, corpus)
    for _ in range(10):
        for _ in range(6):
            life.step(rng)
        life.check()


def test_nothing_is_forced_unless_force_is_true(db: ts.Database, connection: Connection) -> None:
    create(db)
    connection.execute("SELECT textsim.add('c', 'a', %s)", [RED])
    with pytest.raises(pg.UniqueViolation):
        connection.execute("SELECT textsim.add('c', 'b', %s, force => NULL)", [BLUE])
    db.corpus("c").rebuild(is_unique=False)
    assert value(connection, "SELECT textsim.add('c', 'b', %s, force => true)", [BLUE])
    assert forced_keys(connection) == set()


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
