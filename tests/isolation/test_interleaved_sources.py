"""Attaching, workers and TRUNCATE while users write the table: which session waits, and the result."""

from __future__ import annotations

import psycopg
import pytest

import textsim_db as ts
from tests.support.clients import Clients, Isolation
from tests.support.connections import Connection
from tests.support.interleaving import ADD, LEVELS, RR, add_many_step
from tests.support.sources import expected_forms, index_all_pending, stored_forms
from tests.support.workers import wait_for_postponed
from textsim_db.write.statements import QUEUE_OF_WRITERS


def make_table(connection: Connection, rows: int = 0) -> None:
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    connection.execute(
        "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, %s::int) i", [rows]
    )


@pytest.mark.parametrize("mode", ["queue", "inline"])
@LEVELS
def test_attaching_waits_for_an_insert(
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
    assert stored_forms(connection) == expected_forms(connection, "t")
    index_all_pending(db, corpus)


@pytest.mark.parametrize("mode", ["queue", "inline"])
@LEVELS
def test_an_insert_waits_for_attaching(
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
        # A snapshot that is older than the trigger must be refused.
        assert (level, mode) == (RR, "queue")
        b.rollback()
        b.does(b.sql("INSERT INTO t VALUES ('k', 'while it is attached')"))
    b.commit()
    index_all_pending(db, corpus)
    assert stored_forms(connection) == expected_forms(connection, "t")
    assert "k" in corpus


@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_two_workers_on_one_key_index_the_last_text(
    db: ts.Database, corpus: ts.Corpus, make_client: Clients, connection: Connection, mode: str
) -> None:
    """The row changes for the last time after both workers have read it and computed its signature."""
    make_table(connection)
    corpus.attach("t", "id", "body", mode)
    # In mode inline only a few changes, such as a moved row, need a worker that reads the table.
    log_change = (
        "INSERT INTO textsim.pending (kind, corpus_id, source_id, keys) "
        "SELECT 'change', corpus_id, id, '{k}' FROM textsim.source"
    )
    gate, a, b = make_client("gate"), make_client("a"), make_client("b")
    gate.does(gate.sql(QUEUE_OF_WRITERS, 1))
    connection.execute("INSERT INTO t VALUES ('k', 'first')")
    connection.execute(log_change)
    a.waits(lambda: a.db.worker().run(until_idle=True))
    connection.execute("UPDATE t SET body = 'second' WHERE id = 'k'")
    connection.execute(log_change)
    b.waits(lambda: b.db.worker().run(until_idle=True))
    connection.execute("UPDATE t SET body = 'third' WHERE id = 'k'")
    gate.commit()
    a.end()
    b.end()
    assert corpus.status().failed == 0
    wait_for_postponed(connection)
    index_all_pending(db, corpus)
    assert stored_forms(connection) == {"k": "third"}


@LEVELS
def test_a_worker_under_repeatable_read_brings_back_no_deleted_row(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    """A worker must read rows that were committed while it waited, whatever the default level is."""
    make_table(connection)
    corpus.attach("t", "id", "body")
    gate = make_client("gate")
    worker = make_client(
        "worker",
        options=f"-c default_transaction_isolation={level.name.lower().replace('_', chr(92) + ' ')}",
    )
    gate.does(gate.sql(QUEUE_OF_WRITERS, 1))
    connection.execute("INSERT INTO t VALUES ('k', 'soon gone')")
    worker.waits(lambda: worker.db.worker().run(until_idle=True))
    # Another worker that claims the deletion finds no document and removes the entry.
    connection.execute("DELETE FROM t")
    gate.does(gate.sql("DELETE FROM textsim.pending WHERE lease_until IS NULL"))
    gate.commit()
    worker.end()
    assert stored_forms(connection) == {}
    index_all_pending(db, corpus)


def test_a_worker_skips_a_document_that_a_user_has_locked(
    db: ts.Database, corpus: ts.Corpus, make_client: Clients, connection: Connection
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body", "inline")
    connection.execute("INSERT INTO t VALUES ('k', 'first'), ('l', 'first')")
    a, b, worker = make_client("a"), make_client("b"), make_client("worker")
    a.does(a.sql("UPDATE t SET body = 'second' WHERE id = 'k'"))
    worker.does(lambda: worker.db.worker().run(until_idle=True))
    b.waits(add_many_step(b, ("k", "by hand")))
    a.commit()
    b.end()
    # The document keeps the text that was written last, until it is compared with the table.
    assert stored_forms(connection) in (
        {"k": "by hand", "l": "first"},
        {"k": "second", "l": "first"},
    )
    corpus.reconcile()
    wait_for_postponed(connection)
    index_all_pending(db, corpus)
    assert stored_forms(connection) == expected_forms(connection, "t")


@LEVELS
def test_truncate_waits_for_a_replace_and_removes_every_document(
    db: ts.Database,
    corpus: ts.Corpus,
    make_client: Clients,
    connection: Connection,
    level: Isolation,
) -> None:
    """TRUNCATE removes all documents of a table while another session writes one of them."""
    make_table(connection, 3)
    corpus.attach("t", "id", "body", "inline")
    index_all_pending(db, corpus)
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
    index_all_pending(db, corpus)
    assert stored_forms(connection) == {}
