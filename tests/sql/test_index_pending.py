"""CALL textsim.index_pending indexes tables and gives words their ids, without Python."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.collision import FIRST, SECOND
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.threads import in_thread
from tests.support.waiting import LOCKS, wait_until

ROWS = 1500
"""More rows than a part of a run (100), a page of a comparison (1,000) and a batch of the log."""

NOT_GRANTED = f"SELECT FROM {LOCKS} WHERE NOT granted".encode()

in_both_modes = pytest.mark.parametrize("mode", ["queue", "inline"])


def create_corpus(connection: Connection) -> None:
    connection.execute("SELECT textsim.create_corpus('c', 'word:2', 0.7, num_hashes => 16)")


def create_table(connection: Connection, rows: int = ROWS) -> None:
    """Create a table in which each text has one near-duplicate."""
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
    connection.execute(
        "INSERT INTO t SELECT i, (SELECT string_agg(md5(i / 2 || ' ' || j), ' ') "
        "FROM generate_series(1, 12) j) || ' ' || i FROM generate_series(0, %s) i",
        [rows - 1],
    )


def count_documents(connection: Connection) -> Any:
    """Count the documents, the documents whose words wait for ids, and the entries of the log."""
    return connection.execute(
        "SELECT count(*), count(*) FILTER (WHERE word_ids IS NULL), "
        "(SELECT count(*) FROM textsim.pending) FROM textsim.document_1"
    ).fetchone()


@pytest.mark.parametrize("mode", sample(["queue", "inline"], 2))
def test_every_row_is_indexed(db: ts.Database, connection: Connection, mode: str) -> None:
    create_corpus(connection)
    create_table(connection)
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', %s)", [mode])
    assert notices == [f"not indexed yet: {ROWS} rows of table public.t"]
    assert count_documents(connection)[0] == 0
    connection.execute("CALL textsim.index_pending('c')")
    assert count_documents(connection) == (ROWS, 0, 0)
    pairs = connection.execute("SELECT a, b FROM textsim.pairs('c')").fetchall()
    rows = connection.execute("SELECT id::text, body FROM t").fetchall()
    other = db.create_corpus("other", shingle="word:2", threshold=0.7, num_hashes=16)
    other.add_many(rows)
    expected = connection.execute("SELECT a, b FROM textsim.pairs('other')").fetchall()
    assert len(expected) > ROWS / 4
    assert sorted(pairs) == sorted(expected)
    assert db.corpus("c").check() == []
    assert list(db.corpus("c").drift()) == []


def test_changes_that_cannot_be_indexed_are_set_aside_with_their_error(
    db: ts.Database, connection: Connection
) -> None:
    create_corpus(connection)
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    connection.execute("CREATE TABLE u (id text PRIMARY KEY, body text)")
    connection.execute("SELECT textsim.add('c', 'first', %s)", [f"one {FIRST} three"])
    connection.execute("CALL textsim.index_pending('c')")
    connection.execute("INSERT INTO t VALUES ('k', 'fine'), (repeat('k', 1001), 'a long key')")
    connection.execute("INSERT INTO t VALUES ('collides', %s)", [f"one {SECOND} three"])
    connection.execute("INSERT INTO u VALUES ('k', 'of two tables')")
    for table in "tu":
        connection.execute("SELECT textsim.attach('c', %s, 'id', 'body')", [table])
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    connection.execute("CALL textsim.index_pending('c')")
    assert notices == ["set aside, with the errors in textsim.pending: 3 documents"]
    failures = {(failure.key or "")[:8]: failure.error for failure in db.corpus("c").pending()}
    assert failures["kkkkkkkk"] == "the key is 1001 bytes long; at most 1000 are possible"
    assert failures["k"] == "the corpus has this key from the table public.t"
    assert "has the same 64-bit hash as another word" in failures["collides"]
    # An error goes when its cause is gone.
    connection.execute("DELETE FROM t WHERE id <> 'k'")
    connection.execute("DELETE FROM u")
    connection.execute("CALL textsim.index_pending('c')")
    assert db.corpus("c").pending() == []
    assert count_documents(connection)[:2] == (2, 0)


def test_a_transaction_block_is_refused_with_the_way_out(connection: Connection) -> None:
    connection.execute("SELECT textsim.create_corpus('c', keep_for => '1 day')")
    connection.execute("SELECT textsim.track('c')")
    connection.execute(
        "CREATE FUNCTION call_it() RETURNS void LANGUAGE plpgsql AS "
        "$$ BEGIN CALL textsim.index_pending('c'); END $$"
    )
    connection.execute(
        "CREATE PROCEDURE nightly() LANGUAGE plpgsql AS "
        "$$ BEGIN COMMIT; CALL textsim.index_pending('c'); COMMIT; END $$"
    )
    for name in ("index_pending", "update_clusters", "expire"):
        connection.execute("SELECT textsim.add('c', %s, 'some words of a text')", [name])
        message = f"^{name} commits after each step, so it cannot run in a transaction block"
        with (
            pytest.raises(pg.InvalidTransactionTermination, match=message) as raised,
            connection.transaction(),
        ):
            connection.execute(f"CALL textsim.{name}('c')")
        assert "switch on its autocommit" in (raised.value.diag.message_hint or "")
        connection.execute(f"CALL textsim.{name}('c')")
    with pytest.raises(pg.InvalidTransactionTermination, match="or a function"):
        connection.execute("SELECT call_it()")
    connection.execute("CALL nightly()")
    connection.execute("DO $$ BEGIN CALL textsim.index_pending('c'); END $$")
    assert count_documents(connection) == (3, 0, 0)


def test_index_pending_causes_no_deadlock_of_a_writer_it_waits_for(
    connection: Connection, database_url: str
) -> None:
    """A user's transaction that has locked a document may still lock the whole table."""
    create_corpus(connection)
    create_table(connection, 1)
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', 'inline')")
    connection.execute("CALL textsim.index_pending('c')")
    connection.execute(
        "INSERT INTO textsim.pending (kind, corpus_id, source_id, keys) VALUES ('change', 1, 1, '{0}')"
    )
    with (
        psycopg.connect(database_url) as writer,
        psycopg.connect(database_url, autocommit=True) as watcher,
    ):
        writer.execute("UPDATE t SET body = 'a text that is not committed'")
        with in_thread(lambda: connection.execute("CALL textsim.index_pending('c')")) as failures:
            wait_until(watcher, NOT_GRANTED)
            writer.execute("TRUNCATE t")
            writer.commit()
    assert failures == []
    connection.execute("CALL textsim.index_pending('c')")
    assert count_documents(connection) == (0, 0, 0)


