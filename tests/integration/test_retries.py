"""Connections that are lost, time-outs, deadlocks: what is repeated, how, and what is not."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, connection_url, with_option
from tests.support.proxy import Proxy, cut_commit
from tests.support.sampling import sample
from tests.support.sources import expected, settle, stored
from tests.support.threads import apart
from tests.support.waiting import wait_until
from tests.support.workers import working

pytestmark = pytest.mark.one_server

BATCH = 1000
TOTAL = 2500
SLEEP = 0.0005
SLOW = f"""
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_sleep(CASE WHEN NEW.key = 'slow' THEN 20 ELSE {SLEEP} END); RETURN NEW; END $$
"""
CANCEL = """
SELECT pg_cancel_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE %s
    AND state = 'active'
"""


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("write.prepared_batch", "write.bulk_load"):
        monkeypatch.setattr(f"textsim_db.{module}.BATCH_DOCUMENTS", BATCH)


def documents(count: int, version: str = "one") -> list[tuple[str, str]]:
    return [(f"k{i}", f"document number {i} of version {version} w{i % 977}") for i in range(count)]


WAITING = b"""
SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND application_name = 'textsim-db'
"""


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("when", sample(["after", "before"], 2))
def test_commits_that_are_lost(
    db: ts.Database, connection: Connection, proxy: Proxy, when: str
) -> None:
    """Whichever COMMIT it is, everything is stored once and counted once."""
    with ts.connect(proxy.url) as through:
        # The index dropped, three batches, the index built.
        for number in range(1, 6):
            name = f"c{number}"
            db.create_corpus(name, "word:2", num_hashes=16)
            corpus = through.corpus(name)
            proxy.cuts = 0
            proxy.cut = cut_commit(number, when)
            report = corpus.add_many(documents(TOTAL))
            assert proxy.cuts == 1
            assert (report.added, report.given) == (TOTAL, TOTAL)
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


@pytest.mark.long
@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("when", ["before", "after"])
def test_connections_that_are_lost_anywhere(
    db: ts.Database, corpus: ts.Corpus, proxy: Proxy, rng: random.Random, when: str
) -> None:
    with ts.connect(proxy.url) as through:
        same = through.corpus("c")
        for number in range(6):
            start = proxy.sent
            marks = sorted(start + rng.randrange(400_000) for _ in range(3))

            def cut(proxy: Proxy, data: bytes, marks: list[int] = marks) -> str | None:
                if marks and proxy.sent > marks[0]:
                    del marks[0]
                    return when
                return None

            proxy.cut = cut
            report = same.add_many(documents(TOTAL, str(number)))
            assert report.stored == report.given == TOTAL
            assert (report.added, report.replaced) == ((0, TOTAL) if number else (TOTAL, 0))
            assert corpus.check() == []
        assert proxy.cuts > 6
        some = same.remove(key for key, _ in documents(TOTAL))
        assert some == TOTAL
        assert (len(corpus), corpus.check()) == (0, [])


@contextmanager
def terminating(url: str, rng: random.Random) -> Iterator[list[int]]:
    """End all other connections of the database, again and again at random moments."""
    ended: list[int] = []
    stop = threading.Event()

    def run() -> None:
        with psycopg.connect(url, autocommit=True, application_name="terminator") as connection:
            while not stop.wait(rng.uniform(0.02, 0.5)):
                rows = connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND application_name = 'textsim-db'"
                ).fetchall()
                ended.append(len(rows))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield ended
    finally:
        stop.set()
        thread.join()


@pytest.mark.long
@pytest.mark.usefixtures("small_batches")
def test_backends_that_are_terminated(
    db: ts.Database, corpus: ts.Corpus, rng: random.Random
) -> None:
    with terminating(db.url, rng) as ended:
        end = time.monotonic() + 5
        number = 0
        while time.monotonic() < end or number < 2:
            report = corpus.add_many(documents(TOTAL, str(number)))
            assert report.stored == TOTAL
            assert corpus.remove(f"k{i}" for i in range(0, TOTAL, 2)) == TOTAL // 2
            number += 1
    print(f"{len(ended)} times, {sum(ended)} backends, {number} rounds")
    assert sum(ended) > 0
    assert len(corpus) == TOTAL // 2
    assert corpus.check() == []


def _change_rows(connection: Connection, rng: random.Random, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        first = rng.randrange(2000)
        connection.execute(
            "INSERT INTO t SELECT i, 'text ' || i || ' of ' || %s FROM generate_series(%s::int, %s) i "
            "ON CONFLICT (id) DO UPDATE SET body = excluded.body",
            [str(rng.random()), first, first + rng.randrange(500)],
        )
        connection.execute("DELETE FROM t WHERE id %% 7 = %s", [rng.randrange(7)])
        time.sleep(0.02)


@pytest.mark.long
def test_workers_whose_backends_are_terminated(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, rng: random.Random
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    with working(db), ts.connect(db.url) as other, working(other):
        time.sleep(1)  # a worker that is ended before it has done anything says so
        with terminating(db.url, rng) as ended:
            _change_rows(connection, rng, 5)
    assert sum(ended) > 0
    time.sleep(1.1)  # what one worker found held by another comes again after a second
    # Far before what they had in hand would be free, if they had not said so themselves.
    settle(db, corpus)
    assert stored(connection) == expected(connection, "t")


@pytest.mark.parametrize("when", ["before", "after"])
def test_commits_of_a_worker_that_are_lost(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, proxy: Proxy, when: str
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    with ts.connect(proxy.url) as through:
        through.worker().run(until_idle=True)
        before = proxy.commits
        connection.execute(
            "INSERT INTO t SELECT i, 'text number ' || i FROM generate_series(1, 9) i"
        )
        through.worker().run(until_idle=True)
        commits = proxy.commits - before
        assert commits > 3
        for number in range(1, commits + 1):
            connection.execute("UPDATE t SET body = body || %s", [f" new{number}"])
            proxy.cuts, proxy.cut = 0, cut_commit(number, when)
            through.worker().run(until_idle=True)
            assert proxy.cuts == 1
            assert stored(connection) == expected(connection, "t")
            assert corpus.status()[1:4] == (0, None, 0)
    assert corpus.check() == []


@pytest.mark.long
@pytest.mark.parametrize("when", ["before", "after"])
def test_commits_of_reconcile_that_are_lost(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, proxy: Proxy, when: str
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    connection.execute("ALTER TABLE t DISABLE TRIGGER USER")
    connection.execute("INSERT INTO t SELECT i, 'text number ' || i FROM generate_series(1, 99) i")
    with ts.connect(proxy.url) as through:
        same = through.corpus("c")
        before = proxy.commits
        assert same.reconcile().added == 99
        for number in range(1, proxy.commits - before + 1):
            connection.execute("UPDATE t SET body = body || %s", [f" new{number}"])
            proxy.cuts, proxy.cut = 0, cut_commit(number, when)
            report = same.reconcile()
            assert proxy.cuts == 1
            assert report.replaced + report.unchanged >= 99
            assert stored(connection) == expected(connection, "t")
    settle(db, corpus)


@pytest.mark.long
def test_a_server_that_is_gone_for_good(
    corpus: ts.Corpus, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textsim_db.db.retries.MAX_TRIES", 5)
    with ts.connect(proxy.url) as through:
        same = through.corpus("c")
        proxy.cut = lambda proxy, data: "before"
        with pytest.raises(ts.DatabaseUnavailable):
            same.remove(["a"])
        assert proxy.cuts >= 5
        proxy.cut = lambda proxy, data: None
        assert same.remove(["a"]) == 0


def be_slow(connection: Connection, table: str = "textsim.document_1") -> None:
    connection.execute(SLOW.encode())
    connection.execute(
        f"CREATE TRIGGER slow BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION slow()".encode()
    )


def transactions(connection: Connection) -> int:
    """Return how many transactions have written the documents that there are."""
    row = connection.execute("SELECT count(DISTINCT xmin::text) FROM textsim.document").fetchone()
    assert row is not None
    return int(row[0])


def german(data: bytes) -> bytes:
    """Translate as a server with another lc_messages would."""
    for english, other in (
        (
            b"canceling statement due to statement timeout",
            b"Anweisung wegen Zeit\xc3\xbcberschreitung beendet",
        ),
        (b"canceling statement due to user request", b"Anweisung wegen Benutzeranfrage beendet"),
    ):
        data = data.replace(english, other.ljust(len(english), b"."))
    return data


@pytest.mark.parametrize(
    "translate",
    [
        pytest.param(lambda data: data, id="english"),
        pytest.param(german, id="german", marks=pytest.mark.long),
    ],
)
def test_a_batch_that_takes_too_long(
    corpus: ts.Corpus, connection: Connection, proxy: Proxy, translate: Callable[[bytes], bytes]
) -> None:
    """2,000 documents of a millisecond in less than a third of the time: in parts they are stored."""
    be_slow(connection)
    proxy.replies = translate
    with ts.connect(with_option(proxy.url, "statement_timeout=300")) as hasty:
        same = hasty.corpus("c")
        report = same.add_many(documents(2000))
        assert report.added == 2000
        assert 4 <= transactions(connection) <= 64
        assert corpus.check() == []
        # Down to the one that is to blame; what comes before it is stored.
        with pytest.raises(
            ts.DatabaseError, match='document "slow": the database refused: '
        ) as raised:
            same.add_many(
                [(f"{key} more", text) for key, text in documents(100)] + [("slow", "it is")]
            )
        assert isinstance(raised.value.__cause__, pg.QueryCanceled)
        assert len(corpus) == 2100
        assert corpus.check() == []


@pytest.mark.long
def test_a_removal_that_takes_too_long(corpus: ts.Corpus, connection: Connection) -> None:
    corpus.add_many(documents(2000))
    connection.execute(SLOW.replace("NEW", "OLD").encode())
    connection.execute(
        "CREATE TRIGGER slow BEFORE DELETE ON textsim.document_1 "
        "FOR EACH ROW EXECUTE FUNCTION slow()"
    )
    with ts.connect(with_option(connection_url(connection), "statement_timeout=300")) as hasty:
        assert hasty.corpus("c").remove(key for key, _ in documents(2000)) == 2000
    assert len(corpus) == 0


@pytest.mark.long
def test_sessions_that_are_ended_for_their_time(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    """The server ends the session, not the statement; a smaller batch will do all the same."""
    if connection.info.server_version < 170000:
        pytest.skip("this server has no transaction_timeout")
    be_slow(connection)
    with ts.connect(with_option(db.url, "transaction_timeout=300")) as hasty:
        assert hasty.corpus("c").add_many(documents(2000)).added == 2000
    assert 4 <= transactions(connection) <= 64
    assert corpus.check() == []


@pytest.mark.long
def test_a_worker_for_which_a_batch_takes_too_long(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    be_slow(connection)
    connection.execute(
        "INSERT INTO t SELECT i, 'text number ' || i FROM generate_series(1, 2000) i"
    )
    connection.execute("INSERT INTO t VALUES ('slow', 'it takes its time')")
    with ts.connect(with_option(db.url, "statement_timeout=300")) as hasty:
        hasty.worker().run(until_idle=True)
        assert len(corpus) == 2000
        assert 4 <= transactions(connection) <= 64
        while not corpus.failures():
            connection.execute("UPDATE textsim.pending SET lease_until = NULL")
            hasty.worker().run(until_idle=True)
    [failure] = corpus.failures()
    assert (failure.key, failure.error) == (
        "slow",
        "canceling statement due to statement timeout "
        + failure.error.removeprefix("canceling statement due to statement timeout").strip(),
    )


def test_locks_that_are_waited_for_in_vain(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    corpus.add_many(documents(500))
    with (
        psycopg.connect(db.url) as holder,
        ts.connect(with_option(db.url, "lock_timeout=30")) as hasty,
    ):
        holder.execute("SELECT FROM textsim.document WHERE key = 'k77' FOR UPDATE")
        same = hasty.corpus("c")
        with pytest.raises(ts.DatabaseError, match=r'document "k77": .* lock timeout'):
            same.add_many(documents(500, "two"))
        with pytest.raises(ts.DatabaseError, match=r'document "k77": .* lock timeout'):
            same.remove(["k499", "k77", "k78"])
        assert corpus.check() == []


@pytest.mark.parametrize("translate", [lambda data: data, german], ids=["english", "german"])
def test_what_somebody_cancels_is_not_repeated(
    corpus: ts.Corpus, connection: Connection, proxy: Proxy, translate: Callable[[bytes], bytes]
) -> None:
    be_slow(connection)
    proxy.replies = translate
    with ts.connect(with_option(proxy.url, "statement_timeout=60000")) as patient:
        same = patient.corpus("c")
        with apart(
            lambda: same.add_many([*documents(50), ("slow", "it takes its time")])
        ) as failures:
            wait_until(connection, CANCEL.encode(), ["%COPY%"])
    [error] = failures
    assert isinstance(error, ts.DatabaseError)
    assert isinstance(error.__cause__, pg.QueryCanceled)
    assert str(error).startswith("the database refused: ")
    assert (len(corpus), corpus.check()) == (0, [])


def test_a_worker_goes_on_after_a_cancel(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    be_slow(connection)
    with working(db, lease=2.0):
        connection.execute("INSERT INTO t VALUES ('slow', 'it takes its time')")
        wait_until(connection, CANCEL.encode(), ["%COPY%"])
        connection.execute("DROP TRIGGER slow ON textsim.document_1")
        connection.execute("INSERT INTO t VALUES ('b', 'it comes after that')")
        wait_until(connection, b"SELECT FROM textsim.document WHERE key = 'b'")
        assert "slow" not in corpus
        wait_until(connection, b"SELECT FROM textsim.document WHERE key = 'slow'")
    settle(db, corpus)


@pytest.mark.long
def test_an_interrupt_ends_a_load(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, rng: random.Random
) -> None:
    program = (
        "import sys, itertools, textsim_db as ts\n"
        "corpus = ts.connect(sys.argv[1]).corpus('c')\n"
        "print('ready', flush=True)\n"
        "corpus.add_many((f'k{i % 40000}', f'text {i} w{i % 977}') for i in itertools.count())\n"
    )
    for _ in range(2):
        loading = subprocess.Popen(
            [sys.executable, "-c", program, db.url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert loading.stdout is not None
        loading.stdout.readline()
        time.sleep(rng.uniform(0.1, 1.5))
        loading.send_signal(signal.SIGINT)
        _, messages = loading.communicate(timeout=20)
        assert messages.rstrip().endswith("KeyboardInterrupt")
        assert corpus.check() == []
        assert (
            connection.execute(
                "SELECT FROM pg_stat_activity WHERE datname = current_database() "
                "AND state LIKE 'idle in transaction%' AND application_name = 'textsim-db'"
            ).fetchall()
            == []
        )


def test_a_deadlock(db: ts.Database, corpus: ts.Corpus, connection: Connection) -> None:
    """The load has waited for longer, so it is the one that the server ends, and repeats."""
    corpus.add_many([("a", "one"), ("b", "two")])
    before = deadlocks(connection)
    with (
        psycopg.connect(with_option(db.url, "deadlock_timeout=60000")) as other,
        ts.connect(with_option(db.url, "deadlock_timeout=200")) as database,
    ):
        same = database.corpus("c")
        other.execute("SELECT textsim.add('c', 'b', 'two changed')")
        with apart(lambda: same.add_many([("a", "one more"), ("b", "two more")])) as failures:
            wait_until(connection, WAITING)
            other.execute("SELECT textsim.add('c', 'a', 'one changed')")
            other.commit()
    assert failures == []
    end = time.monotonic() + 10
    while deadlocks(connection) == before:  # the statistics come later
        assert time.monotonic() < end
    assert stored(connection) == {"a": "one more", "b": "two more"}
    settle(db, corpus)


def deadlocks(connection: Connection) -> int:
    connection.execute("SELECT pg_stat_clear_snapshot()")
    row = connection.execute(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_serialization_failure(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    """With REPEATABLE READ for a default, a word that another one adds at the same time is one."""
    url = with_option(db.url, "default_transaction_isolation=repeatable\\ read")
    with psycopg.connect(db.url) as other, ts.connect(url) as strict:
        insert = "INSERT INTO textsim.word (hash, word) VALUES (hashtextextended('new', 0), 'new')"
        other.execute(insert.encode())
        same = strict.corpus("c")
        with apart(lambda: same.add("a", "something new")) as failures:
            wait_until(connection, WAITING)
            # What the load will be told, which it does not tell us.
            with (
                psycopg.connect(url) as third,
                apart(lambda: third.execute(f"{insert} ON CONFLICT DO NOTHING".encode())) as told,
            ):
                wait_until(
                    connection, b"SELECT FROM pg_locks WHERE NOT granted HAVING count(*) = 2"
                )
                other.commit()
    assert isinstance(told[0], pg.SerializationFailure)
    assert failures == []
    assert stored(connection) == {"a": "something new"}
    settle(db, corpus)


def test_a_document_that_is_removed_while_it_is_replaced(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    corpus.add("a", "one")
    with psycopg.connect(db.url) as other:
        other.execute("SELECT textsim.remove('c', 'a')")
        reports: list[ts.AddReport] = []
        with apart(lambda: reports.append(corpus.add("a", "two"))) as failures:
            wait_until(connection, WAITING)
            other.commit()
    assert failures == []
    assert (reports[0].added, reports[0].replaced) == (1, 0)
    assert stored(connection) == {"a": "two"}
    settle(db, corpus)


def test_what_a_document_causes_is_not_repeated(corpus: ts.Corpus, connection: Connection) -> None:
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


@pytest.mark.long
def test_a_dictionary_that_takes_too_long(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute(SLOW.replace("NEW.key", "NEW.word").encode())
    connection.execute(
        "CREATE TRIGGER slow BEFORE INSERT ON textsim.word FOR EACH ROW EXECUTE FUNCTION slow()"
    )
    with ts.connect(with_option(db.url, "statement_timeout=300")) as hasty:
        assert hasty.corpus("c").add_many(documents(500)).added == 500
    assert corpus.check() == []
