"""Attaching and detaching tables: beside writers, with words that wait for ids, and in status()."""

from __future__ import annotations

import random
import re
import threading
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from psycopg import errors as pg, sql

import textsim_db as ts
from tests.support.connections import Connection, with_option
from tests.support.sampling import sample
from tests.support.waiting import wait_until
from textsim_db.settings.named_values import ModeName

in_both_modes = pytest.mark.parametrize("mode", ["queue", "inline"])


def create_table(connection: Connection, rows: int) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
    connection.execute(
        "INSERT INTO t SELECT i, 'a text with the number ' || i FROM generate_series(1, %s) i",
        [rows],
    )


def test_a_table_that_is_not_attached_is_not_detached(
    corpus: ts.Corpus, connection: Connection
) -> None:
    create_table(connection, 1)
    for _ in range(2):
        with pytest.raises(
            ts.ConfigurationError, match='t is not attached to corpus "c"'
        ) as raised:
            corpus.detach("t")
        assert "dropped" not in str(raised.value)
        corpus.attach("t", "id", "body")
        corpus.detach("t")
    corpus.attach("t", "id", "body")
    connection.execute("DROP TABLE t")
    create_table(connection, 1)
    with pytest.raises(ts.ConfigurationError, match=r"with the oids [0-9]+ were dropped"):
        corpus.detach("t")


@in_both_modes
def test_status_counts_indexed_and_pending_documents(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: str
) -> None:
    create_table(connection, 1500)
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', %s)", [mode])
    status = corpus.status()
    assert (status.indexed, status.pending, status.is_estimate) == (0, 1500, True)
    assert status.oldest_pending is not None
    age = connection.execute("SELECT pending_age > '0' FROM textsim.status('c')").fetchone()
    assert age == (True,)
    db.worker().run(until_idle=True)
    assert corpus.status()[:5] == (1500, 0, None, 0, False)
    for number in range(10):
        connection.execute("UPDATE t SET body = %s WHERE id = 1", [f"version {number} of it"])
    is_queue = mode == "queue"
    status = corpus.status()
    assert (status.pending, status.as_text, status.is_estimate) == (is_queue, not is_queue, False)
    connection.execute("UPDATE t SET body = body || ' changed' WHERE id < 100")
    status = corpus.status()
    assert (status.pending, status.as_text) == ((99, 0) if is_queue else (0, 99))
    assert (status.oldest_pending is None) == (corpus.status().lag is None) == (not is_queue)


def test_documents_stored_as_text_are_complete(
    corpus: ts.Corpus, connection: Connection, db: ts.Database
) -> None:
    """Ids of their words save space; a change that could not be indexed at once still waits."""
    create_table(connection, 0)
    corpus.attach("t", "id", "body", "inline")
    words = " ".join(f"word{i}" for i in range(100))
    connection.execute("INSERT INTO t SELECT i, %s || i FROM generate_series(1, 300) i", [words])
    connection.execute("SELECT textsim.add('c', 'by sql', %s)", [words])
    status = corpus.status()
    assert (status.indexed, status.pending, status.as_text) == (301, 0, 301)
    assert 301 * 200 < status.saved_by_ids < 301 * 500
    connection.execute("DELETE FROM t WHERE id = 1")
    connection.execute("UPDATE t SET id = 1000 WHERE id = 2")
    connection.execute(
        "INSERT INTO textsim.pending (kind, corpus_id, source_id, keys) "
        "SELECT 'change', 1, id, ARRAY[repeat('k', 1001)] FROM textsim.source"
    )
    # The log still names the removed documents.
    assert corpus.status().pending == 1
    assert corpus.status().as_text == 302
    connection.execute("DELETE FROM textsim.pending WHERE octet_length(keys[1]) > 1000")
    db.worker().run(until_idle=True)
    assert corpus.status()[1:4] == (0, None, 0)
    assert corpus.status()[6:8] == (0, 0)
    assert corpus.check() == []


