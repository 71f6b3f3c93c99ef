"""A cancelled task cancels its statement, returns its connection, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import pytest
from sqlalchemy.pool import QueuePool

import textsim_db as ts
from tests.support import aio as support
from tests.support.connections import Connection, tables_of, value
from tests.support.documents import documents
from tests.support.proxy import COMMIT, Proxy
from tests.support.random_cancels import GROUP, cancel_at_random
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from textsim_db import aio
from textsim_db.aio import threads, threads as streams
from textsim_db.db import retries
from textsim_db.db.cancellation import Cancellation

TEXT = documents(1)[0][1]
Work = Callable[[aio.Corpus], Coroutine[Any, Any, object]]
WORK: dict[str, Work] = {
    "query": lambda corpus: corpus.query(TEXT),
    "add": lambda corpus: corpus.add("k1", "another text for the key of the first document"),
    "add_many": lambda corpus: corpus.add_many(documents(3000, "two")),
    "iterator": lambda corpus: anext(corpus.pairs()),
    "rebuild": lambda corpus: corpus.rebuild(threshold=0.9),
    "check": lambda corpus: corpus.check(),
}


@pytest.fixture
def filled(corpus: ts.Corpus, database_url: str) -> ts.Corpus:
    corpus.add_many(documents(200))
    corpus.add_many((f"copy{i}", "the same five or six words") for i in range(40))
    return corpus


@pytest.mark.parametrize("name", WORK)
def test_a_cancelled_call_ends_its_statement_and_keeps_its_connection(
    filled: ts.Corpus, database_url: str, connection: Connection, name: str
) -> None:
    async def main() -> None:
        async with support.connect(database_url) as db:
            corpus = await db.corpus("c")
            await corpus.query(TEXT)
            with support.locked(connection, "c"):
                task = asyncio.create_task(WORK[name](corpus))
                await support.blocked(connection)
                before = support.backends(connection)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert support.busy(connection) == []
                assert set(before) <= set(support.backends(connection))
            assert [match.key for match in await corpus.query(TEXT, 0.99)] == ["k0"]
            assert await corpus.check() == []
            assert len(support.backends(connection)) <= len(before) + 1

    support.run(main())
    support.wait_until_disconnected(connection)
    names = value(connection, "SELECT array_agg(name) FROM textsim.corpus")
    assert names == ["c"], "a cancelled rebuild leaves no hidden corpus"


async def test_a_call_that_pauses_before_another_attempt_ends_at_once(
    filled: ts.Corpus,
    proxy: Proxy,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retries, "LOST_SECONDS", (3600.0, 3600.0))
    caplog.set_level(logging.INFO, "textsim_db")
    async with support.connect(proxy.url) as db, asyncio.timeout(PATIENCE_SECONDS):
        corpus = await db.corpus("c")
        await corpus.query(TEXT)
        proxy.cut = lambda proxy, data: "before" if COMMIT in data else None
        task = asyncio.create_task(corpus.add("new", "the text of a document that is lost"))
        await asyncio.to_thread(wait_for, lambda: "trying again in" in caplog.text)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        proxy.cut = lambda proxy, data: None
        assert not await corpus.contains("new")
        assert await corpus.check() == []


async def test_a_call_that_waits_for_a_thread_never_begins(
    filled: ts.Corpus, database_url: str, connection: Connection
) -> None:
    async with support.connect(database_url, threads=1) as db:
        corpus = await db.corpus("c")
        with support.locked(connection, "c"):
            first = asyncio.create_task(corpus.query(TEXT))
            await support.blocked(connection)
            second = asyncio.create_task(corpus.remove(["k1"]))
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            assert not first.done()
        assert [match.key for match in await first][:1] == ["k0"]
        assert await corpus.contains("k1")


async def test_a_task_that_is_cancelled_again_still_waits_for_the_end(
    filled: ts.Corpus, database_url: str, connection: Connection
) -> None:
    async with support.connect(database_url) as db:
        corpus = await db.corpus("c")
        with support.locked(connection, "c"):
            task = asyncio.create_task(corpus.query(TEXT))
            await support.blocked(connection)
            while not task.done():
                task.cancel()
                await asyncio.sleep(0)
            assert support.busy(connection) == []


def test_an_event_loop_that_shuts_down_ends_tasks_and_iterators(
    filled: ts.Corpus, database_url: str, connection: Connection
) -> None:
    held: list[object] = []

    async def serve(begun: asyncio.Event) -> None:
        async with support.connect(database_url) as db:
            corpus = await db.corpus("c")
            left = corpus.pairs()
            held.append(left)  # so that only the event loop can close it
            await anext(left)
            while True:
                async for _ in corpus.pairs():
                    begun.set()
                    await asyncio.sleep(0)

    async def main() -> None:
        begun = [asyncio.Event() for _ in range(4)]
        held.extend(asyncio.create_task(serve(event)) for event in begun)
        for event in begun:
            await event.wait()
        assert len(support.busy(connection)) >= 4

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "MOST_ITEMS", 2)
        support.run(main())
    support.wait_until_disconnected(connection)
    assert [task.cancelled() for task in held if isinstance(task, asyncio.Task)] == [True] * 4


async def test_an_iterator_begins_when_another_one_ends(
    filled: ts.Corpus, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "OPEN_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(streams, "MOST_ITEMS", 2)
    async with support.connect(database_url, threads=1) as db:
        corpus = await db.corpus("c")
        async with corpus.pairs() as pairs:
            await anext(pairs)
            with pytest.raises(ts.DatabaseUnavailable, match="1 iterators were open"):
                await anext(corpus.pairs())
        await anext(corpus.pairs())


def test_a_cancelled_attach_and_worker_leave_changes_to_the_next_worker(
    db: ts.Database, database_url: str, connection: Connection
) -> None:
    db.create_corpus("c", shingle="word:2")
    connection.execute(
        "CREATE TABLE article AS SELECT i AS id, 'text number ' || i AS body "
        "FROM generate_series(1, 300) i"
    )
    connection.execute("ALTER TABLE article ADD PRIMARY KEY (id)")

    async def main() -> None:
        async with support.connect(database_url) as aio_db:
            corpus = await aio_db.corpus("c")
            with support.locked(connection, "c"):
                task = asyncio.create_task(corpus.attach("article", "id", "body"))
                await support.blocked(connection)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert support.busy(connection) == []
            worker = await aio_db.worker(lease=1)
            running = asyncio.create_task(worker.run())
            while await corpus.count() < 300:
                await asyncio.sleep(0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert (await corpus.status()).pending == 0
            assert await corpus.check() == []

    support.run(main())
    support.wait_until_disconnected(connection)


THREADS = 16


@pytest.mark.more
@pytest.mark.parametrize("number", [30, pytest.param(300, marks=pytest.mark.long)])
def test_cancelled_tasks_lose_no_connection(
    number: int,
    corpus: ts.Corpus,
    database_url: str,
    connection: Connection,
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running: list[Cancellation] = []

    class NotedCancellation(Cancellation):
        def cancel_until_done(self, call: Future[Any]) -> None:
            running.append(self)
            super().cancel_until_done(call)

    monkeypatch.setattr(threads, "Cancellation", NotedCancellation)
    corpus.add_many(documents(1000))
    corpus.track()
    corpus.update_clusters()

    async def main() -> None:
        async with support.connect(database_url, THREADS) as db:
            shared = await db.corpus("c")
            cancelled = await cancel_at_random(shared, rng, number)
            print(f"{len(running)} of {cancelled.total()} while they ran: {dict(cancelled)}")
            assert len(running) >= number / 2, "most tasks were cancelled before they began"
            assert cancelled.total() >= number
            await support.wait_for(lambda: support.busy(connection) == [])
            pool = db.engine.pool
            assert isinstance(pool, QueuePool)
            await support.wait_for(lambda: pool.checkedout() == 0)
            await support.wait_for(lambda: len(support.backends(connection)) == pool.checkedin())
            texts = [text for _, text in documents(64)]
            found = await asyncio.gather(*(shared.query(text, 0.9) for text in texts))
            assert all(found)

    support.run(main())
    support.wait_until_disconnected(connection)
    assert corpus.check() == []
    table, _ = tables_of(connection, "c")
    keys = connection.execute(f"SELECT key FROM {table} WHERE key LIKE 'group %'".encode())
    groups = Counter(key.split()[1] for (key,) in keys)
    assert set(groups.values()) <= {GROUP}
    corpus.update_clusters()
    assert corpus.check() == []
