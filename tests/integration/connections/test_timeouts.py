"""statement_timeout and lock_timeout of a session limit every call."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import with_option
from tests.support.waiting import PATIENCE_SECONDS, wait_until
from textsim_db.db import stored_corpus
from textsim_db.db.engine import transaction, wait_at_most
from textsim_db.sync import pieces, read_source

LOCK = "lock_timeout=50ms"
TOO_LONG = "canceling statement due to statement timeout"


@pytest.fixture
def limited(db: ts.Database) -> Iterator[Callable[[str], ts.Database]]:
    """A function that opens the database with a setting, such as lock_timeout=50ms."""
    with ExitStack() as stack:
        yield lambda setting: stack.enter_context(ts.connect(with_option(db.url, setting)))


@pytest.fixture
def corpus(db: ts.Database) -> ts.Corpus:
    corpus = db.create_corpus("c")
    corpus.add("a", "some words of a text")
    return corpus


def test_a_worker_that_cannot_read_its_log_ends_with_an_error(
    db: ts.Database, corpus: ts.Corpus, limited: Callable[[str], ts.Database]
) -> None:
    worker = limited("statement_timeout=400ms").worker()
    with psycopg.connect(db.url) as holder:
        holder.execute("LOCK TABLE textsim.pending")
        with pytest.raises(ts.DatabaseError, match=TOO_LONG):
            worker.run()


def test_the_shorter_of_two_lock_timeouts_applies(
    db: ts.Database, corpus: ts.Corpus, limited: Callable[[str], ts.Database]
) -> None:
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    hasty = limited(LOCK)
    (source,) = read_source.sources(hasty.engine)

    def waits(database: ts.Database) -> str:
        with read_source.reading(database.engine, source) as connection:
            return str(connection.execute("SHOW lock_timeout").fetchall()[0][0])

    assert waits(hasty) == "50ms"
    assert waits(db) == read_source.READING_PATIENCE
    for setting, before, after in (
        ("50ms", ("50ms", 0.05), "50ms"),
        ("100ms", ("100ms", 0.1), "100ms"),
        ("101ms", ("101ms", 0.101), "100ms"),
        ("2min", ("2min", 120.0), "100ms"),
        ("1d", ("1d", 86400.0), "100ms"),
        ("0", ("0", None), "100ms"),
    ):
        with transaction(db.engine) as connection:
            connection.execute(f"SET LOCAL lock_timeout = '{setting}'".encode())
            assert wait_at_most(connection, pieces.SOURCE_PATIENCE) == before
            assert connection.execute("SHOW lock_timeout").fetchone() == (after,)


def test_dropping_a_corpus_gives_up_if_its_documents_are_being_read(
    db: ts.Database, corpus: ts.Corpus, limited: Callable[[str], ts.Database]
) -> None:
    """The drop gets one of its two locks, and its wait for the other lock is limited, too."""
    hasty = limited(LOCK)
    with psycopg.connect(db.url) as reader:
        reader.execute("SELECT FROM textsim.document_1 LIMIT 1")
        with pytest.raises(ts.DatabaseError, match="could not obtain lock"):
            hasty.drop_corpus("c")
        with (
            psycopg.connect(with_option(db.url, LOCK)) as other,
            pytest.raises(psycopg.errors.LockNotAvailable),
        ):
            other.execute("SELECT textsim.drop_corpus('c')")
    assert (len(corpus), corpus.check()) == (1, [])
    hasty.drop_corpus("c")


@pytest.mark.parametrize("setting", ["statement_timeout", "transaction_timeout"])
def test_building_the_index_ignores_time_limits(
    db: ts.Database, corpus: ts.Corpus, limited: Callable[[str], ts.Database], setting: str
) -> None:
    with psycopg.connect(db.url, autocommit=True) as connection:
        if setting == "transaction_timeout" and connection.info.server_version < 170000:
            pytest.skip("transaction_timeout came with PostgreSQL 17")
        connection.execute("DROP INDEX textsim.band_1_bucket")
        hasty = limited(f"{setting}=1s")
        stored = stored_corpus.load(db.engine, "c")
        with psycopg.connect(db.url) as holder:
            holder.execute("LOCK TABLE textsim.band_1 IN ROW EXCLUSIVE MODE")
            thread = threading.Thread(
                target=stored_corpus.build_band_index, args=[hasty.engine, stored], daemon=True
            )
            thread.start()
            wait_until(
                connection,
                b"SELECT FROM pg_stat_activity WHERE datname = current_database() "
                b"AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > '1500 ms'",
            )
            assert thread.is_alive()
        thread.join(PATIENCE_SECONDS)
        built = "SELECT to_regclass('textsim.band_1_bucket') IS NOT NULL"
        assert connection.execute(built).fetchone() == (True,)


@pytest.mark.long
def test_a_host_that_does_not_answer_is_given_up_after_seconds() -> None:
    """The package waits ten seconds; the driver's default is two minutes."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        start = time.monotonic()
        with pytest.raises(ts.DatabaseUnavailable, match="timeout"):
            ts.connect(f"postgresql://nobody@127.0.0.1:{port}/nothing")
        assert time.monotonic() - start < 60