def test_status_estimates_a_large_backlog(corpus: ts.Corpus, connection: Connection) -> None:
    """Counting a large table or a log of millions of keys exactly takes too long."""
    create_table(connection, 0)
    corpus.attach("t", "id", "body")
    connection.execute("ALTER TABLE t ADD COLUMN filler text DEFAULT repeat('x', 1500)")
    connection.execute("INSERT INTO t SELECT i, 'a text ' || i FROM generate_series(1, 50000) i")
    connection.execute("ANALYZE t")
    status = corpus.status()
    assert (status.pending, status.is_estimate) == (50_000, True)
    connection.execute("DELETE FROM textsim.pending")
    connection.execute(
        "INSERT INTO textsim.pending (kind, corpus_id, source_id) "
        "SELECT 'compare', corpus_id, id FROM textsim.source"
    )
    status = corpus.status()
    assert status.is_estimate
    assert 40_000 < status.pending < 60_000
    connection.execute("DELETE FROM textsim.pending")
    connection.execute(
        "INSERT INTO textsim.pending (kind, corpus_id, source_id, keys) "
        "SELECT 'change', s.corpus_id, s.id, array(SELECT i::text FROM generate_series(1, 10000) i) "
        "FROM textsim.source s CROSS JOIN generate_series(1, 101)"
    )
    status = corpus.status()
    assert (status.pending, status.is_estimate) == (1_010_000, True)


