"""Writers of a unique corpus step by step: who waits for whom, and what gets in."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.clients import Client, Isolation
from tests.support.connections import value
from tests.support.interleaving import ADD, REMOVE, Scene

COMMON = "one two three four five six seven eight nine ten"
RED, BLUE, OTHER = f"{COMMON} red", f"{COMMON} blue", "nothing that any other text in here contains"
TWINS_OF = "SELECT * FROM textsim.twins_of('c', %s, %s)"
BUCKET_LOCKS = """
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND classid <> hashtext('textsim-db unique corpus')::bigint::oid
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@pytest.fixture(params=[1.0, pytest.param(0.95, marks=pytest.mark.more)], ids=["exact", "bands"])
def corpus(db: ts.Database, request: pytest.FixtureRequest) -> ts.Corpus:
    return db.create_corpus(
        "c", shingle="word:2", threshold=0.7, recall=request.param, is_unique=True
    )


def ends(client: Client, commit: bool) -> None:
    if commit:
        client.commit()
    else:
        client.rollback()


def end_add(client: Client, is_twin: bool) -> None:
    """End the addition of "b": it is refused if it is a twin of "a", and committed otherwise."""
    if is_twin:
        with pytest.raises(pg.UniqueViolation, match='document "b" matches document "a"'):
            client.end()
        client.rollback()
    else:
        assert client.end() == [(True,)]
        client.commit()


def end_both(a: Client, b: Client) -> list[str | None]:
    """End the steps of two clients, and return the SQLSTATE of each error."""
    errors = []
    for client in (b, a) if a.is_waiting() else (a, b):
        try:
            client.end()
        except psycopg.Error as error:
            errors.append(error.sqlstate)
            client.rollback()
        else:
            client.commit()
    return errors


CHANGES = {
    "add": f"SELECT textsim.add('c', 'a', '{RED}')",
    "remove": "SELECT textsim.remove('c', 'a')",
    "replace": f"SELECT textsim.add('c', 'a', '{OTHER}')",
    "delete": "DELETE FROM t",
    "update": f"UPDATE t SET body = '{OTHER}'",
}
"""How "a" begins to match "b", or no longer matches it."""


