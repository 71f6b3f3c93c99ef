"""Writers, workers, attaching and rebuilds at once: which session waits, and the result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from tests.support.clients import Isolation
from tests.support.connections import Connection
from tests.support.interleaving import ADD, LEVELS, REMOVE, RR, Scene, add_many_step, report_counts
from tests.support.sources import expected_forms, make_table
from tests.support.workers import wait_for_postponed
from textsim_db.db.statements import QUEUE_OF_WRITERS
from textsim_db.errors import CorpusChanged
from textsim_db.settings.named_values import ModeName

# Two writers of one key.


def test_two_loads_of_the_same_keys_follow_each_other(scene: Scene) -> None:
    gate, a, b = scene.client("gate"), scene.client("a"), scene.client("b")
    gate.does(gate.sql("LOCK TABLE textsim.band_1 IN SHARE MODE"))
    a.waits(add_many_step(a, ("k", "one"), ("l", "one")))
    b.waits(add_many_step(b, ("l", "two"), ("k", "two")))
    gate.commit()
    assert report_counts(a.end()) == (2, 0, 0)
    assert report_counts(b.end()) == (0, 2, 0)
    assert scene.forms() == {"k": "two", "l": "two"}
    scene.settle()


# New words.


@LEVELS
def test_adds_by_sql_with_the_same_new_words_do_not_wait(scene: Scene, level: Isolation) -> None:
    a, b, c = scene.client("a", level), scene.client("b", level), scene.client("c")
    a.does(a.sql(ADD, "a", "words never seen before"))
    b.does(b.sql(ADD, "b", "words never seen before"))
    assert report_counts(c.does(add_many_step(c, ("c", "words never seen before")))) == (1, 0, 0)
    b.commit()
    a.commit()
    scene.settle()
    assert {match.key for match in scene.corpus.query("words never seen before", 1.0)} == {
        "a",
        "b",
        "c",
    }
    assert scene.connection.execute(
        "SELECT count(*), count(DISTINCT word) FROM textsim.word_1"
    ).fetchall() == [(4, 4)]


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_loads_wait_for_a_word_that_another_process_adds(scene: Scene, ends: str) -> None:
    """The other process may commit the word, or die before it does."""
    a, b, c = scene.client("a"), scene.client("b"), scene.client("c")
    a.does(
        a.sql("INSERT INTO textsim.word_1 (hash, word) VALUES (hashtextextended('new', 0), 'new')")
    )
    b.waits(add_many_step(b, ("b", "new words")))
    c.waits(add_many_step(c, ("c", "new words")))
    getattr(a, ends)()
    assert report_counts(b.end()) == report_counts(c.end()) == (1, 0, 0)
    assert scene.connection.execute("SELECT word FROM textsim.word_1 ORDER BY word").fetchall() == [
        ("new",),
        ("words",),
    ]
    assert {match.key for match in scene.corpus.query("new words", 1.0)} == {"b", "c"}
    scene.settle()


# Dropping the corpus.


@LEVELS
def test_drop_waits_for_add(scene: Scene, level: Isolation) -> None:
    other = scene.db.create_corpus("other")
    a, b, c = scene.client("a", level), scene.client("b"), scene.client("c")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(lambda: b.db.drop_corpus("c"))
    # Later writers of the corpus wait for the drop; writers of other corpora do not wait.
    c.waits(add_many_step(c, ("l", "from Python")))
    scene.connection.execute("SELECT textsim.add('other', 'k', 'in another corpus')")
    a.commit()
    # The drop waits for a writer that has written documents already.
    b.end()
    with suppress(ts.CorpusNotFound):
        assert report_counts(c.end()) == (1, 0, 0)
    assert list(scene.db.corpora()) == ["other"]
    assert (
        scene.connection.execute("SELECT FROM textsim.pending WHERE corpus_id = 1").fetchall() == []
    )
    scene.settle(other)


@LEVELS
def test_add_waits_for_drop(scene: Scene, level: Isolation) -> None:
    a, b = scene.client("a"), scene.client("b", level)
    a.does(a.sql("SELECT textsim.drop_corpus('c')"))
    b.waits(b.sql(ADD, "k", "from SQL"))
    a.rollback()
    b.end()
    b.commit()
    scene.settle()
    a.does(a.sql("SELECT textsim.drop_corpus('c')"))
    b.waits(b.sql(ADD, "k", "again"))
    a.commit()
    with pytest.raises(psycopg.errors.UndefinedTable):
        b.end()
    b.rollback()
    with pytest.raises(psycopg.errors.UndefinedObject, match='corpus "c" does not exist'):
        b.does(b.sql(ADD, "k", "again"))
    assert scene.connection.execute("SELECT FROM textsim.pending").fetchall() == []


def make_texts_table(connection: Connection, rows: int = 0) -> None:
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    connection.execute(
        "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, %s::int) i", [rows]
    )


@pytest.mark.parametrize("mode", ["queue", "inline"])
@LEVELS
def test_attaching_waits_for_an_insert(scene: Scene, level: Isolation, mode: ModeName) -> None:
    make_texts_table(scene.connection, 2)
    a, b = scene.client("a", level), scene.client("b")
    a.does(a.sql("INSERT INTO t VALUES ('k', 'before the triggers')"))
    b.waits(lambda: b.db.corpus("c").attach("t", "id", "body", mode))
    a.commit()
    b.end()
    assert scene.forms() == expected_forms(scene.connection, "t")
    scene.settle()


@pytest.mark.parametrize("mode", ["queue", "inline"])
@LEVELS
def test_an_insert_waits_for_attaching(scene: Scene, level: Isolation, mode: str) -> None:
    make_texts_table(scene.connection, 2)
    a, b = scene.client("a"), scene.client("b", level)
    a.does(a.sql("SELECT textsim.attach('c', 't', 'id', 'body', %s)", mode))
    b.waits(b.sql("INSERT INTO t VALUES ('k', 'while it is attached')"))
    a.commit()
    try:
        b.end()
    except psycopg.errors.SerializationFailure:
        # A snapshot that is older than the trigger must be refused.
        assert (level, mode) == (RR, "queue")
        b.rollback()
        b.does(b.sql("INSERT INTO t VALUES ('k', 'while it is attached')"))
    b.commit()
    scene.settle()
    assert scene.forms() == expected_forms(scene.connection, "t")
    assert "k" in scene.corpus


@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_two_workers_on_one_key_index_the_last_text(scene: Scene, mode: ModeName) -> None:
    """The row changes for the last time after both workers have read it and computed its signature."""
    make_texts_table(scene.connection)
    scene.corpus.attach("t", "id", "body", mode)
    # In mode inline only a few changes, such as TRUNCATE, need a worker that reads the table.
    log_change = (
        "INSERT INTO textsim.pending (kind, corpus_id, source_id, keys) "
        "SELECT 'change', corpus_id, id, '{k}' FROM textsim.source"
    )
    gate, a, b = scene.client("gate"), scene.client("a"), scene.client("b")
    gate.does(gate.sql(QUEUE_OF_WRITERS, 1))
    scene.connection.execute("INSERT INTO t VALUES ('k', 'first')")
    scene.connection.execute(log_change)
    a.waits(lambda: a.db.worker().run(until_idle=True))
    scene.connection.execute("UPDATE t SET body = 'second' WHERE id = 'k'")
    scene.connection.execute(log_change)
    b.waits(lambda: b.db.worker().run(until_idle=True))
    scene.connection.execute("UPDATE t SET body = 'third' WHERE id = 'k'")
    gate.commit()
    a.end()
    b.end()
    assert scene.corpus.status().failed == 0
    wait_for_postponed(scene.connection)
    scene.settle()
    assert scene.forms() == {"k": "third"}


@LEVELS
def test_a_worker_under_repeatable_read_brings_back_no_deleted_row(
    scene: Scene, level: Isolation
) -> None:
    """A worker must read rows that were committed while it waited, whatever the default level is."""
    make_texts_table(scene.connection)
    scene.corpus.attach("t", "id", "body")
    gate = scene.client("gate")
    worker = scene.client(
        "worker",
        options=f"-c default_transaction_isolation={level.name.lower().replace('_', chr(92) + ' ')}",
    )
    gate.does(gate.sql(QUEUE_OF_WRITERS, 1))
    scene.connection.execute("INSERT INTO t VALUES ('k', 'soon gone')")
    worker.waits(lambda: worker.db.worker().run(until_idle=True))
    # Another worker that claims the deletion finds no document and removes the entry.
    scene.connection.execute("DELETE FROM t")
    gate.does(gate.sql("DELETE FROM textsim.pending WHERE lease_until IS NULL"))
    gate.commit()
    worker.end()
    assert scene.forms() == {}
    scene.settle()


def test_a_worker_skips_a_document_that_a_user_has_locked(scene: Scene) -> None:
    make_texts_table(scene.connection)
    scene.corpus.attach("t", "id", "body", "inline")
    scene.connection.execute("INSERT INTO t VALUES ('k', 'first'), ('l', 'first')")
    a, b, worker = scene.client("a"), scene.client("b"), scene.client("worker")
    a.does(a.sql("UPDATE t SET body = 'second' WHERE id = 'k'"))
    worker.does(lambda: worker.db.worker().run(until_idle=True))
    b.waits(add_many_step(b, ("k", "by hand")))
    a.commit()
    b.end()
    # The document keeps the text that was written last, until it is compared with the table.
    assert scene.forms() in ({"k": "by hand", "l": "first"}, {"k": "second", "l": "first"})
    scene.corpus.reconcile()
    wait_for_postponed(scene.connection)
    scene.settle()
    assert scene.forms() == expected_forms(scene.connection, "t")


@LEVELS
def test_truncate_waits_for_a_replace_and_removes_every_document(
    scene: Scene, level: Isolation
) -> None:
    """TRUNCATE removes all documents of a table while another session writes one of them."""
    make_texts_table(scene.connection, 3)
    scene.corpus.attach("t", "id", "body", "inline")
    scene.settle()
    a, b = scene.client("a"), scene.client("b", level)
    a.does(a.sql(ADD, "2", "by hand"))
    b.waits(b.sql("TRUNCATE t"))
    a.commit()
    try:
        b.end()
    except psycopg.errors.SerializationFailure:
        assert level == RR
        b.rollback()
        b.does(b.sql("TRUNCATE t"))
    b.commit()
    assert scene.corpus.check() == []
    scene.settle()
    assert scene.forms() == {}


@LEVELS
def test_a_rebuild_waits_for_an_add(scene: Scene, level: Isolation) -> None:
    scene.corpus.add("z", "not touched")
    a, b, c = scene.client("a", level), scene.client("b"), scene.client("c")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(lambda: b.db.corpus("c").rebuild(shingle="word:1"))
    # The rebuild gives its lock up after a while, so that it delays no other session.
    c.begin(c.sql(ADD, "l", "in the meantime"))
    c.end()
    c.commit()
    assert [match.key for match in scene.corpus.query("not touched")] == ["z"]
    a.commit()
    assert b.end() is True
    rebuilt = scene.db.corpus("c")
    assert str(rebuilt.config.shingle) == "word:1"
    assert scene.forms() == {"k": "from sql", "l": "in the meantime", "z": "not touched"}
    scene.settle(rebuilt)


def test_lists_wait_for_the_end_of_a_rebuild_and_read_the_new_corpus(scene: Scene) -> None:
    """Each list has read the old corpus's number; when it gets the locks, those tables are dropped."""
    scene.corpus.add_many([("x", "one two three four"), ("y", "one two three four")])
    new = scene.db.create_corpus("new", seed=2)
    new.add_many([("x", "one two three four"), ("y", "one two three four")])
    gate, a = scene.client("gate"), scene.client("a")
    lists = [scene.client(f"list {number}") for number in range(4)]
    corpora = [client.db.corpus("c") for client in lists]
    gate.does(gate.sql("SELECT textsim._replace_corpus(1, 2)"))
    gate.does(gate.sql("DELETE FROM textsim.corpus WHERE id = 1"))
    gate.does(gate.sql("SELECT textsim._drop_relations(1)"))
    a.waits(a.sql("SELECT a, b FROM textsim.pairs('c')"))
    lists[0].waits(lambda: [pair[:2] for pair in corpora[0].pairs()])
    lists[1].waits(lambda: [cluster.keys for cluster in corpora[1].clusters()])
    lists[2].waits(lambda: [(d.kept, d.key) for d in corpora[2].duplicates()])
    lists[3].waits(corpora[3].check)
    gate.commit()
    for client in (a, *lists[:3]):
        assert client.end() == [("x", "y")]
    assert lists[3].end() == []


