"""statement_timeout and lock_timeout of an address or a role limit every call."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

import textsim_db as ts
from tests.support.sampling import sample
from tests.support.waiting import PATIENCE_SECONDS, wait_for, wait_until
from textsim_db.db import stored_corpus
from textsim_db.db.addresses import plain_url, sqlalchemy_url
from textsim_db.db.engine import transaction, wait_at_most
from textsim_db.sync import pieces, read_source

LOCK = {"lock_timeout": "50ms"}
STATEMENT = {"statement_timeout": "400ms"}
TOO_LONG = "canceling statement due to statement timeout"


@pytest.fixture(params=["address", "role"])
def limited(
    request: pytest.FixtureRequest, db: ts.Database
) -> Iterator[Callable[..., ts.Database]]:
    """A function that opens the database with settings in the address or of the role."""
    opened: list[ts.Database] = []
    roles: list[sql.Identifier] = []
    connection = psycopg.connect(db.url, autocommit=True)

    def open_(**settings: str) -> ts.Database:
        url = sqlalchemy_url(db.url)
        if request.param == "address":
            options = " ".join(f"-c {name}={value}" for name, value in settings.items())
            url = url.update_query_dict({"options": options})
        else:
            name = f"{connection.info.dbname}_limited"
            roles.append(sql.Identifier(name))
            # A superuser may use everything.
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN SUPERUSER").format(roles[0]))
            for setting, value in settings.items():
                connection.execute(
                    sql.SQL("ALTER ROLE {} SET {} = {}").format(
                        roles[0], sql.Identifier(setting), sql.Literal(value)
                    )
                )
            url = url.set(username=name)
        opened.append(ts.connect(plain_url(url)))
        return opened[-1]

    yield open_
    for database in opened:
        database.close()
    for role in roles:
        connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
        connection.execute(sql.SQL("DROP ROLE {}").format(role))
    connection.close()


@pytest.fixture
def corpus(db: ts.Database) -> ts.Corpus:
    corpus = db.create_corpus("c")
    corpus.add("a", "some words of a text")
    return corpus


@pytest.mark.parametrize("settings", sample([LOCK, STATEMENT], 2, "more"))
@pytest.mark.parametrize("limited", ["role"], indirect=True)
def test_a_worker_with_time_limits_goes_on_with_other_tables(
    db: ts.Database,
    corpus: ts.Corpus,
    limited: Callable[..., ts.Database],
    settings: dict[str, str],
) -> None:
    with psycopg.connect(db.url, autocommit=True) as connection:
        for name in ("free", "taken"):
            connection.execute(f"CREATE TABLE {name} (id text PRIMARY KEY, body text)".encode())
            corpus.attach(name, "id", "body")
        worker = limited(**settings).worker(lease=0.3)
        with psycopg.connect(db.url) as holder:
            holder.execute("LOCK TABLE taken")
            holder.execute("INSERT INTO taken VALUES ('t', 'a row of the table that is taken')")
            with psycopg.connect(db.url, autocommit=True) as other:
                other.execute(
                    "INSERT INTO textsim.pending (kind, corpus_id, source_id, keys) "
                    "SELECT 'change', corpus_id, id, ARRAY['t'] FROM textsim.source "
                    "WHERE relation = 'taken'::regclass"
                )
            thread = threading.Thread(target=worker.run)
            thread.start()
            try:
                # The worker has given up the locked table, and goes on with the other table.
                wait_for(lambda: "timeout" in worker.unusable.get("public.taken", ""))
                connection.execute("INSERT INTO free VALUES ('f', 'a row of the other table')")
                wait_for(lambda: "f" in corpus)
                assert "t" not in corpus
                holder.commit()
                wait_for(lambda: corpus.status()[:2] == (3, 0))
            finally:
                worker.stop()
                holder.rollback()
                thread.join()
    assert corpus.check() == []
    assert list(corpus.drift()) == []


def test_a_worker_that_cannot_read_its_log_ends_with_an_error(
    db: ts.Database, corpus: ts.Corpus, limited: Callable[..., ts.Database]
) -> None:
    worker = limited(**STATEMENT).worker()
    with psycopg.connect(db.url) as holder:
        holder.execute("LOCK TABLE textsim.pending")
        with pytest.raises(ts.DatabaseError, match=TOO_LONG):
            worker.run()


def test_the_shorter_of_two_lock_timeouts_applies(
    db: ts.Database, corpus: ts.Corpus, limited: Callable[..., ts.Database]
) -> None:
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    hasty = limited(**LOCK)
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


@pytest.mark.parametrize("limited", ["address"], indirect=True)
def test_dropping_a_corpus_gives_up_if_its_documents_are_being_read(
    db: ts.Database, corpus: ts.Corpus, limited: Callable[..., ts.Database]
) -> None:
    """The drop gets one of its two locks, and its wait for the other lock is limited, too."""
    hasty = limited(**LOCK)
    with psycopg.connect(db.url) as reader:
        reader.execute("SELECT FROM textsim.document_1 LIMIT 1")
        with pytest.raises(ts.DatabaseError, match="could not obtain lock"):
            hasty.drop_corpus("c")
        with (
            psycopg.connect(plain_url(hasty.engine.url)) as other,
            pytest.raises(psycopg.errors.LockNotAvailable),
        ):
            other.execute("SELECT textsim.drop_corpus('c')")
    assert (len(corpus), corpus.check()) == (1, [])
    hasty.drop_corpus("c")


@pytest.mark.parametrize("setting", ["statement_timeout", "transaction_timeout"])
@pytest.mark.parametrize("limited", ["address"], indirect=True)
def test_building_the_index_ignores_time_limits(
    db: ts.Database, corpus: ts.Corpus, limited: Callable[..., ts.Database], setting: str
) -> None:
    with psycopg.connect(db.url, autocommit=True) as connection:
        if setting == "transaction_timeout" and connection.info.server_version < 170000:
            pytest.skip("transaction_timeout came with PostgreSQL 17")
        connection.execute("DROP INDEX textsim.band_1_bucket")
        hasty = limited(**{setting: "200ms"})
        stored = stored_corpus.load(hasty.engine, "c")
        with psycopg.connect(db.url) as holder:
            holder.execute("LOCK TABLE textsim.band_1 IN ROW EXCLUSIVE MODE")
            thread = threading.Thread(
                target=stored_corpus.build_band_index, args=[hasty.engine, stored], daemon=True
            )
            thread.start()
            wait_until(
                connection,
                b"SELECT FROM pg_stat_activity WHERE datname = current_database() "
                b"AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > '600 ms'",
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
