"""Long statements and sessions state in pg_stat_activity what they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import engine_of
from tests.support.waiting import wait_for
from textsim_db.db import schema

SLOW_SECONDS = 0.2
_RUNNING = """
SELECT application_name, query, extract(epoch FROM clock_timestamp() - query_start)::float8
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'
    AND backend_type = 'client backend'
"""

Durations = dict[tuple[str, str], float]


@contextmanager
def watch_statements(url: str) -> Iterator[Durations]:
    """Record the longest duration of each statement of a database, by application and statement."""
    durations: Durations = {}
    stop = threading.Event()

    def record() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not stop.is_set():
                for name, query, seconds in connection.execute(_RUNNING):
                    durations[name, query] = max(seconds, durations.get((name, query), 0))
                time.sleep(0.0005)

    watcher = threading.Thread(target=record)
    watcher.start()
    try:
        yield durations
    finally:
        stop.set()
        watcher.join()


def descriptions(durations: Durations) -> set[str]:
    """Return the descriptions in the comments of statements."""
    return {
        query.partition("textsim-db: ")[2].partition("*/")[0].strip('"; ') for _, query in durations
    }


@pytest.mark.long
def test_long_statements_begin_with_a_description(db: ts.Database) -> None:
    texts = list(documents(20_000, words=60, seed=4))
    corpus = db.create_corpus("c")
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
        with connection.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
            for row in texts:
                copy.write_row(row)
    with watch_statements(db.url) as durations:
        corpus.add_many(texts)
        list(corpus.pairs(0.5))
        corpus.query_many([text for _, text in texts[:3000]])
        assert corpus.check() == []
        corpus.statistics()
        corpus.measure_recall(sample=200)
        corpus.rebuild(threshold=0.6)
        corpus.attach("t", "id", "body")
        corpus.reconcile()
        corpus.remove([key for key, _ in texts[:5000]])
        corpus.detach("t")
        db.drop_corpus(corpus.name)
    assert {name for name, _ in durations} == {"textsim-db"}
    assert "load documents of corpus 1" in descriptions(durations)
    short = ("BEGIN", "COMMIT", "ROLLBACK")  # these need no description
    slow = {q for (_, q), seconds in durations.items() if seconds > SLOW_SECONDS} - {*short}
    assert slow  # else the test shows nothing
    assert [query for query in slow if "textsim-db: " not in query] == []


def test_a_migration_begins_with_a_description(db: ts.Database) -> None:
    def migration() -> bool:
        return "migration" in descriptions(durations)

    with (
        watch_statements(db.url) as durations,
        psycopg.connect(db.url, application_name="other") as other,
    ):
        other.execute("LOCK TABLE textsim.installed")
        migrating = threading.Thread(target=schema.upgrade, args=(db.engine,))
        migrating.start()
        try:
            wait_for(migration, 60)
        finally:
            other.rollback()
            migrating.join()


def test_an_application_name_of_the_user_is_kept(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = db.create_corpus("c")
    query = "SELECT current_setting('application_name')"
    with engine_of(db.url, connect_args={"application_name": "their application"}) as engine:
        their_db = ts.connect(engine, application_name="not taken")
        their_db.corpus("c").add("a", "some text")
        with engine.connect() as connection:
            assert connection.exec_driver_sql(query).scalar_one() == "their application"
    separator = "&" if "?" in db.url else "?"
    for address, expected in (
        (db.url, "textsim-db load"),
        (f"{db.url}{separator}application_name=mine", "mine"),
    ):
        with ts.connect(address, "textsim-db load") as other, other.engine.connect() as connection:
            assert connection.exec_driver_sql(query).scalar_one() == expected
    assert len(corpus) == 1
    monkeypatch.setenv("PGAPPNAME", "my textsim")
    with ts.connect(db.url, "textsim-db load") as other, other.engine.connect() as connection:
        assert connection.exec_driver_sql(query).scalar_one() == "my textsim"
