"""Queries of 64 tasks of asyncio beside queries of plain threads.

Set up: one corpus. Measured: 64 clients ask for the matches of stored texts, in turns: plain threads, as
many threads as aio has; plain threads, one for each client; tasks of aio; and tasks that call
textsim.matches on connections of their own. Figures: queries a second, and the latency of a query. The
ratio compares aio with the faster threads of the same round.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import cycle, islice, repeat

import psycopg

from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    by_clients,
    compare,
    in_turns,
    medians,
    rate_and_times,
)
from textsim_db import aio
from textsim_db.aio.database import THREADS

CLIENTS = 64
MATCHES = "SELECT key, similarity FROM textsim.matches('news', %s)"
LABELS = {
    "rate": "queries/s",
    "p50_ms": "query, median ms",
    "p99_ms": "&emsp;p99 ms",
    "ratio": "queries/s, of the faster threads",
}

Ask = Callable[[str], Awaitable[object]]


async def by_tasks(asks: Iterator[Ask], texts: Sequence[str]) -> Figures:
    """Let tasks ask, each by a way of its own; each takes the next text when it is ready."""
    queue, times = iter(texts), list[float]()

    async def client(ask: Ask) -> None:
        for text in queue:
            start = time.perf_counter()
            await ask(text)
            times.append((time.perf_counter() - start) * 1000)

    start = time.perf_counter()
    await asyncio.gather(*(client(ask) for ask in asks))
    return rate_and_times(times, time.perf_counter() - start)


def by_aio(url: str, texts: Sequence[str]) -> Figures:
    """Measure the tasks of aio, after as many queries that open the connections."""

    async def main() -> Figures:
        async with aio.connect(url) as db:
            corpus = await db.corpus("news")
            await corpus.query_many(texts)  # so that the words are known, as in the threads
            await asyncio.gather(*(corpus.query(text) for text in texts[:CLIENTS]))
            return await by_tasks(repeat(corpus.query, CLIENTS), texts)

    return asyncio.run(main())


def by_sql(url: str, texts: Sequence[str]) -> Figures:
    """Measure tasks that call textsim.matches, each on one of THREADS connections of psycopg."""

    async def main() -> Figures:
        async with AsyncExitStack() as stack:
            asks = [matches(await connect(stack, url)) for _ in range(THREADS)]
            await asyncio.gather(*(ask(texts[0]) for ask in asks))
            return await by_tasks(iter(asks), texts)

    return asyncio.run(main())


async def connect(stack: AsyncExitStack, url: str) -> psycopg.AsyncConnection:
    """Open a connection that the stack closes."""
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    return await stack.enter_async_context(connection)


def matches(connection: psycopg.AsyncConnection) -> Ask:
    """Return a function that asks for the matches of a text on a connection."""

    async def ask(text: str) -> object:
        cursor = await connection.execute(MATCHES, [text], prepare=True)
        return await cursor.fetchall()

    return ask


def measure(bench: Bench, count: int, words: int, queries: int, rounds: int) -> dict[str, Figures]:
    """Return the figures of each side: medians of the rounds."""
    corpus = bench.db.create_corpus("news")
    stored = list(documents(count, words))
    corpus.add_many(stored)
    texts = [text for _, text in islice(cycle(stored), queries)]
    for text in texts[:CLIENTS]:
        corpus.query(text)
    sides: dict[str, Callable[[int], Figures]] = {
        f"{THREADS} threads": lambda _: by_clients([corpus.query] * THREADS, texts),
        f"{CLIENTS} threads": lambda _: by_clients([corpus.query] * CLIENTS, texts),
        f"{CLIENTS} tasks of aio": lambda _: by_aio(bench.db.url, texts),
        f"{THREADS} tasks of textsim.matches": lambda _: by_sql(bench.db.url, texts),
    }
    results = in_turns(sides, rounds)
    few, many, tasks, _ = results.values()
    for ours, *threads in zip(tasks, few, many, strict=True):
        ours["ratio"] = ours["rate"] / max(side["rate"] for side in threads)
    return {name: medians(of_side) for name, of_side in results.items()}


if __name__ == "__main__":
    corner = "{documents:,} documents of {words} words"
    compare(
        "aio", __doc__, measure, LABELS, corner, documents=20_000, words=50, queries=4000, rounds=5
    )
