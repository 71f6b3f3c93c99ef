"""The commands for tables that stay indexed, on a real server."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

import textsim_db as ts
from tests.support.commands import Textsim, process
from tests.support.connections import Connection, value
from tests.support.sampling import sample
from tests.support.waiting import LOCKS, PATIENCE_SECONDS, wait_for, wait_until
from tests.support.workers import running_worker
from textsim_db.corpus.database import URL_VARIABLE as DATABASE_URL_VARIABLE
from textsim_db.db.addresses import plain_url, sqlalchemy_url
from textsim_db.sync import report_worker

NO_WORKER_BACKENDS = b"""
SELECT WHERE NOT EXISTS (
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'textsim-db worker')
"""


@pytest.fixture(autouse=True)
def article(connection: Connection) -> None:
    """The table that commands attach."""
    connection.execute("CREATE TABLE article (id text PRIMARY KEY, text text)")
    connection.execute("INSERT INTO article VALUES ('a', 'one two three four'), ('b', 'other')")


def records(textsim: Textsim, *args: str, status: int = 0) -> list[dict[str, Any]]:
    result = textsim(*args, "--format", "jsonl", status=status)
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_wrong_usage(textsim: Textsim, connection: Connection) -> None:
    textsim("corpus", "create", "news")
    result = textsim("attach", "news", "article", "--key", "nr", status=2)
    assert result.stderr == (
        'error: table public.article cannot be attached: column "nr" does not exist\n'
    )
    result = textsim("attach", "news", "article", "--mode", "later", status=2)
    assert '"later" is not one of queue, inline' in result.stderr
    result = textsim("worker", "--poll", "0", status=2)
    assert "poll is 0.0; expected seconds above 0, at most 86400" in result.stderr
    textsim("worker", "--poll", "100000", status=2)
    for seconds in ("0", "nan", "inf", "1e9"):
        result = textsim("status", "--watch", seconds, status=2)
        assert "expected seconds above 0, at most 86400" in " ".join(result.stderr.split())
    assert "no table is attached" in textsim("worker", "--once").stderr
    assert "add --create" in textsim("attach", "blog", "article", status=2).stderr


def test_no_corpus_by_mistake(textsim: Textsim, connection: Connection, database_url: str) -> None:
    for arguments, message in [
        (["artcle"], "there is no table 'artcle'"),
        (["article", "--key", "nr"], 'column "nr" does not exist'),
        (["pg_tables"], "pg_tables"),
    ]:
        assert message in textsim("attach", "new", *arguments, "--create", status=2).stderr
        with ts.connect(database_url) as db:
            assert list(db.corpora()) == []
    textsim("corpus", "create", "there")
    textsim("attach", "there", "artcle", "--create", status=2)
    with ts.connect(database_url) as db:
        assert list(db.corpora()) == ["there"]


def test_a_table_that_its_owner_cannot_index(
    textsim: Textsim, connection: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_worker, "REPORT_SECONDS", 0.1)
    role = f"owner_{random.randrange(10**9)}"
    connection.execute(f"CREATE ROLE {role} LOGIN".encode())
    try:
        with ts.connect(database_url) as db:
            db.create_corpus("news")
        connection.execute("SELECT textsim.grant_writer(%s::regrole)", [role])
        connection.execute(
            f"ALTER TABLE article OWNER TO {role}; ALTER TABLE article ENABLE ROW LEVEL SECURITY; "
            "ALTER TABLE article FORCE ROW LEVEL SECURITY".encode()
        )
        address = plain_url(sqlalchemy_url(database_url).set(username=role, password=None))
        message = "table public.article is attached, but its rows are not indexed: row security"
        with ts.connect(address) as theirs, pytest.raises(ts.ConfigurationError, match=message):
            theirs.corpus("news").attach("article", "id", "text")
        textsim("detach", "news", "article")
        command = ["attach", "news", "article", "--database-url", address]
        assert message in textsim(*command, status=2).stderr
        waits = (
            "its changes wait: row security hides rows of it; run the worker as a "
            "superuser, or as a role with BYPASSRLS: its owner does not see them either"
        )
        # The role that asks may see all rows, which says nothing of the role of the workers.
        for arguments in (["status", "news"], ["check", "news"]):
            said = textsim(*arguments, status=1)
            output = " ".join((said.stdout + said.stderr).split())
            assert "row security hides rows of it" in output, arguments
            assert "all is well" not in output
            assert "start more" not in output
            assert "no worker is connected" not in output
        with ts.connect(address) as theirs, ts.connect(database_url) as db:
            for opened in (theirs, db):
                (problem,) = opened.corpus("news").status().problems
                assert waits in problem
                values = {each.name: each.value for each in opened.metrics()}
                assert values["textsim_table_problems"] == 1
        with ts.connect(database_url) as db:
            assert [table.table for table in db.sources()] == ["article"]
            news = db.corpus("news")
            with ts.connect(address) as theirs, running_worker(theirs):
                # A running worker reports what it refuses.
                refused = b"SELECT FROM textsim.worker WHERE faults <> '[]'"
                wait_until(connection, refused)
                (problem,) = news.status().problems
                assert "hides rows of it from this role" in problem
                assert "a superuser, or as a role with BYPASSRLS" in problem
                connection.execute("ALTER TABLE article NO FORCE ROW LEVEL SECURITY")
                wait_until(connection, b"SELECT FROM textsim.worker WHERE faults = '[]'")
                assert news.status().problems == []
                wait_for(lambda: news.status().pending == 0)
                connection.execute("ALTER TABLE article FORCE ROW LEVEL SECURITY")
            connection.execute("INSERT INTO article VALUES ('c', 'more words')")
            assert len(news.status().problems) == 1
            # A role that may read all rows indexes the pending rows.
            assert db.worker().run(until_idle=True).added == 1
            assert len(news) == 3
            assert news.status().problems == []
    finally:
        drop = f"DROP OWNED BY {role}; DROP ROLE {role}"
        connection.execute(f"REASSIGN OWNED BY {role} TO current_user; {drop}".encode())


def test_reconcile(textsim: Textsim, connection: Connection) -> None:
    textsim("attach", "news", "article", "--create")
    assert "nothing differs" in textsim("reconcile", "news", "--check").stderr
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute("DELETE FROM article WHERE id = 'b'")
        connection.execute("INSERT INTO article VALUES ('z', 'behind the back')")
    assert records(textsim, "reconcile", "news", "--check", status=1) == [
        {"key": "z", "kind": "missing"},
        {"key": "b", "kind": "surplus"},
    ]
    assert textsim("reconcile", "news").stderr.startswith("1 added, 1 removed, 1 unchanged; ")
    assert "nothing differs" in textsim("reconcile", "news", "--check").stderr
    connection.execute("CREATE TABLE other (id text PRIMARY KEY, text text)")
    textsim("attach", "news", "other")
    connection.execute("ALTER TABLE other RENAME COLUMN text TO content")
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute("INSERT INTO article VALUES ('y', 'one row more')")
    told = textsim("reconcile", "news", status=2).stderr
    assert 'its column "text" does not exist' in told
    assert "done before the error, and it stays: 1 added, 2 unchanged" in told


@contextmanager
def running_process(database_url: str) -> Iterator[subprocess.Popen[str]]:
    """Run a worker as a process of its own, and kill it if the block has not ended it."""
    with process("worker", url=database_url) as worker:
        try:
            yield worker
        finally:
            worker.kill()


@pytest.mark.more
@pytest.mark.parametrize("number", sample([signal.SIGTERM, signal.SIGINT], 2))
def test_a_worker_ends_cleanly(
    database_url: str, textsim: Textsim, connection: Connection, number: signal.Signals
) -> None:
    textsim("attach", "news", "article", "--create")
    with running_process(database_url) as worker, ts.connect(database_url) as db:
        corpus = db.corpus("news")
        connection.execute("INSERT INTO article VALUES ('c', 'while it runs')")
        wait_for(lambda: "c" in corpus, 60)
        worker.send_signal(number)
        _, told = worker.communicate(timeout=PATIENCE_SECONDS)
        assert worker.returncode == 0, told
        assert "working for postgresql" in told
        assert "from article: 1 added" in told or "from public.article: 1 added" in told
        assert "ended: 1 added" in told
        assert corpus.check() == []
        assert corpus.status().pending == 0


@pytest.mark.more
def test_a_worker_ends_during_a_long_batch(
    database_url: str, textsim: Textsim, connection: Connection
) -> None:
    textsim("attach", "news", "article", "--create")
    with running_process(database_url) as worker:
        # A batch that waits for the dictionary takes the place of a batch that computes for minutes.
        with psycopg.connect(database_url) as blocking:
            blocking.execute("LOCK TABLE textsim.word_1 IN ACCESS EXCLUSIVE MODE")
            connection.execute("INSERT INTO article VALUES ('c', 'words that nobody has used')")
            wait_for(lambda: is_waited_for(connection), 60)
            worker.send_signal(signal.SIGTERM)
            _, told = worker.communicate(timeout=PATIENCE_SECONDS)
            assert worker.returncode == 0, told
            assert "the batch is not finished in time; its statements are cancelled" in told
            wait_until(connection, NO_WORKER_BACKENDS)
            query = "SELECT lease_until <= now(), tries FROM textsim.pending"
            assert connection.execute(query).fetchall() == [(True, 0)]
        assert "1 added" in textsim("worker", "--once").stderr


COMPUTES_FOR_MINUTES = """
import hashlib
import textsim_db
from textsim_db.cli.service_commands import _stopped_by_signals

