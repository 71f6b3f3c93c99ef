"""Connections that are lost at a COMMIT or elsewhere: each document is stored once."""

from __future__ import annotations

from itertools import count

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.documents import documents
from tests.support.proxy import Proxy, cut_commit
from tests.support.sampling import sample
from tests.support.sources import expected_forms, index_all_pending, stored_forms
from textsim_db.write import prepare_batches, remove_documents

BATCH = 1000
TOTAL = 2500


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare_batches, "BATCH_DOCUMENTS", BATCH)
    monkeypatch.setattr(remove_documents, "REMOVED_AT_ONCE", BATCH)


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
            db.create_corpus(name, shingle="word:2", num_hashes=16)
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
@pytest.mark.parametrize("when", ["before", "after"])
def test_reconcile_mends_all_rows_after_a_lost_commit(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, proxy: Proxy, when: str
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    connection.execute("ALTER TABLE t DISABLE TRIGGER USER")
    connection.execute("INSERT INTO t SELECT i, 'text number ' || i FROM generate_series(1, 99) i")
    with ts.connect(proxy.url) as proxied_db:
        same = proxied_db.corpus("c")
        before = proxy.commits
        assert same.reconcile().added == 99
        for number in range(1, proxy.commits - before + 1):
            connection.execute("UPDATE t SET body = body || %s", [f" new{number}"])
            proxy.cuts, proxy.cut = 0, cut_commit(number, when)
            report = same.reconcile()
            assert proxy.cuts == 1
            assert report.replaced + report.unchanged >= 99
            assert stored_forms(connection) == expected_forms(connection, "t")
    index_all_pending(db, corpus)


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