@LEVELS
def test_writers_wait_for_a_rebuild_and_are_refused(scene: Scene, level: Isolation) -> None:
    """The gate locks the row of the corpus, so the rebuild waits just before it takes the name."""
    scene.corpus.add("z", "not touched")
    gate, rebuilder, a, b, c = (
        scene.client("gate"),
        scene.client("rebuilder"),
        scene.client("a", level),
        scene.client("b"),
        scene.client("c"),
    )
    old = b.db.corpus("c")
    gate.does(gate.sql("SELECT FROM textsim.corpus WHERE name = 'c' FOR KEY SHARE"))
    rebuilder.waits(lambda: rebuilder.db.corpus("c").rebuild(shingle="word:1"))
    a.waits(a.sql(ADD, "a", "from SQL"))
    b.waits(lambda: old.add("b", "from Python"))
    c.waits(c.sql(REMOVE, "z"))
    gate.commit()
    rebuilder.end()
    for client in (a, c):
        with pytest.raises(psycopg.Error, match=r"rebuilt while this transaction wrote to it"):
            client.end()
        client.rollback()
    with pytest.raises(CorpusChanged):
        b.end()
    rebuilt = scene.db.corpus("c")
    assert scene.forms() == {"z": "not touched"}
    a.does(a.sql(ADD, "a", "from SQL"))
    a.commit()
    b.does(lambda: old.add("b", "from Python"))
    c.does(c.sql(REMOVE, "z"))
    c.commit()
    assert scene.forms() == {"a": "from sql", "b": "from python"}
    scene.settle(rebuilt)