with textsim_db.connect() as db, _stopped_by_signals(db.worker()):
    print("computes", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


@pytest.mark.more
def test_a_worker_ends_although_its_main_thread_is_in_a_kernel(database_url: str) -> None:
    # The hash takes the place of a kernel: Python calls no handler before it returns.
    environment = os.environ | {DATABASE_URL_VARIABLE: database_url}
    command = [sys.executable, "-c", COMPUTES_FOR_MINUTES]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "computes\n"
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE_SECONDS) == 0
        finally:
            worker.kill()


def is_waited_for(connection: Connection) -> bool:
    query = f"SELECT FROM {LOCKS} WHERE relation = 'textsim.word_1'::regclass AND NOT granted"
    return connection.execute(query).fetchone() is not None


@pytest.mark.more
def test_a_worker_waits_until_a_read_only_database_can_be_written(
    database_url: str, textsim: Textsim, connection: Connection
) -> None:
    textsim("attach", "news", "article", "--create")
    connection.execute("INSERT INTO article VALUES ('c', 'while it cannot be written')")
    name = sql.Identifier(connection.info.dbname)
    set_read_only = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
    connection.execute(set_read_only.format(name, sql.SQL("on")))
    with running_process(database_url) as worker:
        assert worker.stderr is not None
        assert any("trying again" in line for line in iter(worker.stderr.readline, ""))
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(set_read_only.format(name, sql.SQL("off")))
        with ts.connect(database_url) as db:
            wait_for(lambda: "c" in db.corpus("news"))
        worker.send_signal(signal.SIGTERM)
        _, told = worker.communicate(timeout=PATIENCE_SECONDS)
        assert worker.returncode == 0, told


