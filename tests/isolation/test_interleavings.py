"""Named interleavings of what users do at the same time: who waits for whom, and what is there after."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from tests.support.clients import Client, Clients, Isolation
from tests.support.connections import Connection
from tests.support.sources import expected, settle, stored
from textsim_db.write.bulk_load import QUEUE

pytestmark = pytest.mark.one_server

RC, RR = Isolation.READ_COMMITTED, Isolation.REPEATABLE_READ
LEVELS = pytest.mark.parametrize(
    "level",
    [
        pytest.param(RC, id="read committed"),
        pytest.param(RR, id="repeatable read", marks=pytest.mark.long),
    ],
)
ADD = "SELECT textsim.add('c', %s, %s)"
REMOVE = "SELECT textsim.remove('c', %s)"


@pytest.fixture
def corpus(db: ts.Database) -> ts.Corpus:
    return db.create_corpus("c", "word:1", num_hashes=16)


def adding(client: Client, *documents: tuple[str, str]) -> Callable[[], ts.AddReport]:
    """Return a step: a whole call of add_many, from the transaction to its repetitions."""
    return lambda: client.db.corpus("c").add_many(documents)


def counts(report: ts.AddReport) -> tuple[int, int, int]:
    return report.added, report.replaced, report.unchanged


# Two writers of one key.


@LEVELS
def test_add_many_waits_for_add(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    a, b = make_client("a", level), make_client("b")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(adding(b, ("k", "from Python")))
    a.commit()
    assert counts(b.end()) == (0, 1, 0)
    assert stored(connection) == {"k": "from python"}
    settle(db, corpus)


@LEVELS
def test_add_many_waits_for_add_that_is_given_up(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    a, b = make_client("a", level), make_client("b")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(adding(b, ("k", "from Python")))
    a.rollback()
    assert counts(b.end()) == (1, 0, 0)
    assert stored(connection) == {"k": "from python"}
    settle(db, corpus)


@LEVELS
def test_add_waits_for_add_many(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    """The gate holds the band rows: add_many stands between its documents and those."""
    gate, a, b = make_client("gate"), make_client("a"), make_client("b", level)
    gate.does(gate.sql("LOCK TABLE textsim.band_1 IN SHARE MODE"))
    a.waits(adding(a, ("k", "from Python")))
    b.waits(b.sql(ADD, "k", "from SQL"))
    gate.commit()
    assert counts(a.end()) == (1, 0, 0)
    if level == RR:
        with pytest.raises(psycopg.errors.SerializationFailure):
            b.end()
        b.rollback()
        assert stored(connection) == {"k": "from python"}
        b.does(b.sql(ADD, "k", "from SQL"))
    else:
        b.end()
    b.commit()
    assert stored(connection) == {"k": "from sql"}
    settle(db, corpus)


def test_two_loads_of_the_same_keys(
    db: ts.Database, corpus: ts.Corpus, make_client: Clients, connection: Connection
) -> None:
    gate, a, b = make_client("gate"), make_client("a"), make_client("b")
    gate.does(gate.sql("LOCK TABLE textsim.band_1 IN SHARE MODE"))
    a.waits(adding(a, ("k", "one"), ("l", "one")))
    b.waits(adding(b, ("l", "two"), ("k", "two")))
    gate.commit()
    assert counts(a.end()) == (2, 0, 0)
    assert counts(b.end()) == (0, 2, 0)
    assert stored(connection) == {"k": "two", "l": "two"}
    settle(db, corpus)


# New words.


@LEVELS
def test_the_same_new_words_in_sql_wait_for_nobody(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    a, b, c = make_client("a", level), make_client("b", level), make_client("c")
    a.does(a.sql(ADD, "a", "words never seen before"))
    b.does(b.sql(ADD, "b", "words never seen before"))
    assert counts(c.does(adding(c, ("c", "words never seen before")))) == (1, 0, 0)
    b.commit()
    a.commit()
    settle(db, corpus)
    assert {match.key for match in corpus.query("words never seen before", 1.0)} == {"a", "b", "c"}
    assert connection.execute(
        "SELECT count(*), count(DISTINCT word) FROM textsim.word"
    ).fetchall() == [(4, 4)]


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_a_word_that_somebody_is_adding(
    db: ts.Database, corpus: ts.Corpus, make_client: Clients, connection: Connection, ends: str
) -> None:
    """As where another process stands in its statement on the dictionary, or dies there."""
    a, b, c = make_client("a"), make_client("b"), make_client("c")
    a.does(
        a.sql("INSERT INTO textsim.word (hash, word) VALUES (hashtextextended('new', 0), 'new')")
    )
    b.waits(adding(b, ("b", "new words")))
    c.waits(adding(c, ("c", "new words")))
    getattr(a, ends)()
    assert counts(b.end()) == counts(c.end()) == (1, 0, 0)
    assert connection.execute("SELECT word FROM textsim.word ORDER BY word").fetchall() == [
        ("new",),
        ("words",),
    ]
    assert {match.key for match in corpus.query("words new", 1.0)} == {"b", "c"}
    settle(db, corpus)


# Adding and removing.


@LEVELS
@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_remove_waits_for_replace(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
    ends: str,
) -> None:
    corpus.add("k", "as it was")
    a, b = make_client("a", level), make_client("b")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(lambda: b.db.corpus("c").remove(["k"]))
    getattr(a, ends)()
    assert b.end() == 1
    assert stored(connection) == {}
    settle(db, corpus)


@LEVELS
@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_replace_waits_for_remove(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
    ends: str,
) -> None:
    corpus.add("k", "as it was")
    a, b = make_client("a", level), make_client("b")
    a.does(a.sql(REMOVE, "k"))
    b.waits(adding(b, ("k", "from Python")))
    getattr(a, ends)()
    assert counts(b.end()) == ((1, 0, 0) if ends == "commit" else (0, 1, 0))
    assert stored(connection) == {"k": "from python"}
    settle(db, corpus)


@LEVELS
def test_replace_and_remove_behind_each_other(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    corpus.add("k", "as it was")
    a, b, c = make_client("a", level), make_client("b"), make_client("c")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(lambda: b.db.corpus("c").remove(["k"]))
    c.waits(adding(c, ("k", "from Python")))
    a.commit()
    assert b.end() == 1
    assert sum(counts(c.end())) == 1
    assert stored(connection) in ({"k": "from python"}, {})
    settle(db, corpus)


# The corpus goes.


@LEVELS
def test_drop_waits_for_add(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    other = db.create_corpus("other")
    a, b, c = make_client("a", level), make_client("b"), make_client("c")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(lambda: b.db.drop_corpus("c"))
    # Who comes after that waits for the drop, and others for nobody.
    c.waits(adding(c, ("l", "from Python")))
    connection.execute("SELECT textsim.add('other', 'k', 'in another corpus')")
    a.commit()
    # The drop gives way to who has written documents already.
    b.end()
    with suppress(ts.CorpusNotFound):
        assert counts(c.end()) == (1, 0, 0)
    assert db.corpora() == ["other"]
    assert connection.execute("SELECT FROM textsim.pending WHERE corpus_id = 1").fetchall() == []
    settle(db, other)


@LEVELS
def test_add_waits_for_drop(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    a, b = make_client("a"), make_client("b", level)
    a.does(a.sql("SELECT textsim.drop_corpus('c')"))
    b.waits(b.sql(ADD, "k", "from SQL"))
    a.rollback()
    b.end()
    b.commit()
    settle(db, corpus)
    a.does(a.sql("SELECT textsim.drop_corpus('c')"))
    b.waits(b.sql(ADD, "k", "again"))
    a.commit()
    with pytest.raises(psycopg.errors.UndefinedTable):
        b.end()
    b.rollback()
    with pytest.raises(psycopg.errors.UndefinedObject, match='corpus "c" does not exist'):
        b.does(b.sql(ADD, "k", "again"))
    assert connection.execute("SELECT FROM textsim.pending").fetchall() == []


# Tables that are attached.


def make_table(connection: Connection, rows: int = 0) -> None:
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    connection.execute(
        "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, %s::int) i", [rows]
    )


@pytest.mark.parametrize("mode", ["queue", "inline"])
@LEVELS
def test_attach_waits_for_insert(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
    mode: str,
) -> None:
    make_table(connection, 2)
    a, b = make_client("a", level), make_client("b")
    a.does(a.sql("INSERT INTO t VALUES ('k', 'before the triggers')"))
    b.waits(lambda: b.db.corpus("c").attach("t", "id", "body", mode))
    a.commit()
    b.end()
    assert stored(connection) == expected(connection, "t")
    settle(db, corpus)


@pytest.mark.parametrize("mode", ["queue", "inline"])
@LEVELS
def test_insert_waits_for_attach(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
    mode: str,
) -> None:
    make_table(connection, 2)
    a, b = make_client("a"), make_client("b", level)
    a.does(a.sql("SELECT textsim.attach('c', 't', 'id', 'body', %s)", mode))
    b.waits(b.sql("INSERT INTO t VALUES ('k', 'while it is attached')"))
    a.commit()
    try:
        b.end()
    except psycopg.errors.SerializationFailure:
        # A snapshot from before the table was attached does not have the trigger.
        assert (level, mode) == (RR, "queue")
        b.rollback()
        b.does(b.sql("INSERT INTO t VALUES ('k', 'while it is attached')"))
    b.commit()
    settle(db, corpus)
    assert stored(connection) == expected(connection, "t")
    assert "k" in corpus


@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_two_workers_on_one_key(
    db: ts.Database, corpus: ts.Corpus, make_client: Clients, connection: Connection, mode: str
) -> None:
    """Both have read the table and computed when the row changes a last time."""
    make_table(connection)
    corpus.attach("t", "id", "body", mode)
    gate, a, b = make_client("gate"), make_client("a"), make_client("b")
    gate.does(gate.sql(QUEUE, 1))
    connection.execute("INSERT INTO t VALUES ('k', 'first')")
    a.waits(lambda: a.db.worker().run(until_idle=True))
    connection.execute("UPDATE t SET body = 'second' WHERE id = 'k'")
    b.waits(lambda: b.db.worker().run(until_idle=True))
    connection.execute("UPDATE t SET body = 'third' WHERE id = 'k'")
    gate.commit()
    a.end()
    b.end()
    assert corpus.status().failed == 0
    time.sleep(1.1)  # what one found held by the other comes again after a second
    settle(db, corpus)
    assert stored(connection) == {"k": "third"}


@LEVELS
def test_a_worker_whose_default_is_an_old_snapshot(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    """It must see what was committed while it waited, or it brings back what is gone."""
    make_table(connection)
    corpus.attach("t", "id", "body")
    gate = make_client("gate")
    worker = make_client(
        "worker",
        options=f"-c default_transaction_isolation={level.name.lower().replace('_', chr(92) + ' ')}",
    )
    gate.does(gate.sql(QUEUE, 1))
    connection.execute("INSERT INTO t VALUES ('k', 'soon gone')")
    worker.waits(lambda: worker.db.worker().run(until_idle=True))
    # What another worker does that takes the deletion: there is no document, and it is done.
    connection.execute("DELETE FROM t")
    gate.does(gate.sql("DELETE FROM textsim.pending WHERE lease_until IS NULL"))
    gate.commit()
    worker.end()
    assert stored(connection) == {}
    settle(db, corpus)


def test_a_worker_passes_over_what_a_user_holds(
    db: ts.Database, corpus: ts.Corpus, make_client: Clients, connection: Connection
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body", "inline")
    connection.execute("INSERT INTO t VALUES ('k', 'first'), ('l', 'first')")
    a, b, worker = make_client("a"), make_client("b"), make_client("worker")
    a.does(a.sql("UPDATE t SET body = 'second' WHERE id = 'k'"))
    worker.does(lambda: worker.db.worker().run(until_idle=True))
    b.waits(adding(b, ("k", "by hand")))
    a.commit()
    b.end()
    # The document is what it was written last, until somebody compares it with the table.
    assert stored(connection) in ({"k": "by hand", "l": "first"}, {"k": "second", "l": "first"})
    corpus.reconcile()
    time.sleep(1.1)
    settle(db, corpus)
    assert stored(connection) == expected(connection, "t")


@LEVELS
def test_truncate_against_replace(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    """All documents of a table are removed while somebody writes one of them by hand."""
    make_table(connection, 3)
    corpus.attach("t", "id", "body", "inline")
    settle(db, corpus)
    a, b = make_client("a"), make_client("b", level)
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
    assert corpus.check() == []
    settle(db, corpus)
    assert stored(connection) == {}


# The corpus is rebuilt.


@LEVELS
def test_rebuild_waits_for_add(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    corpus.add("z", "not touched")
    a, b = make_client("a", level), make_client("b")
    a.does(a.sql(ADD, "k", "from SQL"))
    b.waits(lambda: b.db.corpus("c").rebuild(shingle="word:2"))
    a.commit()
    assert b.end() is True
    rebuilt = db.corpus("c")
    assert str(rebuilt.config.shingle) == "word:2"
    assert stored(connection) == {"k": "from sql", "z": "not touched"}
    settle(db, rebuilt)


def test_lists_wait_for_the_end_of_a_rebuild(
    db: ts.Database, corpus: ts.Corpus, make_client: Clients, connection: Connection
) -> None:
    """Each one has read the old number, and finds its tables gone when it may have their locks."""
    corpus.add_many([("x", "one two three four"), ("y", "one two three four")])
    new = db.create_corpus("new", seed=2)
    new.add_many([("x", "one two three four"), ("y", "one two three four")])
    gate, a, b = make_client("gate"), make_client("a"), make_client("b")
    lists = [make_client(f"list {number}") for number in range(4)]
    corpora = [client.db.corpus("c") for client in lists]
    gate.does(gate.sql("SELECT textsim._replace_corpus(1, 2)"))
    gate.does(gate.sql("DELETE FROM textsim.corpus WHERE id = 1"))
    gate.does(gate.sql("SELECT textsim._drop_storage(1)"))
    a.waits(a.sql("SELECT a, b FROM textsim.pairs('c')"))
    b.waits(b.sql("SELECT a, b FROM textsim.candidate_pairs('c')"))
    lists[0].waits(lambda: [pair[:2] for pair in corpora[0].pairs()])
    lists[1].waits(lambda: [cluster.keys for cluster in corpora[1].clusters()])
    lists[2].waits(lambda: [(d.kept, d.key) for d in corpora[2].duplicates()])
    lists[3].waits(corpora[3].check)
    gate.commit()
    for client in (a, b, *lists[:3]):
        assert client.end() == [("x", "y")]
    assert lists[3].end() == []


@LEVELS
def test_writers_wait_for_rebuild(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    """The gate holds the name of the corpus: the new one stands just before it takes it."""
    corpus.add("z", "not touched")
    gate, rebuilder, a, b, c = (
        make_client("gate"),
        make_client("rebuilder"),
        make_client("a", level),
        make_client("b"),
        make_client("c"),
    )
    old = b.db.corpus("c")
    gate.does(gate.sql("SELECT FROM textsim.corpus WHERE name = 'c' FOR SHARE"))
    rebuilder.waits(lambda: rebuilder.db.corpus("c").rebuild(shingle="word:2"))
    a.waits(a.sql(ADD, "a", "from SQL"))
    b.waits(lambda: old.add("b", "from Python"))
    c.waits(c.sql(REMOVE, "z"))
    gate.commit()
    rebuilder.end()
    for client in (a, c):
        with pytest.raises(psycopg.Error, match=r"rebuilt while this was being written"):
            client.end()
        client.rollback()
    with pytest.raises(ts.CorpusChanged):
        b.end()
    rebuilt = db.corpus("c")
    assert stored(connection) == {"z": "not touched"}
    a.does(a.sql(ADD, "a", "from SQL"))
    a.commit()
    b.does(lambda: old.add("b", "from Python"))
    c.does(c.sql(REMOVE, "z"))
    c.commit()
    assert stored(connection) == {"a": "from sql", "b": "from python"}
    settle(db, rebuilt)


@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_a_row_changes_while_its_corpus_is_rebuilt(
    db: ts.Database, corpus: ts.Corpus, make_client: Clients, connection: Connection, mode: str
) -> None:
    make_table(connection, 3)
    corpus.attach("t", "id", "body", mode)
    a, rebuilder, worker = make_client("a"), make_client("rebuilder"), make_client("worker")
    a.does(a.sql("UPDATE t SET body = 'changed' WHERE id = '2'"))
    step: Callable[[], Any] = lambda: rebuilder.db.corpus("c").rebuild(shingle="word:2")  # noqa: E731
    if mode == "inline":
        rebuilder.waits(step)
    else:
        rebuilder.does(step)
    worker.does(lambda: worker.db.worker().run(until_idle=True))
    a.commit()
    if mode == "inline":
        rebuilder.end()
    rebuilt = db.corpus("c")
    assert str(rebuilt.config.shingle) == "word:2"
    settle(db, rebuilt)
    assert stored(connection) == expected(connection, "t")
