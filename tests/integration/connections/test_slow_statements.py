"""Batches that time out are halved and repeated; statements that a user cancels are not."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, with_option
from tests.support.documents import documents
from tests.support.proxy import Proxy
from tests.support.sources import index_all_pending
from tests.support.threads import in_thread
from tests.support.waiting import wait_until
from tests.support.workers import running_worker

SLEEP = 0.0015
SLOW = f"""
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(CASE WHEN to_jsonb(NEW) ->> 'key' = 'slow' THEN 20 ELSE {SLEEP} END);
    RETURN NEW;
END $$
"""
CANCEL = """
SELECT pg_cancel_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE %s
    AND state = 'active'
"""


def slow_down_inserts(connection: Connection, table: str = "textsim.document_1") -> None:
    connection.execute(SLOW.encode())
    connection.execute(
        f"CREATE TRIGGER slow BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION slow()".encode()
    )


def count_transactions(connection: Connection) -> int:
    """Return the number of transactions that have written the stored documents."""
    row = connection.execute("SELECT count(DISTINCT xmin::text) FROM textsim.document_1").fetchone()
    assert row is not None
    return int(row[0])


def translate_to_german(data: bytes) -> bytes:
    """Translate messages as a server with German messages does."""
    for english, other in (
        (
            b"canceling statement due to statement timeout",
            b"Anweisung wegen Zeit\xc3\xbcberschreitung beendet",
        ),
        (b"canceling statement due to user request", b"Anweisung wegen Benutzeranfrage beendet"),
    ):
        data = data.replace(english, other.ljust(len(english), b"."))
    return data


@pytest.mark.more
@pytest.mark.parametrize(
    "translate",
    [
        pytest.param(lambda data: data, id="english"),
        pytest.param(translate_to_german, id="german", marks=pytest.mark.long),
    ],
)
def test_a_batch_that_times_out_is_written_in_parts(
    corpus: ts.Corpus, connection: Connection, proxy: Proxy, translate: Callable[[bytes], bytes]
) -> None:
    """1,200 documents take over 1,800 ms, and a statement may take 600 ms."""
    slow_down_inserts(connection)
    proxy.replies = translate
    with ts.connect(with_option(proxy.url, "statement_timeout=600")) as hasty:
        same = hasty.corpus("c")
        report = same.add_many(documents(1200))
        assert report.added == 1200
        assert 4 <= count_transactions(connection) <= 64
        assert corpus.check() == []
        # The batch is halved down to the slow document; the documents before it are stored.
        with pytest.raises(
            ts.DatabaseError, match='document "slow": the database refused: '
        ) as raised:
            same.add_many(
                [(f"{key} more", text) for key, text in documents(100)] + [("slow", "it is")]
            )
        assert isinstance(raised.value.__cause__, pg.QueryCanceled)
        assert len(corpus) == 1300
        assert corpus.check() == []


@pytest.mark.long
def test_a_worker_writes_a_batch_that_times_out_in_parts(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    slow_down_inserts(connection)
    connection.execute(
        "INSERT INTO t SELECT i, 'text number ' || i FROM generate_series(1, 2000) i"
    )
    connection.execute("INSERT INTO t VALUES ('slow', 'it takes its time')")
    with ts.connect(with_option(db.url, "statement_timeout=600")) as hasty:
        hasty.worker().run(until_idle=True)
        assert len(corpus) == 2000
        assert 4 <= count_transactions(connection) <= 64
        while not corpus.pending():
            connection.execute("UPDATE textsim.pending SET lease_until = NULL")
            hasty.worker().run(until_idle=True)
    [failure] = corpus.pending()
    assert failure.key == "slow"
    assert failure.error.startswith("canceling statement due to statement timeout")


def test_a_lock_timeout_names_the_document(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    corpus.add_many(documents(500))
    with (
        psycopg.connect(db.url) as holder,
        ts.connect(with_option(db.url, "lock_timeout=30")) as hasty,
    ):
        holder.execute("SELECT FROM textsim.document_1 WHERE key = 'k77' FOR UPDATE")
        same = hasty.corpus("c")
        with pytest.raises(ts.DatabaseError, match=r'document "k77": .* lock timeout'):
            same.add_many(documents(500, "two"))
        with pytest.raises(ts.DatabaseError, match=r'document "k77": .* lock timeout'):
            same.remove(["k499", "k77", "k78"])
        assert corpus.check() == []


@pytest.mark.parametrize(
    "translate", [lambda data: data, translate_to_german], ids=["english", "german"]
)
def test_a_cancelled_statement_is_not_repeated(
    corpus: ts.Corpus, connection: Connection, proxy: Proxy, translate: Callable[[bytes], bytes]
) -> None:
    slow_down_inserts(connection)
    proxy.replies = translate
    with ts.connect(with_option(proxy.url, "statement_timeout=60000")) as patient:
        same = patient.corpus("c")
        with in_thread(
            lambda: same.add_many([*documents(50), ("slow", "it takes its time")])
        ) as failures:
            wait_until(connection, CANCEL.encode(), ["%COPY%"])
    [error] = failures
    assert isinstance(error, ts.DatabaseError)
    assert isinstance(error.__cause__, pg.QueryCanceled)
    assert str(error).startswith("the database refused: ")
    assert (len(corpus), corpus.check()) == (0, [])


@pytest.mark.more
def test_a_worker_goes_on_after_a_statement_was_cancelled(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    slow_down_inserts(connection)
    with running_worker(db, lease=2.0):
        connection.execute("INSERT INTO t VALUES ('slow', 'it takes its time')")
        wait_until(connection, CANCEL.encode(), ["%COPY%"])
        connection.execute("DROP TRIGGER slow ON textsim.document_1")
        connection.execute("INSERT INTO t VALUES ('b', 'it comes after that')")
        wait_until(connection, b"SELECT FROM textsim.document_1 WHERE key = 'b'")
        assert "slow" not in corpus
        wait_until(connection, b"SELECT FROM textsim.document_1 WHERE key = 'slow'")
    index_all_pending(db, corpus)