def test_once_fails_while_documents_are_set_aside(textsim: Textsim, connection: Connection) -> None:
    filtered = ("--row-filter", "length(text) / length(id) > 0")
    textsim("attach", "news", "article", "--create", *filtered)
    connection.execute("INSERT INTO article VALUES ('', 'one two three four')")
    for _ in range(2):
        told = textsim("worker", "--once", status=1).stderr
        assert "1 document is set aside; to see why: textsim pending; to try again" in told
    connection.execute("DELETE FROM article WHERE id = ''")
    assert "set aside" not in textsim("worker", "--once").stderr


def test_once_fails_where_a_table_cannot_be_read(textsim: Textsim, connection: Connection) -> None:
    textsim("attach", "news", "article", "--create")
    connection.execute("ALTER TABLE article RENAME COLUMN text TO content")
    told = textsim("worker", "--once", status=1).stderr
    assert 'its column "text" does not exist' in told


def test_once_names_what_another_worker_claimed(textsim: Textsim, connection: Connection) -> None:
    textsim("attach", "news", "article", "--create")
    claim = "SELECT textsim._claim(array(SELECT id FROM textsim.source), true, '{}', 0, 100, 60)"
    for statement, does in (
        ("SELECT textsim._enqueue(corpus_id, id) FROM textsim.source", "compares it with its"),
        ("INSERT INTO article VALUES ('c', 'a row of another worker')", "indexes its changes"),
    ):
        connection.execute(statement.encode())
        connection.execute(claim.encode())
        told = textsim("worker", "--once", status=1).stderr
        told = told.replace("public.", "")
        assert f"table article of corpus news waits: another worker {does}" in told
        connection.execute("UPDATE textsim.pending SET lease_until = NULL")
        assert "waits" not in textsim("worker", "--once").stderr