@pytest.mark.sampled
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "rollback"])
@pytest.mark.parametrize("how", ["add", "twins_of", "add_many"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_twin_waits_for_a_change_of_its_match(
    scene: Scene, change: str, how: str, commit: bool
) -> None:
    scene.connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    scene.connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
    if change in ("delete", "update"):  # the row of an attached table is changed by the table only
        scene.connection.execute("INSERT INTO t VALUES ('a', %s)", [RED])
    elif change != "add":
        scene.corpus.add("a", RED)
    a, b = scene.client("a"), scene.client("b")
    a.does(a.sql(CHANGES[change]))
    b.waits(
        {
            "add": b.sql(ADD, "b", BLUE),
            "twins_of": b.sql(TWINS_OF, ["b", "c"], [BLUE, BLUE]),
            "add_many": lambda: b.db.corpus("c").add_many([("b", BLUE)]).twins,
        }[how]
    )
    ends(a, commit)
    is_twin = commit == (change == "add")
    if how == "twins_of":
        twins = [("b", "a", 9 / 11), ("c", "a", 9 / 11)]
        assert b.end() == (twins if is_twin else [("c", "b", 1.0)])
        return
    if how == "add":
        end_add(b, is_twin)
    else:
        assert b.end() == ([("b", "a", 9 / 11)] if is_twin else [])
    forms = scene.forms()
    assert forms == {"a": RED} if is_twin else forms["b"] == BLUE


@pytest.mark.parametrize("call", ["add_unique('c', 'b', %s)", "twins_of('c', '{b}', ARRAY[%s])"])
def test_the_document_that_stands_cannot_change_before_the_end(scene: Scene, call: str) -> None:
    a, b = scene.client("a"), scene.client("b")
    a.does(a.sql(ADD, "a", RED))
    b.waits(b.sql(f"SELECT similarity FROM textsim.{call}", BLUE))
    a.commit()
    assert b.end() == [(9 / 11,)]
    a.waits(a.sql(REMOVE, "a"))
    b.commit()
    assert a.end() == [(True,)]


def test_of_two_copies_that_are_forced_at_once_one_gets_in(scene: Scene) -> None:
    scene.corpus.add("a", RED)
    a, b = scene.client("a"), scene.client("b")
    a.does(a.sql("SELECT textsim.add('c', 'b', %s, force => true)", BLUE))
    b.waits(lambda: b.db.corpus("c").add_unique("c", BLUE, force=True))
    a.commit()
    assert [match.key for match in b.end().matches] == ["b"]


def test_writers_of_other_texts_corpora_and_scopes_do_not_wait(scene: Scene) -> None:
    settings: Any = {"shingle": "word:2", "threshold": 0.7, "recall": 1, "is_unique": True}
    scene.db.create_corpus("d", **settings, scoped=True)
    scene.corpus.add("x", OTHER)
    a, b = scene.client("a"), scene.client("b")
    a.does(a.sql(ADD, "a", RED))
    a.does(a.sql(ADD, "empty", "!"))
    b.does(b.sql(ADD, "empty too", "?"))
    for added in (True, False):  # the key of a text does not lock it
        assert b.does(b.sql(ADD, "x", f"{OTHER} too")) == [(added,)]
    add = "SELECT textsim.add('d', %s, %s, %s)"
    a.does(a.sql("SELECT textsim.lock_corpus('d', 'anna')"))
    a.does(a.sql(add, "a", RED, "anna"))
    b.does(b.sql(add, "b", RED, "ben"))
    b.commit()
    b.waits(b.sql(add, "c", OTHER, "anna"))
    a.commit()
    b.end()
    b.commit()
    a.does(a.sql("SELECT textsim.lock_corpus('c')"))
    b.does(b.sql(add, "d", OTHER, "ben"))
    with pytest.raises(pg.InvalidParameterValue, match="not scoped"):
        a.does(a.sql("SELECT textsim.lock_corpus('c', 'anna')"))


def test_the_look_up_sees_what_was_committed_since_the_statement_began(scene: Scene) -> None:
    """The snapshot of the outer statement is older than the lock; the look-up has its own."""
    gate, a, b = scene.client("gate"), scene.client("a"), scene.client("b")
    gate.does(gate.sql("SELECT pg_advisory_xact_lock(1)"))
    b.waits(
        b.sql(
            "WITH late AS MATERIALIZED (SELECT pg_advisory_xact_lock(1)) "
            "SELECT textsim.add('c', 'b', %s) FROM late",
            BLUE,
        )
    )
    a.does(a.sql(ADD, "a", RED))
    a.commit()
    gate.commit()
    with pytest.raises(pg.UniqueViolation, match='document "b" matches document "a"'):
        b.end()


@pytest.mark.parametrize("level", [Isolation.REPEATABLE_READ, Isolation.SERIALIZABLE])
def test_other_isolation_levels_are_refused(scene: Scene, level: Isolation) -> None:
    scene.connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    scene.connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
    scene.corpus.add("old", OTHER)
    a = scene.client("a", level)
    for step in (
        a.sql(ADD, "a", RED),
        a.sql("SELECT * FROM textsim.add_unique('c', 'a', %s)", RED),
        a.sql("INSERT INTO t VALUES ('a', %s)", RED),
        a.sql("SELECT textsim.lock_corpus('c')"),
        a.sql(TWINS_OF, ["a"], [RED]),
    ):
        with pytest.raises(pg.FeatureNotSupported, match="isolation level") as raised:
            a.does(step)
        assert "BEGIN ISOLATION LEVEL READ COMMITTED" in str(raised.value)
        a.rollback()
    assert a.does(a.sql(REMOVE, "old")) == [(True,)]
    a.commit()
    assert scene.forms() == {}


def test_a_change_of_a_match_does_not_deadlock_with_its_twin(scene: Scene) -> None:
    """A writer locks buckets before it locks the document that it replaces."""
    scene.corpus.add("a", RED)
    gate, a, b = scene.client("gate"), scene.client("a"), scene.client("b")
    gate.does(gate.sql("SELECT FROM textsim.document_1 WHERE key = 'a' FOR UPDATE"))
    b.waits(b.sql(ADD, "b", BLUE))
    a.waits(a.sql(ADD, "a", f"{COMMON} green"))
    gate.commit()
    with pytest.raises(pg.UniqueViolation, match='document "b" matches document "a"'):
        b.end()
    b.rollback()
    assert a.end() == [(True,)]


def test_two_transactions_that_cross(scene: Scene) -> None:
    """Each has what the other one wants: the server ends one, as with a unique index."""
    a, b = (scene.client(name, options="-c deadlock_timeout=10ms") for name in "ab")
    a.does(a.sql(ADD, "a1", RED))
    b.does(b.sql(ADD, "b1", OTHER))
    a.waits(a.sql(ADD, "a2", f"{OTHER} too"))
    b.begin(b.sql(ADD, "b2", BLUE))
    assert end_both(a, b) == ["40P01"]
    assert len(scene.forms()) == 2


# The number of locks


def test_a_transaction_that_locks_many_buckets_locks_the_corpus(scene: Scene) -> None:
    a, b = scene.client("a"), scene.client("b", options="-c textsim.max_bucket_locks=0")
    for number in range(400):
        a.does(a.sql(ADD, f"{number}", " ".join(f"w{number}x{i}" for i in range(12))))
    assert value(scene.connection, BUCKET_LOCKS) <= 256
    b.waits(b.sql(ADD, "b", OTHER))
    a.commit()
    assert b.end() == [(True,)]
    b.commit()
    assert len(scene.forms()) == 401
    assert value(scene.connection, BUCKET_LOCKS) == 0


def test_lock_corpus_first_avoids_the_deadlock(scene: Scene) -> None:
    options = "-c deadlock_timeout=10ms -c textsim.max_bucket_locks=10"
    a, b = scene.client("a", options=options), scene.client("b", options=options)
    a.does(a.sql("SELECT textsim.lock_corpus('c')"))
    b.waits(b.sql("SELECT textsim.lock_corpus('c')"))
    a.does(a.sql(ADD, "a1", RED))
    a.does(a.sql(ADD, "a2", " ".join(f"w{i}" for i in range(200))))
    a.commit()
    b.end()
    b.commit()
    # A transaction that begins with a long text locks the corpus at once.
    a.does(a.sql(ADD, "a3", " ".join(f"u{i}" for i in range(300))))
    b.waits(b.sql(ADD, "b", " ".join(f"v{i}" for i in range(300))))
    a.commit()
    assert b.end() == [(True,)]


# Locks that end


def test_a_rollback_to_a_savepoint_releases_its_locks(scene: Scene) -> None:
    a, b = scene.client("a"), scene.client("b")
    a.does(a.sql(ADD, "a1", OTHER))
    count = "SELECT current_setting('textsim.bucket_locks')"
    before, locks = a.does(a.sql(count)), value(scene.connection, BUCKET_LOCKS)
    a.does(a.sql("SAVEPOINT s"))
    a.does(a.sql(ADD, "a2", RED))
    assert a.does(a.sql(count)) != before
    a.does(a.sql("ROLLBACK TO s"))
    assert (a.does(a.sql(count)), value(scene.connection, BUCKET_LOCKS)) == (before, locks)
    b.does(b.sql(ADD, "b", BLUE))
    b.commit()
    with pytest.raises(pg.UniqueViolation, match='document "a2" matches document "b"'):
        a.does(a.sql(ADD, "a2", RED))
    a.does(a.sql("ROLLBACK TO s"))
    a.does(a.sql("SAVEPOINT s"))
    a.does(a.sql(ADD, "a3", "a text of its own, after two that were not"))
    a.does(a.sql("RELEASE s"))
    b.waits(b.sql(ADD, "b2", "a text of its own, after two that were not!"))
    a.commit()
    with pytest.raises(pg.UniqueViolation, match='document "b2" matches document "a3"'):
        b.end()


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "rollback"])
def test_a_prepared_transaction_keeps_its_locks(scene: Scene, commit: bool) -> None:
    if value(scene.connection, "SHOW max_prepared_transactions") == "0":
        pytest.skip("needs a server with max_prepared_transactions")
    a, b = scene.client("a"), scene.client("b")
    name = scene.connection.info.dbname
    a.does(a.sql(ADD, "a", RED))
    a.does(a.sql(f"PREPARE TRANSACTION '{name}'"))
    a.connection.close()
    b.waits(b.sql(ADD, "b", BLUE))
    ending = "COMMIT" if commit else "ROLLBACK"
    scene.connection.execute(f"{ending} PREPARED '{name}'".encode())
    end_add(b, is_twin=commit)


