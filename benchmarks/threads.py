"""Queries of threads of one process beside queries of two processes.

    python -m benchmarks.threads [--documents 20000] [--words 200] [--rounds 5] [--record]

Set up: one corpus. Measured, in turns: queries a second of one thread, of 4 and of 16 threads of one
process, which take turns at Python's lock, and of two processes with one thread each, which do not.
One side has a pool that keeps five connections, SQLAlchemy's default, and opens others for one query.
A ratio compares a side with the two processes of the same round. If the machine has other work, more
threads get a larger share of it than two processes: then compare the processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection

import sqlalchemy

import textsim_db as ts
from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    by_clients,
    compare,
    in_turns,
    medians,
)

PROCESSES = 2
THREADS = (1, 4, 16)
LABELS = {
    "rate": "queries/s",
    "ratio": "share of the two processes",
    "client_us": "client, processor us a query",
    "server_us": "server, processor us a query",
}


def by_threads(corpus: ts.Corpus, texts: Sequence[str], threads: int) -> float:
    """Return the seconds in which threads ask for all texts."""
    start = time.perf_counter()
    by_clients([corpus.query] * threads, texts)
    return time.perf_counter() - start


def serve(url: str, texts: Sequence[str], pipe: Connection) -> None:
    """Ask for all texts at each request of the pipe, and answer with the processor time."""
    with ts.connect(url) as db:
        corpus = db.corpus("threads")
        by_threads(corpus, texts, 1)
        pipe.send(0.0)
        while pipe.recv():
            before = time.process_time()
            by_threads(corpus, texts, 1)
            pipe.send(time.process_time() - before)


@contextmanager
def small_pool(url: str) -> Iterator[sqlalchemy.Engine]:
    """Lend an engine that keeps five connections, and closes others when they return."""
    address = sqlalchemy.make_url(url).set(drivername="postgresql+psycopg")
    engine = sqlalchemy.create_engine(address, pool_size=5, max_overflow=20)
    yield engine
    engine.dispose()


class Processes:
    """Processes that ask for a share of the texts each."""

    def __init__(self, stack: ExitStack, url: str, texts: Sequence[str]) -> None:
        context = get_context("spawn")
        self._pipes = []
        for number in range(PROCESSES):
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(url, texts[number::PROCESSES], theirs))
            process.start()
            stack.callback(process.join)
            stack.callback(ours.send, False)
            self._pipes.append(ours)
        for pipe in self._pipes:
            pipe.recv()

    def ask(self) -> tuple[float, float]:
        """Let the processes ask; return the seconds, and their processor time."""
        start = time.perf_counter()
        for pipe in self._pipes:
            pipe.send(True)
        client = sum(pipe.recv() for pipe in self._pipes)
        return time.perf_counter() - start, client


def measure(bench: Bench, count: int, words: int, queries: int, rounds: int) -> dict[str, Figures]:
    """Return the figures of each side: medians of the rounds."""
    corpus = bench.db.create_corpus("threads")
    stored = list(documents(count, words))
    corpus.add_many(stored)
    texts = [text for _, text in islice(cycle(stored), queries)]
    corpus.query_many(texts)

    def measured(ask: Callable[[], tuple[float, float]]) -> Figures:
        before = bench.server_seconds()
        seconds, client = ask()
        server = bench.server_seconds() - before
        each = 1e6 / len(texts)
        return {
            "rate": len(texts) / seconds,
            "client_us": client * each,
            "server_us": server * each,
        }

    def measured_in_threads(corpus: ts.Corpus, threads: int, _: int) -> Figures:
        def ask() -> tuple[float, float]:
            before = time.process_time()
            seconds = by_threads(corpus, texts, threads)
            return seconds, time.process_time() - before

        return measured(ask)

    with ExitStack() as stack:
        processes = Processes(stack, bench.db.url, texts)
        by_threads(corpus, texts, max(THREADS))
        sides: dict[str, Callable[[int], Figures]] = {
            f"{PROCESSES} processes": lambda _: measured(processes.ask)
        }
        for threads in THREADS:
            name = "1 thread" if threads == 1 else f"{threads} threads"
            sides[name] = partial(measured_in_threads, corpus, threads)
        engine = stack.enter_context(small_pool(bench.db.url))
        other = stack.enter_context(ts.connect(engine)).corpus("threads")
        by_threads(other, texts, 1)
        name = f"{max(THREADS)} threads, 5 connections kept"
        sides[name] = partial(measured_in_threads, other, max(THREADS))
        results = in_turns(sides, rounds)
    base = results[f"{PROCESSES} processes"]
    for of_side in results.values():
        for ours, theirs in zip(of_side, base, strict=True):
            ours["ratio"] = ours["rate"] / theirs["rate"]
    return {name: medians(of_side) for name, of_side in results.items()}


if __name__ == "__main__":
    corner = "{documents:,} documents of {words} words"
    compare(
        "threads",
        __doc__,
        measure,
        LABELS,
        corner,
        documents=20_000,
        words=200,
        queries=4000,
        rounds=5,
    )
