"""All calls work behind pgbouncer in transaction mode: each transaction may run in another session."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import QueuePool

import textsim_db as ts
from benchmarks.generate import documents
from tests.support import aio as support, waiting
from tests.support.connections import engine_of
from tests.support.documents import documents as numbered_documents
from tests.support.random_cancels import cancel_at_random
from textsim_db import aio
from textsim_db.db import stored_corpus
from textsim_db.db.addresses import sqlalchemy_url
from textsim_db.db.connections import is_pooled, lend
from textsim_db.db.engine import open_engine
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.settings.named_values import ModeName
from textsim_db.write.temporary_corpora import temporary_name

PROGRAM_VARIABLE = "TEXTSIM_TEST_PGBOUNCER"
KEEPS_PREPARED = (1, 21)
"""First version that supports prepared statements, if max_prepared_statements is set."""


def program() -> str:
    path = os.environ.get(PROGRAM_VARIABLE) or shutil.which(
        "pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
    )
    if path is None:
        pytest.skip(f"needs pgbouncer on the path, or in {PROGRAM_VARIABLE}")
    return path


def version() -> tuple[int, ...]:
    output = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True)
    number = re.search(r"(\d+)\.(\d+)", output.stdout)
    assert number is not None, output.stdout
    return tuple(map(int, number.groups()))


@contextmanager
def run_pgbouncer(address: str, settings: str = "") -> Iterator[str]:
    """Run pgbouncer before a database, on a socket in a temporary folder, and yield its address."""
    url = sqlalchemy_url(address)
    host = str(url.query.get("host") or url.host)
    port = str(url.query.get("port") or url.port or 5432)
    parts = {"host": host, "port": port, "user": url.username, "password": url.password}
    target = " ".join(f"{name}={value}" for name, value in parts.items() if value)
    socket = Path(host) / f".s.PGSQL.{port}"
    owner = socket.stat().st_uid if host.startswith("/") else 65534
    user = owner if os.geteuid() == 0 else None  # pgbouncer refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="ts-"))
    try:
        folder.chmod(0o755)
        if user is not None:
            os.chown(folder, user, -1)
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(
            f"[databases]\n* = {target}\n[pgbouncer]\npool_mode = transaction\nauth_type = any\n"
            f"listen_addr =\nlisten_port = 6432\nunix_socket_dir = {folder}\n"
            f"default_pool_size = 8\nlogfile = {folder}/log\n{settings}\n"
        )
        process = subprocess.Popen(
            [program(), str(configuration)], user=user, stderr=subprocess.DEVNULL
        )
        try:
            wait_for(folder, process)
            host = quote(str(folder), safe="")
            yield f"postgresql://{url.username or ''}@/{url.database}?host={host}&port=6432"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    finally:
        shutil.rmtree(folder)


def is_listening(folder: Path) -> bool:
    """Return whether a pooler listens; the file of its socket is there a moment before."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(folder / ".s.PGSQL.6432")) == 0


def wait_for(folder: Path, process: subprocess.Popen[bytes]) -> None:
    waiting.wait_for(lambda: is_listening(folder) or process.poll() is not None)
    if process.poll() is not None:
        log = folder / "log"
        pytest.fail(f"pgbouncer did not start: {log.read_text() if log.exists() else ''}")


@pytest.fixture
def pooled_url(database_url: str) -> Iterator[str]:
    with run_pgbouncer(database_url) as address:
        yield address


@pytest.fixture(scope="module")
def texts() -> list[tuple[str, str]]:
    return list(documents(6000, words=40, seed=5))


def test_a_pooler_turns_off_prepared_statements(database_url: str, pooled_url: str) -> None:
    for address, expected in ((database_url, False), (pooled_url, True)):
        engine = open_engine(address)
        try:
            with lend(engine) as lent:
                assert is_pooled(lent) is expected
            with engine.connect() as connection:
                driver = connection.connection.driver_connection
                assert driver is not None
                assert (driver.prepare_threshold is None) is expected
        finally:
            engine.dispose()