# Lists


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "rollback"])
def test_a_writer_waits_for_a_list(scene: Scene, commit: bool) -> None:
    a, b = scene.client("a"), scene.client("b")
    a.does(a.sql(TWINS_OF, ["a", "o"], [RED, OTHER]))
    b.waits(b.sql(ADD, "b", BLUE))
    a.does(a.sql(ADD, "a", RED))
    ends(a, commit)
    end_add(b, is_twin=commit)
    assert list(scene.forms()) == ["a" if commit else "b"]


FORGET = "SELECT documents, judgements FROM textsim.forget('c', '{b}')"


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "rollback"])
@pytest.mark.parametrize("how", ["add", "twins_of"])
def test_a_judgement_stays_until_its_writer_has_ended(scene: Scene, how: str, commit: bool) -> None:
    """The writer has seen that the pair was judged different, so it is no pair of twins."""
    scene.corpus.add("a", RED)
    scene.corpus.judge("a", "b", "different")
    a, b = scene.client("a"), scene.client("b")
    if how == "twins_of":
        assert a.does(a.sql(TWINS_OF, ["b"], [BLUE])) == []
    else:
        a.does(a.sql(ADD, "b", BLUE))
    b.waits(b.sql(FORGET))
    if how == "twins_of":
        a.does(a.sql(ADD, "b", BLUE))
    ends(a, commit)
    assert b.end() == [(int(commit), 1)]
    b.commit()
    assert scene.forms() == {"a": RED}
    with pytest.raises(pg.UniqueViolation, match='document "b" matches document "a"'):
        scene.connection.execute(ADD, ["b", BLUE])


