"""Rows that logical replication writes into an attached table of a subscriber."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.servers import EMBEDDED_VERSIONS, Server, programs_of, run_server
from tests.support.waiting import wait_until

TABLE = "CREATE TABLE post (id integer PRIMARY KEY, body text)"
FOX = "the quick brown fox jumps over the lazy dog near the river"
TWIN = FOX + " today"
OTHER = "a text about the weather of the coming week"
NEW = "oak table for six people with a few scratches"


@pytest.fixture(scope="module")
def logical_server() -> Iterator[Server]:
    """A server whose databases may replicate to each other."""
    programs = programs_of(EMBEDDED_VERSIONS[-1])
    assert programs is not None
    with tempfile.TemporaryDirectory(prefix="ts-") as folder:
        Path(folder).chmod(0o755)
        with run_server(programs, Path(folder), "wal_level=logical") as url:
            yield Server(url, "logical_")


@contextmanager
def published(server: Server) -> Iterator[Connection]:
    """Lend a connection to a database that publishes the table post."""
    with (
        server.database("") as address,
        psycopg.connect(address, autocommit=True) as publisher,
    ):
        publisher.execute(TABLE)
        publisher.execute("CREATE PUBLICATION posts FOR TABLE post")
        # In one server, a subscription would wait for itself if it created the slot.
        publisher.execute("SELECT pg_create_logical_replication_slot('posts', 'pgoutput')")
        yield publisher


@contextmanager
def subscribed(publisher: Connection, subscriber: Connection) -> Iterator[None]:
    """Replicate the table post while the block runs."""
    conninfo = sql.Literal(publisher.info.dsn)
    subscriber.execute(
        sql.SQL(
            "CREATE SUBSCRIPTION posts CONNECTION {} PUBLICATION posts WITH (create_slot = false)"
        ).format(conninfo)
    )
    try:
        yield
    finally:
        subscriber.execute("DROP SUBSCRIPTION posts")


@pytest.mark.more
def test_replicated_rows_are_neither_indexed_nor_compared(logical_server: Server) -> None:
    """reconcile indexes them and sets aside those that match; with ENABLE ALWAYS the triggers run."""
    with published(logical_server) as publisher, logical_server.database("") as address:
        ts.install(address)
        with ts.connect(address) as db, psycopg.connect(address, autocommit=True) as subscriber:
            subscriber.execute(TABLE)
            corpus = db.create_corpus("posts", shingle="word:1", is_unique=True)
            corpus.attach("post", "id", "body", "inline")
            with subscribed(publisher, subscriber):
                publisher.execute(
                    "INSERT INTO post VALUES (1, %s), (2, %s), (3, %s)", [FOX, TWIN, OTHER]
                )
                wait_until(subscriber, b"SELECT FROM post HAVING count(*) = 3")
                assert len(corpus) == 0
                report = corpus.reconcile()
                assert report.added == 2
                assert [refusal.key for refusal in report.refused] == ["2"]
                assert corpus.check() == []
                _enable_always(subscriber)
                corpus.reconcile()  # rows may have arrived before
                publisher.execute("INSERT INTO post VALUES (4, %s)", [NEW])
                wait_until(subscriber, b"SELECT FROM post WHERE id = 4")
                assert [match.key for match in corpus.query(NEW)] == ["4"]
                publisher.execute("INSERT INTO post VALUES (5, %s)", [NEW])
                wait_until(
                    subscriber,
                    b"SELECT FROM pg_stat_subscription_stats WHERE apply_error_count > 0",
                )
                assert subscriber.execute("SELECT FROM post WHERE id = 5").fetchall() == []
            assert corpus.check() == []


def _enable_always(subscriber: Connection) -> None:
    rows = subscriber.execute(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = 'post'::regclass AND NOT tgisinternal"
    ).fetchall()
    assert rows
    for (name,) in rows:
        statement = sql.SQL("ALTER TABLE post ENABLE ALWAYS TRIGGER {}")
        subscriber.execute(statement.format(sql.Identifier(name)))
