"""A standby answers and takes over; rows of a logical replica are neither indexed nor compared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from psycopg import sql

import textsim_db as ts
from tests.support.commands import NEWS, Textsim
from tests.support.connections import Connection
from tests.support.servers import (
    EMBEDDED_VERSIONS,
    SYSTEM_PROGRAMS,
    Server,
    programs_of,
    run_server,
    run_standby,
)
from tests.support.waiting import wait_for, wait_until

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
    with server.database("") as address, psycopg.connect(address, autocommit=True) as publisher:
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
                insert = "INSERT INTO post VALUES (1, %s), (2, %s), (3, %s)"
                publisher.execute(insert, [FOX, TWIN, OTHER])
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
                failed = b"SELECT FROM pg_stat_subscription_stats WHERE apply_error_count > 0"
                wait_until(subscriber, failed)
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


class Pair(NamedTuple):
    """A primary and its standby."""

    primary: str
    standby: str
    stop: ExitStack
    """Closing it stops the primary."""

    def both(self, wanted: str) -> str:
        """Return an address with the hosts of both, for a session of this kind."""
        hosts = [parse_qs(urlsplit(url).query)["host"][0] for url in (self.primary, self.standby)]
        options = f"host={','.join(hosts)}&port=5432,5432&target_session_attrs={wanted}"
        return f"postgresql://postgres@/postgres?{options}"

    def wait_for_replay(self) -> None:
        """Wait until the standby has all that the primary has written."""
        with psycopg.connect(self.primary) as primary, psycopg.connect(self.standby) as standby:
            row = primary.execute("SELECT pg_current_wal_lsn()").fetchone()
            assert row is not None
            replayed = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            wait_for(lambda: standby.execute(replayed, row).fetchone() == (True,))


@contextmanager
def folder() -> Iterator[Path]:
    """Lend a folder that the user of PostgreSQL can read, with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="ts-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def servers() -> Iterator[Pair]:
    if not SYSTEM_PROGRAMS:
        pytest.skip("the programs of a PostgreSQL are not installed")
    programs = SYSTEM_PROGRAMS[-1]
    with ExitStack() as stack, folder() as first, folder() as second:
        primary = stack.enter_context(run_server(programs, first))
        with run_standby(programs, second, primary) as standby:
            yield Pair(primary, standby, stack)


def fill(db: ts.Database) -> None:
    """Make a tracked corpus of an attached table."""
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id text PRIMARY KEY, body text)")
        connection.cursor().executemany("INSERT INTO article VALUES (%s, %s)", NEWS.items())
    corpus = db.create_corpus("news", threshold=0.5)
    corpus.attach("article", "id", "body")
    corpus.track()
    db.worker().run(until_idle=True)


@pytest.mark.more
def test_a_standby_answers_and_takes_over(servers: Pair, textsim: Textsim) -> None:
    ts.install(servers.primary)
    with ts.connect(servers.primary) as primary:
        fill(primary)
        servers.wait_for_replay()
        expected = primary.corpus("news")
        with ts.connect(servers.both("standby")) as db:
            corpus = db.corpus("news")
            # Everything that only reads gives the same results as on the primary.
            assert corpus.query(NEWS["a"]) == expected.query(NEWS["a"])
            texts = list(NEWS.values())
            assert corpus.query_many(texts) == expected.query_many(texts)
            assert corpus.neighbours("a") == expected.neighbours("a")
            assert list(corpus.pairs()) == list(expected.pairs())
            assert list(corpus.clusters()) == list(expected.clusters())
            # A server counts what it has written itself.
            statuses = [each.status()._replace(written=0) for each in (corpus, expected)]
            assert statuses[0] == statuses[1]
            assert corpus.check() == []
            assert list(corpus.drift()) == []
            assert {m.name for m in db.metrics()} == {m.name for m in primary.metrics()}
            with psycopg.connect(db.url) as connection:
                assert connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,)
                for query in (
                    "SELECT key, similarity FROM textsim.matches('news', %s) ORDER BY key",
                    "SELECT key FROM textsim.members('news') WHERE %s <> '' ORDER BY key",
                ):
                    with psycopg.connect(servers.primary) as other:
                        wanted = other.execute(query, [NEWS["a"]]).fetchall()
                    assert connection.execute(query, [NEWS["a"]]).fetchall() == wanted
            # Everything that writes is refused.
            for write in (
                lambda: corpus.add("e", "another text of some words"),
                lambda: corpus.remove(["a"]),
                lambda: corpus.rebuild(threshold=0.6),
                lambda: db.create_corpus("other"),
                lambda: db.worker().run(until_idle=True),
            ):
                with pytest.raises(ts.DatabaseError, match=r"read-only|a standby in recovery"):
                    write()
        assert "news" in textsim("status", "--database-url", servers.standby).stdout
        told = textsim("worker", "--once", "--database-url", servers.standby, status=2).stderr
        assert "the server is a standby in recovery" in told
        assert "run the worker on the primary" in told
    with ts.connect(servers.both("read-write")) as db:
        corpus = db.corpus("news")
        corpus.add("e", "a text of the old primary")
        servers.wait_for_replay()
        servers.stop.close()
        with psycopg.connect(servers.standby, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
            # The connections of the pool are lost; the client finds the new primary.
            corpus.add("f", "a text of the new primary")
            connection.execute("INSERT INTO article VALUES ('g', 'a row of the new primary')")
        db.worker().run(until_idle=True)
        assert all(key in corpus for key in "aefg")
        assert corpus.check() == []
