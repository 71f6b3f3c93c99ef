"""Tasks that are cancelled at random moments lose no connection, and leave no half of a batch."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from concurrent.futures import Future
from typing import Any

import pytest
from sqlalchemy.pool import QueuePool

import textsim_db as ts
from tests.support import aio as support
from tests.support.connections import Connection, tables_of
from tests.support.documents import documents
from tests.support.random_cancels import GROUP, cancel_at_random
from textsim_db.aio import threads
from textsim_db.db.cancellation import Cancellation

THREADS = 16


@pytest.mark.parametrize("number", [30, pytest.param(1000, marks=pytest.mark.more)])
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