@pytest.mark.more
def test_loads_searches_and_rebuilds_work_behind_a_pooler(
    pooled_url: str, texts: list[tuple[str, str]]
) -> None:
    with ts.connect(pooled_url) as db:
        corpus = db.create_corpus("c")
        assert corpus.add_many(texts).added == len(texts)
        queries = [text for _, text in texts[:200]]
        one_by_one = [corpus.query(text, 0.6) for text in queries]
        assert all(one_by_one)
        assert corpus.query_many(queries, 0.6) == one_by_one
        pairs = sorted(corpus.pairs(0.6))
        assert pairs
        assert corpus.check() == []
        assert corpus.rebuild(threshold=0.6)
        assert {pair[:2] for pair in corpus.pairs(0.6)} >= {pair[:2] for pair in pairs}
        assert corpus.statistics().documents == len(texts)
        assert corpus.check() == []


@pytest.mark.more
@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_a_worker_indexes_behind_a_pooler(pooled_url: str, mode: ModeName) -> None:
    with (
        ts.connect(pooled_url) as db,
        psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as client,
    ):
        corpus = db.create_corpus("c", threshold=0.5)
        client.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
        corpus.attach("t", "id", "body", mode)
        worker = db.worker()
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            client.execute(
                "INSERT INTO t SELECT i, 'the text with number ' || i || ' of a few hundred texts' "
                "FROM generate_series(1, 300) i"
            )
            client.execute("DELETE FROM t WHERE id % 3 = 0")
            client.execute("UPDATE t SET body = body || ' and more' WHERE id % 3 = 1")
            waiting.wait_for(lambda: not corpus.status().pending and len(corpus) == 200)
        finally:
            worker.stop()
            thread.join()
        assert list(corpus.drift()) == []
        assert corpus.check() == []
        row = client.execute(
            "SELECT key FROM textsim.matches('c', 'the text with number 7 of a few hundred texts')"
        ).fetchone()
        assert row == ("7",) or row == ("8",)


def test_a_temporary_corpus_is_kept_while_its_client_works(pooled_url: str) -> None:
    # A lock keeps the corpus. Another client on the same server connection must not share the lock.
    own_engine, other_engine = open_engine(pooled_url), open_engine(pooled_url)
    try:
        with temporary_name(own_engine) as name:
            stored_corpus.create(own_engine, name, CorpusSettings().complete())
            for _ in range(20):
                with temporary_name(other_engine):
                    assert name in stored_corpus.names(other_engine)
        with temporary_name(other_engine):
            assert stored_corpus.names(other_engine) == []
    finally:
        own_engine.dispose()
        other_engine.dispose()


def test_prepared_statements_work_if_pgbouncer_supports_them(database_url: str) -> None:
    if version() < KEEPS_PREPARED or not psycopg.capabilities.has_send_close_prepared():
        pytest.skip("needs pgbouncer 1.21 and libpq 17")
    with (
        run_pgbouncer(database_url, "max_prepared_statements = 100") as address,
        engine_of(address, connect_args={"prepare_threshold": 1}) as engine,
    ):
        db = ts.connect(engine)
        corpus = db.create_corpus("c")
        corpus.add("a", "some words of a text")
        for _ in range(50):
            assert len(corpus.query("some words of a text")) == 1
        with engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            assert driver.prepare_threshold == 1


@pytest.mark.more
def test_cancelled_tasks_cancel_no_statement_of_others_behind_a_pooler(
    database_url: str, rng: random.Random
) -> None:
    # The pooler passes each request to cancel to a session that other clients share. A task that was not
    # cancelled itself raises its error here.
    with run_pgbouncer(database_url) as address, ts.connect(database_url) as db:
        corpus = db.create_corpus("c")
        corpus.add_many(numbered_documents(1000))
        corpus.track()
        corpus.update_clusters()

        async def main() -> None:
            async with aio.connect(address, threads=8) as pooled:
                shared = await pooled.corpus("c")
                cancelled = await cancel_at_random(shared, rng, 60)
                print(f"cancelled: {dict(cancelled)}")
                pool = pooled.engine.pool
                assert isinstance(pool, QueuePool)
                await support.wait_for(lambda: pool.checkedout() == 0)
                texts = [text for _, text in numbered_documents(64)]
                found = await asyncio.gather(*(shared.query(text, 0.9) for text in texts))
                assert all(found)

        support.run(main())
        corpus.update_clusters()
        assert corpus.check() == []


