"""Attaching, workers and TRUNCATE while users write the table: which session waits, and the result."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.clients import Isolation
from tests.support.connections import Connection
from tests.support.interleaving import ADD, LEVELS, RR, Scene, add_many_step
from tests.support.sources import expected_forms
from tests.support.workers import wait_for_postponed
from textsim_db.write.statements import QUEUE_OF_WRITERS


def make_table(connection: Connection, rows: int = 0) -> None:
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    connection.execute(
        "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, %s::int) i", [rows]
    )


@pytest.mark.parametrize("mode", ["queue", "inline"])
@LEVELS
def test_attaching_waits_for_an_insert(scene: Scene, level: Isolation, mode: str) -> None:
    make_table(scene.connection, 2)
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
    make_table(scene.connection, 2)
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
def test_two_workers_on_one_key_index_the_last_text(scene: Scene, mode: str) -> None:
    """The row changes for the last time after both workers have read it and computed its signature."""
    make_table(scene.connection)
    scene.corpus.attach("t", "id", "body", mode)
    # In mode inline only a few changes, such as a moved row, need a worker that reads the table.
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
    make_table(scene.connection)
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
    make_table(scene.connection)
    scene.corpus.attach("t", "id", "body", "inline")
    scene.connection.execute("INSERT INTO t VALUES ('k', 'first'), ('l', 'first')")
    a, b, worker = scene.client("a"), scene.client("b"), scene.client("worker")
    a.does(a.sql("UPDATE t SET body = 'second' WHERE id = 'k'"))
    worker.does(lambda: worker.db.worker().run(until_idle=True))
    b.waits(add_many_step(b, ("k", "by hand")))
    a.commit()
    b.end()
    # The document keeps the text that was written last, until it is compared with the table.
    assert scene.forms() in (
        {"k": "by hand", "l": "first"},
        {"k": "second", "l": "first"},
    )
    scene.corpus.reconcile()
    wait_for_postponed(scene.connection)
    scene.settle()
    assert scene.forms() == expected_forms(scene.connection, "t")


@LEVELS
def test_truncate_waits_for_a_replace_and_removes_every_document(
    scene: Scene, level: Isolation
) -> None:
    """TRUNCATE removes all documents of a table while another session writes one of them."""
    make_table(scene.connection, 3)
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
