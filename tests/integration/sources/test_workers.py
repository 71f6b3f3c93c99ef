"""Running workers: they are killed, and skip locked tables and rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sources import index_all_pending, make_table, text_of
from tests.support.waiting import CLIENT_WAITS_FOR_A_LOCK, wait_for, wait_until
from tests.support.workers import running_worker
from textsim_db.sync import read_source, report_worker, step_faults
from textsim_db.sync.pending_log import FAIL_TRIES
from textsim_db.sync.pieces import Piece


def test_a_running_worker_indexes_changes_and_reconnects(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection, 0)
    reports: list[Any] = []
    with running_worker(db, report=reports.append):
        connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
        for number in range(10):
            connection.execute("INSERT INTO t VALUES (%s, %s)", [number, text_of(number)])
            wait_for(lambda number=number: corpus.query(text_of(number)))  # type: ignore[misc]
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'textsim-db' AND datname = current_database()"
        )
        connection.execute("INSERT INTO t VALUES (100, 'after the connection was lost')")
        wait_for(
            lambda: connection.execute("SELECT FROM textsim.document_1 WHERE key = '100'").rowcount
        )
    index_all_pending(db, corpus)
    assert sum(report.changes.added for report in reports) == 11
    assert {(report.corpus, report.table) for report in reports} == {("c", "public.t")}


@pytest.fixture
def holder(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Connection]:
    """A connection that holds a lock of the attached table t, whose log has changes."""
    monkeypatch.setattr(read_source, "READING_PATIENCE", "10ms")
    monkeypatch.setattr(step_faults, "LOCKED_SECONDS", (0.01, 0.05))
    make_table(connection)
    corpus.attach("t", "id", "body")
    connection.execute("INSERT INTO t SELECT i, 'row ' || i FROM generate_series(100, 200) i")
    with psycopg.connect(db.url) as holder:
        holder.execute("LOCK TABLE t")
        yield holder


def test_a_worker_skips_a_locked_table(
    db: ts.Database,
    corpus: ts.Corpus,
    connection: Connection,
    holder: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker claims the changes often, long before their lease is over, and sets none aside."""
    other = db.create_corpus("other")
    connection.execute("CREATE TABLE fine (id int PRIMARY KEY, body text)")
    other.attach("fine", "id", "body")
    claims = 0
    cut = Piece.cut

    def count_claims(piece: Piece) -> Iterator[Piece]:
        nonlocal claims
        claims += 1
        return cut(piece)

    monkeypatch.setattr(Piece, "cut", count_claims)
    with running_worker(db, lease=3600):
        wait_for(lambda: claims > FAIL_TRIES)
        connection.execute("INSERT INTO fine VALUES (1, 'goes on')")
        wait_for(lambda: len(other))
        wait_for(lambda: claims > 2 * FAIL_TRIES)
        assert len(corpus) == 5
        holder.rollback()
        wait_for(lambda: len(corpus) == 106)
    assert corpus.pending() == []
    index_all_pending(db, corpus)


@pytest.mark.more
def test_stop_ends_a_worker_whose_claim_is_blocked(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body")
    with psycopg.connect(db.url) as blocking, running_worker(db):
        blocking.execute("LOCK TABLE textsim.pending")
        wait_until(connection, CLIENT_WAITS_FOR_A_LOCK)
        # running_worker() stops the worker before the lock ends.


def test_a_worker_reports_its_progress_and_removes_the_rows_of_dead_workers(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_worker, "REPORT_SECONDS", 0.1)
    make_table(connection)
    corpus.attach("t", "id", "body")
    connection.execute(
        "INSERT INTO textsim.worker (id, host, process, reported_at, step, step_began_at) "
        "SELECT gen_random_uuid(), 'dead', 1, now() - interval '1 hour', 'claims changes', now()"
    )
    connection.execute(
        "INSERT INTO textsim.worker (id, host, process, step, step_began_at) "
        "VALUES (gen_random_uuid(), 'another', 7, 'claims changes', now())"
    )
    with running_worker(db):
        connection.execute("INSERT INTO t VALUES (10, 'a text to write')")
        wait_for(lambda: any(worker.wrote is not None for worker in db.workers()))
        workers = {worker.process: worker for worker in db.workers()}
        assert workers.keys() == {os.getpid(), 7}
        assert workers[os.getpid()].claimed is not None
        assert workers[os.getpid()].error is None
    assert [worker.process for worker in db.workers()] == [7]
