"""A transaction that nobody ends keeps the writers of a corpus waiting: who holds the lock is named."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest

import textsim_db as ts
from tests.support.commands import Textsim, process
from tests.support.connections import Connection, value
from tests.support.waiting import LOCKS, PATIENCE_SECONDS, wait_for, wait_until

ADD = "SELECT textsim.add('c', %s, %s)"
TEXT = "the quick brown fox jumps over the lazy dog"


@pytest.fixture(params=["inline", "unique"])
def corpus(db: ts.Database, request: pytest.FixtureRequest) -> ts.Corpus:
    is_unique = request.param == "unique"
    corpus = db.create_corpus("c", is_unique=is_unique)
    if not is_unique:
        corpus.track(mode="inline")
    return corpus


@contextmanager
def waiting_writer(database_url: str, connection: Connection) -> Iterator[int]:
    """Write a document in a thread, which waits; yield the id of its session."""
    with psycopg.connect(database_url, autocommit=True) as other:

        def write() -> None:
            with suppress(psycopg.Error):
                other.execute(ADD, ["b", TEXT])

        writer = threading.Thread(target=write)
        writer.start()
        try:
            wait_until(connection, f"SELECT FROM {LOCKS} WHERE NOT granted".encode())
            yield other.info.backend_pid
        finally:
            other.cancel()
            writer.join(PATIENCE_SECONDS)


def named_problems(connection: Connection, *parts: str) -> list[str]:
    problems: list[str] = value(connection, "SELECT problems FROM textsim.status('c')")
    return [problem for problem in problems if all(part in problem for part in parts)]


@pytest.mark.more
def test_a_prepared_transaction_that_blocks_is_named(
    corpus: ts.Corpus, connection: Connection, database_url: str, textsim: Textsim
) -> None:
    if value(connection, "SHOW max_prepared_transactions") == "0":
        pytest.skip("needs a server with max_prepared_transactions")
    name = f"it's {connection.info.dbname}"
    with psycopg.connect(database_url) as preparing:
        preparing.execute(ADD, ["a", TEXT])
        preparing.execute(f"PREPARE TRANSACTION {quoted(name)}".encode())
    try:
        with waiting_writer(database_url, connection) as pid:
            parts = (f"session {pid} has waited", "for a prepared transaction")
            wait_for(lambda: named_problems(connection, *parts))
            assert f"session {pid}" in textsim("status", status=1).stderr
    finally:
        connection.execute(f"ROLLBACK PREPARED {quoted(name)}".encode())
    assert corpus.status().problems == []


def quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


@pytest.mark.more
def test_a_session_that_blocks_is_named(
    corpus: ts.Corpus, connection: Connection, database_url: str
) -> None:
    with psycopg.connect(database_url) as holder:
        holder.execute(ADD, ["a", TEXT])
        holder.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with waiting_writer(database_url, connection) as pid:
            parts = (f"session {pid} has waited", f"for session {holder.info.backend_pid}")
            wait_for(lambda: named_problems(connection, *parts))
        holder.rollback()


@pytest.mark.more
def test_a_rebuild_that_is_ended_does_not_wait_on_in_the_server(
    db: ts.Database, connection: Connection, database_url: str
) -> None:
    corpus = db.create_corpus("c")
    corpus.track()
    waits = f"SELECT FROM {LOCKS} WHERE NOT granted"
    with psycopg.connect(database_url) as holder:
        holder.execute("SELECT textsim._lock_clusters(id) FROM textsim.corpus")
        rebuild = process("rebuild", "c", "--seed", "7", url=database_url)
        try:
            wait_until(connection, waits.encode())
            rebuild.send_signal(signal.SIGTERM)
            _, told = rebuild.communicate(timeout=PATIENCE_SECONDS)
        finally:
            rebuild.kill()
        assert rebuild.returncode == 143, told
        assert "interrupted" in told
        # The server ends a session shortly after its client; the holder would keep it for longer.
        wait_until(
            connection,
            b"SELECT WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = "
            b"current_database() AND application_name LIKE 'textsim-db rebuild%%')",
        )
