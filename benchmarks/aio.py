"""Queries of 64 tasks of asyncio beside queries of plain threads.

Set up: one corpus. Measured: 64 clients ask for the matches of stored texts, in turns: plain threads, as
many threads as aio has; plain threads, one for each client; tasks of aio; and tasks that call
textsim.matches on connections of their own. Figures: queries a second, and the latency of a query. The
ratio compares aio with the faster threads of the same round.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from itertools import cycle, islice

import psycopg

from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    fresh_database,
    in_turns,
    median_and_p99,
    options,
    publish,
    table_of,
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


class Queries:
    """The texts of one measured round, and their latencies."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._times: list[float] = []

    def by_threads(self, ask: Callable[[str], object], threads: int) -> Figures:
        """Let threads ask; each takes the next text when it is ready."""
        queue = iter(self._texts)

        def client(_: int) -> None:
            for text in queue:
                start = time.perf_counter()
                ask(text)
                self._times.append((time.perf_counter() - start) * 1000)

        start = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(client, range(threads)))
        return self._figures(time.perf_counter() - start)

    async def by_tasks(self, asks: Iterator[Ask]) -> Figures:
        """Let tasks ask, each by a way of its own."""
        queue = iter(self._texts)

        async def client(ask: Ask) -> None:
            for text in queue:
                start = time.perf_counter()
                await ask(text)
                self._times.append((time.perf_counter() - start) * 1000)

        start = time.perf_counter()
        await asyncio.gather(*(client(ask) for ask in asks))
        return self._figures(time.perf_counter() - start)

    def _figures(self, seconds: float) -> Figures:
        p50, p99 = median_and_p99(self._times)
        return {"rate": len(self._texts) / seconds, "p50_ms": p50, "p99_ms": p99}


def by_aio(url: str, texts: Sequence[str]) -> Figures:
    """Measure the tasks of aio, after as many queries that open the connections."""

    async def main() -> Figures:
        async with aio.connect(url) as db:
            corpus = await db.corpus("news")
            await corpus.query_many(texts)  # so that the words are known, as in the threads
            await asyncio.gather(*(corpus.query(text) for text in texts[:CLIENTS]))
            return await Queries(texts).by_tasks(islice(cycle([corpus.query]), CLIENTS))

    return asyncio.run(main())


def by_sql(url: str, texts: Sequence[str]) -> Figures:
    """Measure tasks that call textsim.matches, each on one of THREADS connections of psycopg."""

    async def main() -> Figures:
        async with AsyncExitStack() as stack:
            asks = [matches(await connect(stack, url)) for _ in range(THREADS)]
            await asyncio.gather(*(ask(texts[0]) for ask in asks))
            return await Queries(texts).by_tasks(iter(asks))

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
        f"{THREADS} threads": lambda _: Queries(texts).by_threads(corpus.query, THREADS),
        f"{CLIENTS} threads": lambda _: Queries(texts).by_threads(corpus.query, CLIENTS),
        f"{CLIENTS} tasks of aio": lambda _: by_aio(bench.db.url, texts),
        f"{THREADS} tasks of textsim.matches": lambda _: by_sql(bench.db.url, texts),
    }
    results = in_turns(sides, rounds)
    few, many, tasks, _ = results.values()
    for ours, *threads in zip(tasks, few, many, strict=True):
        ours["ratio"] = ours["rate"] / max(side["rate"] for side in threads)
    return {
        name: {figure: statistics.median(r[figure] for r in of_side) for figure in of_side[0]}
        for name, of_side in results.items()
    }


def main() -> None:
    """Measure the sides in turns, and print their table."""
    parser = options(__doc__, documents=20_000, words=50, queries=4000, rounds=5)
    given = parser.parse_args()
    with fresh_database() as bench:
        figures = measure(bench, given.documents, given.words, given.queries, given.rounds)
    few, many, tasks, sql = figures.values()
    corner = f"{given.documents:,} documents of {given.words} words"
    publish(
        given.record,
        "aio",
        {"few_threads": few, "many_threads": many, "tasks": tasks, "sql": sql},
        {"aio": table_of(figures, LABELS, corner)},
    )


if __name__ == "__main__":
    main()