@in_both_modes
def test_words_get_ids_after_a_call_was_cancelled(
    db: ts.Database, connection: Connection, mode: str
) -> None:
    """A trigger makes the call wait for a lock at one document, when others are stored already."""
    create_corpus(connection)
    create_table(connection)
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', %s)", [mode])
    connection.execute(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;"
        "CREATE TRIGGER wait BEFORE INSERT ON textsim.document_1 FOR EACH ROW "
        "WHEN (NEW.key = '700') EXECUTE FUNCTION wait()"
    )
    with psycopg.connect(db.url, autocommit=True) as watcher:
        watcher.execute("SELECT pg_advisory_lock(7)")
        with in_thread(lambda: connection.execute("CALL textsim.index_pending('c')")) as failures:
            wait_until(watcher, NOT_GRANTED)
            watcher.execute("SELECT pg_cancel_backend(%s)", [connection.info.backend_pid])
    assert isinstance(failures[0], pg.QueryCanceled)
    documents, waiting, _ = count_documents(connection)
    assert 0 < waiting <= documents < ROWS
    assert db.corpus("c").check() == []
    connection.execute("SELECT textsim.detach('c', 't')")
    assert db.corpus("c").check() == []
    connection.execute("CALL textsim.index_pending('c')")
    assert count_documents(connection) == (documents, 0, 0)


