"""Deadlocks, conflicts and lost connections are repeated; interrupts and errors of documents are not."""

from __future__ import annotations

from itertools import count

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, count_deadlocks, with_option
from tests.support.documents import documents
from tests.support.proxy import Proxy, cut_commit
from tests.support.sampling import sample
from tests.support.sources import expected_forms, index_all_pending, stored_forms
from tests.support.threads import in_thread
from tests.support.waiting import CLIENT_WAITS_FOR_A_LOCK, LOCKS, wait_for, wait_until


def test_a_load_that_the_server_ends_for_a_deadlock_is_repeated(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    """The load has the shorter deadlock_timeout, so the server ends the load's transaction.

    The server looks for a deadlock once, so the other session must wait by then.
    """
    corpus.add_many([("a", "one"), ("b", "two")])
    before = count_deadlocks(connection)
    with (
        psycopg.connect(with_option(db.url, "deadlock_timeout=60000")) as other,
        ts.connect(with_option(db.url, "deadlock_timeout=3000")) as database,
    ):
        same = database.corpus("c")
        other.execute("SELECT textsim.add('c', 'b', 'two changed')")
        with in_thread(lambda: same.add_many([("a", "one more"), ("b", "two more")])) as failures:
            wait_until(connection, CLIENT_WAITS_FOR_A_LOCK)
            other.execute("SELECT textsim.add('c', 'a', 'one changed')")
            other.commit()
    assert failures == []
    # The server updates its statistics later.
    wait_for(lambda: count_deadlocks(connection) > before)
    assert stored_forms(connection) == {"a": "one more", "b": "two more"}
    index_all_pending(db, corpus)


def test_a_write_that_meets_a_serialization_failure_is_repeated(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    """Under REPEATABLE READ a word that another session adds meanwhile causes the failure."""
    url = with_option(db.url, "default_transaction_isolation=repeatable\\ read")
    with psycopg.connect(db.url) as other, ts.connect(url) as strict:
        insert = (
            "INSERT INTO textsim.word_1 (hash, word) VALUES (hashtextextended('new', 0), 'new')"
        )
        other.execute(insert.encode())
        same = strict.corpus("c")
        with in_thread(lambda: same.add("a", "something new")) as failures:
            wait_until(connection, CLIENT_WAITS_FOR_A_LOCK)
            # The load hides the error that it repeats, so a third session shows the error.
            with (
                psycopg.connect(url) as third,
                in_thread(
                    lambda: third.execute(f"{insert} ON CONFLICT DO NOTHING".encode())
                ) as failures_of_third,
            ):
                wait_until(
                    connection,
                    f"SELECT FROM {LOCKS} WHERE NOT granted HAVING count(*) = 2".encode(),
                )
                other.commit()
    assert isinstance(failures_of_third[0], pg.SerializationFailure)
    assert failures == []
    assert stored_forms(connection) == {"a": "something new"}
    index_all_pending(db, corpus)


def test_an_error_of_a_document_is_not_repeated(corpus: ts.Corpus, connection: Connection) -> None:
    connection.execute("CREATE SEQUENCE tries")
    connection.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM nextval('tries'); RAISE EXCEPTION 'no' USING ERRCODE = 'check_violation'; END $$"
    )
    connection.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON textsim.document_1 FOR EACH ROW "
        "WHEN (NEW.key = 'k5') EXECUTE FUNCTION refuse()"
    )
    with pytest.raises(ts.DatabaseError, match="the database refused: no"):
        corpus.add_many(documents(10))
    row = connection.execute("SELECT nextval('tries')").fetchone()
    assert row == (2,)
    assert (len(corpus), corpus.check()) == (0, [])


BATCH = 400
TOTAL = 1000


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("base.run_ahead", "write.remove_documents"):
        monkeypatch.setattr(f"textsim_db.{module}.BATCH_DOCUMENTS", BATCH)


@pytest.mark.more
@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("when", sample(["after", "before"], 2))
def test_documents_are_stored_once_after_a_lost_commit(
    db: ts.Database, connection: Connection, proxy: Proxy, when: str
) -> None:
    """The test loses each COMMIT in turn; the documents are also counted once."""
    with ts.connect(proxy.url) as proxied_db:
        # The commits of a load: dropping the index, three batches, building the index.
        for number in range(1, 6):
            name = f"c{number}"
            # It has learned what is common, so the load need not rebuild it.
            learned = db.create_corpus(name, shingle="word:2", num_hashes=16, passages=4)
            learned.add_many(documents(100))
            learned.remove(key for key, _ in documents(100))
            corpus = proxied_db.corpus(name)
            proxy.cuts = 0
            proxy.cut = cut_commit(number, when)
            report = corpus.add_many(documents(TOTAL))
            assert proxy.cuts == 1
            assert (report.added, report.received) == (TOTAL, TOTAL)
            assert corpus.check() == []
            assert len(corpus.query(documents(1)[0][1], 1.0)) == 1
        for number in (1, 2, 3):
            proxy.cuts, proxy.cut = 0, cut_commit(number, when)
            changed = documents(TOTAL // 2, f"two {number}") + documents(TOTAL)[TOTAL // 2 :]
            report = corpus.add_many(changed)
            assert proxy.cuts == 1
            assert (report.replaced, report.unchanged) == (TOTAL // 2, TOTAL - TOTAL // 2)
            assert corpus.check() == []
        proxy.cuts, proxy.cut = 0, cut_commit(2, when)
        assert corpus.remove(key for key, _ in documents(TOTAL)) == TOTAL
        assert proxy.cuts == 1
        assert (len(corpus), corpus.check()) == (0, [])


@pytest.mark.more
@pytest.mark.parametrize("when", sample(["after", "before"], 2))
def test_a_worker_indexes_all_changes_after_a_lost_commit(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, proxy: Proxy, when: str
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    with ts.connect(proxy.url) as proxied_db:
        proxied_db.worker().run(until_idle=True)
        connection.execute(
            "INSERT INTO t SELECT i, 'text number ' || i FROM generate_series(1, 9) i"
        )
        # The first transaction is before the first claim, when a worker does not try again.
        for number in count(2):
            connection.execute("UPDATE t SET body = body || %s", [f" new{number}"])
            proxy.cuts, proxy.cut = 0, cut_commit(number, when)
            proxied_db.worker().run(until_idle=True)
            assert stored_forms(connection) == expected_forms(connection, "t")
            assert corpus.status()[1:4] == (0, None, 0)
            # On a busy machine a worker commits more often, so the number is not known before.
            if proxy.cuts == 0:
                break
        assert number > 4
    assert corpus.check() == []


@pytest.mark.long
def test_writes_to_a_server_that_stays_away_end_with_an_error(
    corpus: ts.Corpus, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textsim_db.db.retries.MAX_TRIES", 5)
    with ts.connect(proxy.url) as proxied_db:
        same = proxied_db.corpus("c")
        proxy.cut = lambda proxy, data: "before"
        with pytest.raises(ts.DatabaseUnavailable):
            same.remove(["a"])
        assert proxy.cuts >= 5
        proxy.cut = lambda proxy, data: None
        assert same.remove(["a"]) == 0