def test_the_remedy_of_a_missing_trigger_mends_it(textsim: Textsim, connection: Connection) -> None:
    textsim("attach", "news", "article", "--create")
    connection.execute("DROP TRIGGER _textsim_1_insert ON article")
    connection.execute("INSERT INTO article VALUES ('c', 'a row that no trigger has seen')")
    told = textsim("status", status=1).stderr
    assert "does not exist: changes are missed; detach the table and attach it again" in told
    assert "once that is mended: textsim reconcile news" in textsim("check", status=1).stdout
    textsim("detach", "news", "article")
    textsim("attach", "news", "article")
    assert textsim("status").stderr == ""
    textsim("check")


def test_triggers_of_another_database_are_named(textsim: Textsim, connection: Connection) -> None:
    """The triggers of a dumped table run the function that has the id here."""
    textsim("attach", "news", "article", "--create")
    connection.execute("CREATE TABLE restored (LIKE article)")
    query = "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = '_textsim_1_insert'"
    trigger = str(value(connection, query)).replace("ON public.article ", "ON public.restored ")
    connection.execute(trigger.encode())
    named = "table restored, which is not attached, has its trigger _textsim_1_insert"
    assert named in textsim("check", status=1).stdout.replace("public.", "")
    assert named in textsim("status", status=1).stderr.replace("public.", "")
    connection.execute("DROP TRIGGER _textsim_1_insert ON restored")
    textsim("check")


def test_more_workers_are_no_remedy_for_a_fault(textsim: Textsim, connection: Connection) -> None:
    textsim("attach", "news", "article", "--create")
    connection.execute("DROP TRIGGER _textsim_1_delete ON article")
    connection.execute("INSERT INTO article VALUES ('c', 'a row that waits')")
    connection.execute("UPDATE textsim.pending SET created_at = now() - interval '5 minutes'")
    connection.execute("UPDATE textsim.pending SET lease_until = now() + interval '1 minute'")
    assert "start more" not in textsim("status", status=1).stderr


def test_a_merge_shows_what_it_would_take(textsim: Textsim, connection: Connection) -> None:
    connection.execute("INSERT INTO article SELECT n, 'Thanks!' FROM generate_series(1, 4) n")
    connection.execute("INSERT INTO article VALUES ('c', 'one two three four')")
    textsim("corpus", "create", "news", "--recall", "1")
    textsim("attach", "news", "article", "--key", "id")
    told = textsim("merge", "news", status=2).stderr.splitlines()
    assert told[:3] == [
        "4 rows would be merged; of these texts most:",
        "        3  Thanks!",
        "        1  one two three four",
    ]
    assert "give --yes to confirm" in told[3]
    assert connection.execute("SELECT count(*) FROM article").fetchone() == (7,)
    assert "would be merged" not in textsim("merge", "news", "--yes").stderr
    assert connection.execute("SELECT count(*) FROM article").fetchone() == (3,)