@pytest.mark.more
@pytest.mark.parametrize("mode", sample(["queue", "inline"], 2))
@pytest.mark.parametrize("writers", sample([3, 6], 2))
def test_attaching_a_partitioned_table_causes_no_deadlock(
    db: ts.Database,
    corpus: ts.Corpus,
    database_url: str,
    mode: str,
    writers: int,
    rng: random.Random,
) -> None:
    """Writers change rows while the table is attached and detached.

    Attaching gives way after half a second. On a busy machine that may take longer than the default of
    deadlock_timeout, so the writers have a longer one.
    """
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE t (id bigint PRIMARY KEY, body text) PARTITION BY RANGE (id)"
        )
        for i in range(4):
            bounds = f"FROM ({i * 100}) TO ({i * 100 + 100})"
            connection.execute(f"CREATE TABLE t_{i} PARTITION OF t FOR VALUES {bounds}".encode())
        connection.execute("INSERT INTO t SELECT i, 'text ' || i FROM generate_series(0, 399) i")
    stop = threading.Event()
    errors: list[str] = []
    seeds = [rng.random() for _ in range(writers)]

    def write(number: int) -> None:
        own_random = random.Random(seeds[number])
        with psycopg.connect(
            with_option(database_url, "deadlock_timeout=20s"), autocommit=True
        ) as own:
            while not stop.is_set():
                # Each writer has its own rows, so that writers do not wait for each other.
                low, high = sorted(own_random.sample(range(66), 2))
                first, last = (own_random.randrange(4) * 100 for _ in range(2))
                try:
                    with own.transaction():
                        for key in (first + low, last + high):
                            table = own_random.choice(["t", f"t_{key // 100}"])
                            own.execute(
                                f"UPDATE {table} SET body = body || 'x' WHERE id = %s".encode(),
                                [key // 6 * 6 % 100 + key // 100 * 100 + number],
                            )
                except pg.DeadlockDetected as error:
                    errors.append(f"writer {number}: {error}")
                except (pg.SerializationFailure, pg.CheckViolation):
                    pass

    threads = [threading.Thread(target=write, args=[i]) for i in range(writers)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            with psycopg.connect(database_url, autocommit=True) as own:
                own.execute("SELECT textsim.attach('c', 't', 'id', 'body', %s)", [mode])
                own.execute("SELECT textsim.detach('c', 't')")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert db.sources() == []


def test_a_data_only_restore_is_refused_with_the_option_it_needs(
    corpus: ts.Corpus, connection: Connection
) -> None:
    """The restore writes rows of the table before the corpus, so the trigger finds no corpus."""
    create_table(connection, 1)
    corpus.attach("t", "id", "body", "inline")
    with connection.transaction(force_rollback=True):
        connection.execute("ALTER TABLE textsim.source DROP CONSTRAINT source_corpus_id_fkey")
        connection.execute("DELETE FROM textsim.corpus")
        with pytest.raises(pg.SerializationFailure, match="corpus 1 no longer exists") as caught:
            connection.execute("INSERT INTO t VALUES (2, 'a row of the dump')")
        assert "--disable-triggers" in str(caught.value.diag.message_hint)


def test_a_table_is_attached_without_a_look_at_the_other_tables(
    database_url: str, connection: Connection
) -> None:
    def attach(table: str) -> int:
        """Attach a table, and return how often a table was checked."""
        connection.execute(f"CREATE TABLE {table} AS SELECT 1 AS id, 'one two' AS body".encode())
        connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY (id)".encode())
        with ts.connect(database_url) as db:
            db.create_corpus(table).attach(table, "id", "body")
        # A session reports its calls when it ends, and then leaves this list.
        sessions = b"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        wait_until(connection, b"SELECT WHERE 1 = (" + sessions + b")")
        calls = "SELECT calls FROM pg_stat_user_functions WHERE funcname = '_table_fault'"
        ((count,),) = connection.execute(calls).fetchall()
        return int(count)

    database = sql.Identifier(str(connection.info.dbname))
    connection.execute(sql.SQL("ALTER DATABASE {} SET track_functions = 'pl'").format(database))
    counts = [0, *(attach(f"table_{i}") for i in range(4))]
    first, *others = (after - before for before, after in pairwise(counts))
    assert first > 0
    assert others == [first] * 3


OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.md"
OWN_LOCKS = """
SELECT mode FROM pg_locks
WHERE relation = 't'::regclass AND pid = pg_backend_pid() AND mode <> 'AccessShareLock'
"""


def lock_of_page(what: str) -> str:
    """Return the strongest lock that the page names for an operation."""
    (lock,) = re.findall(rf"^\| {re.escape(what)} \| `?(\w+)", OPERATIONS.read_text("utf-8"), re.M)
    return str(lock)


@in_both_modes
def test_the_page_names_the_locks_of_a_users_table(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: ModeName
) -> None:
    create_table(connection, 3)
    attach = f"SELECT textsim.attach('c', 't', 'id', 'body', '{mode}'"
    for what, statement in (
        ("`attach`", f"{attach})"),
        ("`attach` with `replace`", f"{attach}, replace => true)"),
        ("`detach`", "SELECT textsim.detach('c', 't')"),
    ):
        with connection.transaction():
            connection.execute(statement.encode())
            locks = {mode for (mode,) in connection.execute(OWN_LOCKS).fetchall()}
        strongest = lock_of_page(what)
        assert locks - {"ShareRowExclusiveLock"} == {strongest} - {"ShareRowExclusiveLock"}
    corpus.attach("t", "id", "body", mode)
    with psycopg.connect(db.url) as other:
        # It lets nobody pass but readers.
        other.execute("LOCK TABLE t IN EXCLUSIVE MODE")
        assert lock_of_page("workers, `index_pending`, `reconcile`, `check`") == "AccessShareLock"
        db.worker().run(until_idle=True)
        connection.execute("CALL textsim.index_pending('c')")
        corpus.reconcile()
        assert corpus.check() == []
    with psycopg.connect(db.url) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        assert lock_of_page("searches, `rebuild`") == "none"
        assert corpus.query("a text with the number 1")
        assert connection.execute(
            "SELECT FROM textsim.matches('c', 'a text with the number 1')"
        ).rowcount
        assert corpus.rebuild(shingle="word:3")


def test_a_replacement_beside_a_long_reader_ends_with_lock_timeout(
    corpus: ts.Corpus, connection: Connection, db: ts.Database
) -> None:
    create_table(connection, 1)
    corpus.attach("t", "id", "body")
    with psycopg.connect(db.url) as reader:
        reader.execute("SELECT FROM t")
        connection.execute("SET lock_timeout = '700ms'")
        with pytest.raises(pg.LockNotAvailable):
            connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', replace => true)")
        reader.execute("SELECT FROM t")  # other readers go first