def test_a_look_for_twins_that_waits_for_a_rebuild_is_refused(scene: Scene) -> None:
    """Its locks last, but it would look at the corpus that was replaced."""
    scene.db.create_corpus("u", is_unique=True).add("z", "some words that are stored already")
    gate, rebuilder, a = scene.client("gate"), scene.client("rebuilder"), scene.client("a")
    gate.does(gate.sql("SELECT FROM textsim.corpus WHERE name = 'u' FOR KEY SHARE"))
    rebuilder.waits(lambda: rebuilder.db.corpus("u").rebuild(seed=7))
    a.waits(a.sql("SELECT * FROM textsim.twins_of('u', ARRAY['a'], ARRAY['other words'])"))
    gate.commit()
    rebuilder.end()
    with pytest.raises(psycopg.Error, match="rebuilt while this transaction"):
        a.end()
    a.rollback()


@pytest.mark.more
@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_a_row_that_changes_during_a_rebuild_is_indexed(scene: Scene, mode: ModeName) -> None:
    make_table(scene.connection, 3)
    scene.corpus.attach("t", "id", "body", mode)
    a, rebuilder, worker = scene.client("a"), scene.client("rebuilder"), scene.client("worker")
    a.does(a.sql("UPDATE t SET body = 'changed' WHERE id = '2'"))
    step: Callable[[], Any] = lambda: rebuilder.db.corpus("c").rebuild(shingle="word:1")  # noqa: E731
    if mode == "inline":
        rebuilder.waits(step)
    else:
        rebuilder.does(step)
    worker.does(lambda: worker.db.worker().run(until_idle=True))
    a.commit()
    if mode == "inline":
        rebuilder.end()
    rebuilt = scene.db.corpus("c")
    assert str(rebuilt.config.shingle) == "word:1"
    scene.settle(rebuilt)
    assert scene.forms() == expected_forms(scene.connection, "t")