def test_a_document_that_is_locked_is_logged_again(
    db: ts.Database, connection: Connection, database_url: str
) -> None:
    """If the holder rolls back, no other entry of the log tells that the words wait for ids."""
    create_corpus(connection)
    connection.execute("SELECT textsim.add('c', 'k', 'words that wait for their ids')")
    with psycopg.connect(database_url) as holder:
        holder.execute("SELECT textsim.add('c', 'k', 'words of a transaction that rolls back')")
        connection.execute("CALL textsim.index_pending('c')")
        holder.rollback()
    assert count_documents(connection) == (1, 1, 1)
    connection.execute("UPDATE textsim.pending SET lease_until = NULL")
    connection.execute("CALL textsim.index_pending('c')")
    assert count_documents(connection) == (1, 0, 0)


def test_wrong_calls_of_index_pending_are_refused(connection: Connection) -> None:
    create_corpus(connection)
    with pytest.raises(pg.UndefinedObject, match='corpus "nix" does not exist'):
        connection.execute("CALL textsim.index_pending('nix')")
    with pytest.raises(pg.InvalidParameterValue, match="name of the corpus is NULL"):
        connection.execute("CALL textsim.index_pending(NULL)")
    connection.execute("SELECT textsim.create_corpus('auto', language => 'auto', num_hashes => 16)")
    with pytest.raises(pg.FeatureNotSupported, match="identifies languages"):
        connection.execute("CALL textsim.index_pending('auto')")
    with connection.transaction(), pytest.raises(pg.InvalidTransactionTermination):
        connection.execute("CALL textsim.index_pending('c')")


def test_searches_warn_until_a_table_is_indexed(connection: Connection) -> None:
    create_corpus(connection)
    create_table(connection, 10)
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', 'inline')")
    connection.execute("INSERT INTO t VALUES (100, 'a row that is indexed at once')")
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    warning = 'table public.t is not completely indexed in corpus "c": results may be missing'
    searches = (
        "SELECT key, similarity FROM textsim.matches('c', 'a row that is indexed at once')",
        "SELECT * FROM textsim.candidates('c', 'a row that is indexed at once')",
        "SELECT key, similarity FROM textsim.neighbours('c', '100')",
        "SELECT * FROM textsim.pairs('c')",
    )
    for search in searches:
        connection.execute(search)
        assert notices == [warning], search
        notices.clear()
    connection.execute("CALL textsim.index_pending('c')")
    for search in searches:
        connection.execute(search)
    assert notices == []


@pytest.mark.sampled
@in_both_modes
@pytest.mark.parametrize(
    "fault",
    [
        "DROP TRIGGER _textsim_1_insert ON t",
        "DROP TRIGGER _textsim_1_truncate ON t",
        "DROP FUNCTION textsim._changes_1() CASCADE",
        "ALTER TABLE t DISABLE TRIGGER _textsim_1_delete",
        "ALTER TABLE t ENABLE REPLICA TRIGGER _textsim_1_update",
    ],
)
def test_searches_warn_of_a_lost_trigger_at_once(
    db: ts.Database, connection: Connection, mode: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_corpus(connection)
    create_table(connection, 3)
    connection.execute(f"SELECT textsim.attach('c', 't', 'id', 'body', '{mode}')".encode())
    connection.execute("CALL textsim.index_pending('c')")
    metric = "SELECT value FROM textsim.metrics WHERE name = 'textsim_table_problems'"
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    search = "SELECT key, similarity FROM textsim.matches('c', 'a row that nobody has')"
    connection.execute(search)
    list(db.corpus("c").pairs())
    assert (notices, caplog.messages) == ([], [])
    assert connection.execute(metric).fetchone() == (0,)
    connection.execute(fault.encode())
    notices.clear()
    connection.execute(search)
    warning = (
        'changes of table public.t are missed in corpus "c": a trigger was dropped or is disabled'
    )
    assert notices == [warning]
    list(db.corpus("c").pairs())
    assert [message.partition(";")[0] for message in caplog.messages] == [warning]
    assert db.corpus("c").status().problems
    assert connection.execute(metric).fetchone() != (0,)
    connection.execute("SELECT textsim.detach('c', 't')")
    connection.execute(f"SELECT textsim.attach('c', 't', 'id', 'body', '{mode}')".encode())
    connection.execute("CALL textsim.index_pending('c')")
    notices.clear()
    connection.execute(search)
    assert notices == []