def test_a_writer_waits_for_forgetting(scene: Scene) -> None:
    scene.corpus.add("a", RED)
    scene.corpus.judge("a", "b", "different")
    a, b = scene.client("a"), scene.client("b")
    a.does(a.sql(FORGET))
    b.waits(b.sql(ADD, "b", BLUE))
    a.commit()
    end_add(b, is_twin=True)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "rollback"])
@pytest.mark.parametrize("how", ["add", "twins_of"])
def test_a_rejection_waits_for_a_writer_of_its_key(scene: Scene, how: str, commit: bool) -> None:
    """The writer has found that its text has no twin but the document that it replaces."""
    scene.corpus.add("a", RED)
    a, b = scene.client("a"), scene.client("b")
    if how == "twins_of":
        assert a.does(a.sql(TWINS_OF, ["a"], [BLUE])) == []
    else:
        a.does(a.sql(ADD, "a", BLUE))
    b.waits(b.sql("SELECT textsim.reject('c', 'a', 'spam')"))
    if how == "twins_of":
        a.does(a.sql(ADD, "a", BLUE))
    ends(a, commit)
    assert b.end() == [("rejected: a",)]
    b.commit()
    assert scene.forms() == {"rejected: a": BLUE if commit else RED}


def test_writers_and_a_rebuild_wait_for_a_rejection(scene: Scene) -> None:
    scene.corpus.add("a", RED)
    a, b, c = scene.client("a"), scene.client("b"), scene.client("c")
    for number, step in enumerate(
        (
            lambda: b.db.corpus("c").add_unique("b", BLUE).outcome,
            lambda: b.sql("SELECT outcome FROM textsim.add_unique('c', 'b', %s)", BLUE)()[0][0],
        )
    ):
        a.does(a.sql("SELECT textsim.reject('c', 'a', 'spam')"))
        b.waits(step)
        a.commit()
        assert b.end() == "rejected", number
        b.rollback()
        scene.corpus.remove(["rejected: a"])
        scene.corpus.add("a", RED)
    a.does(a.sql("SELECT textsim.reject('c', 'a', 'spam')"))
    c.waits(lambda: c.db.corpus("c").rebuild(is_unique=False))
    a.commit()
    c.end()
    corpus = scene.db.corpus("c")
    assert (corpus.rejected(), corpus.config.is_unique, corpus.check()) == ([], False, [])


# Attached tables


def test_attaching_waits_for_a_writer_of_the_corpus(scene: Scene) -> None:
    scene.connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    scene.connection.execute("INSERT INTO t VALUES ('t', %s)", [BLUE])
    a, b = scene.client("a"), scene.client("b")
    a.does(a.sql(ADD, "a", RED))
    b.waits(b.sql("SELECT textsim.attach('c', 't', 'id', 'body')"))
    a.commit()
    with pytest.raises(pg.UniqueViolation, match=r"1 row of table public\.t matches"):
        b.end()
    assert scene.forms() == {"a": RED}


def test_a_writer_waits_for_attaching(scene: Scene) -> None:
    scene.connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    scene.connection.execute("INSERT INTO t VALUES ('t', %s)", [BLUE])
    a, b, c = scene.client("a"), scene.client("b"), scene.client("c")
    a.does(a.sql("SELECT textsim.attach('c', 't', 'id', 'body')"))
    b.waits(b.sql(ADD, "b", RED))
    c.waits(c.sql("INSERT INTO t VALUES ('c', %s)", RED))
    a.commit()
    for client in (b, c):
        with pytest.raises(pg.UniqueViolation, match='matches document "t"'):
            client.end()
        client.rollback()


def test_a_writer_that_waited_for_a_rebuild_is_refused(scene: Scene) -> None:
    """The lock is that of the first id, so the writer waits, and then its corpus is gone."""
    scene.corpus.add("a", RED)
    a, b = scene.client("a"), scene.client("b")
    a.does(a.sql("SELECT textsim._lock_unique(1, true)"))
    b.waits(b.sql(ADD, "b", BLUE))
    a.does(a.sql("SELECT textsim.create_corpus('new', 'word:2', 0.7, is_unique => true)"))
    a.does(a.sql("SELECT textsim._replace_corpus(1, 2)"))
    a.does(a.sql("DELETE FROM textsim.corpus WHERE id = 1"))
    a.does(a.sql("SELECT textsim._drop_relations(1)"))
    a.commit()
    with pytest.raises(pg.ObjectNotInPrerequisiteState, match="rebuilt while this transaction"):
        b.end()
    b.rollback()
    a.does(a.sql(ADD, "a", RED))
    b.waits(b.sql(ADD, "b", BLUE))
    a.commit()
    with pytest.raises(pg.UniqueViolation, match='document "b" matches document "a"'):
        b.end()