def test_the_prepare_threshold_of_a_users_engine_is_restored(pooled_url: str) -> None:
    with engine_of(pooled_url, pool_size=1, max_overflow=0) as engine:
        stored_corpus.names(engine)
        with engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            assert driver.prepare_threshold == 5


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "run-the-worker-in-production.md"
ROUNDS = 16
SEARCH = "SELECT key FROM textsim.matches('c', 'some words of a text')"
Between = Callable[[], Awaitable[None]]
"""Called before each round."""


def arguments_of_page(driver: str) -> dict[str, Any]:
    """Return the arguments that the page gives to a driver."""
    (arguments,) = re.findall(rf"^\| {driver} \| `(.*)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return cast(dict[str, Any], eval(arguments, {"uuid4": uuid4}))


async def with_psycopg(address: str, arguments: dict[str, Any], between: Between) -> list[object]:
    connection = await psycopg.AsyncConnection.connect(address, autocommit=True, **arguments)
    results: list[object] = []
    async with connection:
        for _ in range(ROUNDS):
            await between()
            results.append(await (await connection.execute(SEARCH)).fetchall())
    return results


async def with_asyncpg(address: str, arguments: dict[str, Any], between: Between) -> list[object]:
    connection = await asyncpg.connect(address, **arguments)
    results: list[object] = []
    try:
        for _ in range(ROUNDS):
            await between()
            results.append([tuple(row) for row in await connection.fetch(SEARCH)])
    finally:
        await connection.close()
    return results


async def with_sqlalchemy(
    driver: str, address: str, arguments: dict[str, Any], between: Between
) -> list[object]:
    url = sqlalchemy_url(address).set(drivername=f"postgresql+{driver}")
    engine = create_async_engine(url, connect_args=arguments)
    results: list[object] = []
    try:
        for _ in range(ROUNDS):
            await between()
            async with engine.begin() as connection:
                results.append([tuple(row) for row in await connection.exec_driver_sql(SEARCH)])
    finally:
        await engine.dispose()
    return results


@pytest.mark.parametrize(
    ("driver", "run"),
    [
        ("psycopg 3", with_psycopg),
        ("psycopg 3", partial(with_sqlalchemy, "psycopg")),
        ("asyncpg", with_asyncpg),
        ("asyncpg under SQLAlchemy", partial(with_sqlalchemy, "asyncpg")),
    ],
    ids=["psycopg", "psycopg of SQLAlchemy", "asyncpg", "asyncpg of SQLAlchemy"],
)
async def test_an_application_needs_the_arguments_of_the_page(
    pooled_url: str,
    db: ts.Database,
    driver: str,
    run: Callable[[str, dict[str, Any], Between], Awaitable[list[object]]],
) -> None:
    db.create_corpus("c").add("a", "some words of a text")

    async def answers(arguments: dict[str, Any]) -> list[object]:
        """Run the application. From its tenth round on another client holds the session of before."""
        rounds = 0
        connect = psycopg.AsyncConnection.connect(pooled_url, prepare_threshold=None)
        async with await connect as other:

            async def between() -> None:
                nonlocal rounds
                rounds += 1
                if rounds == 10:
                    await other.execute("SELECT 1")  # in a transaction, which stays open

            return await run(pooled_url, arguments, between)

    assert await answers(arguments_of_page(driver)) == [[("a",)]] * ROUNDS
    if version() < KEEPS_PREPARED:
        with pytest.raises(Exception, match="prepared statement"):
            await answers({})
