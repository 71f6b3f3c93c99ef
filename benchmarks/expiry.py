"""Documents expire while clients write: what the removal costs the writers, and how fast it is.

    python -m benchmarks.expiry [--documents 1000000] [--words 50] [--seconds 60] [--record]

16 clients add documents to a corpus in which all other documents have expired; each client pauses 50 ms
between two writes. They write alone for a while, then beside `CALL textsim.expire`, until it has removed
all that had expired.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg

from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    compare,
    milliseconds,
    rate_and_times,
)

CLIENTS = 16
ADD = b"SELECT textsim.add('c', %s, %s)"
PAUSE_SECONDS = 0.05
"""The pause of a client between two writes: the clients alone leave the processor some time."""
NEW_TEXTS = 100_000
"""The clients write these one after another, and begin again with other keys when all are written."""
LABELS = {
    "rate": "writes/s",
    "p50_ms": "write, median ms",
    "p99_ms": "&emsp;p99 ms",
    "seconds": "seconds",
    "removed_per_s": "documents removed/s",
}


class Writers:
    """Clients that add documents with `textsim.add` until they are stopped."""

    def __init__(self, url: str, words: int) -> None:
        self._url = url
        self._texts = [text for _, text in documents(NEW_TEXTS, words, planted=0, seed=2)]
        self._numbers = iter(range(2**31))

    def run_while(self, work: Callable[[], object]) -> Figures:
        """Let the clients write while a function runs."""
        is_over = threading.Event()
        start = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as threads:
            writing = [threads.submit(self._write, is_over) for _ in range(CLIENTS)]
            try:
                work()
            finally:
                is_over.set()
            times = [taken for client in writing for taken in client.result()]
        seconds = time.perf_counter() - start
        return rate_and_times(times, seconds) | {"seconds": seconds}

    def _write(self, is_over: threading.Event) -> list[float]:
        """Add documents, and return the milliseconds of each call."""
        times = []
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not is_over.is_set():
                number = next(self._numbers)
                values = [f"new {number}", self._texts[number % NEW_TEXTS]]
                times.append(milliseconds(connection.execute, ADD, values))
                is_over.wait(PAUSE_SECONDS)
        return times


def prepare(bench: Bench, count: int, words: int) -> None:
    """Load documents, and let them expire: their time is set back, because the clock cannot be moved."""
    corpus = bench.db.create_corpus("c", keep_for=timedelta(days=30))
    corpus.add_many(documents(count, words))
    table = bench.relation("document", "c")
    past = "now() - make_interval(secs => random())"
    bench.connection.execute(f"UPDATE {table} SET expires_at = {past}".encode())
    bench.connection.execute(f"VACUUM ANALYZE {table}".encode())
    bench.connection.execute("CHECKPOINT")


def measure(bench: Bench, count: int, words: int, seconds: int) -> dict[str, Figures]:
    """Return the figures of the writers alone and beside the expiry."""
    prepare(bench, count, words)
    writers = Writers(bench.db.url, words)
    writers.run_while(lambda: time.sleep(seconds / 4))  # to warm up
    alone = writers.run_while(lambda: time.sleep(seconds))
    beside = writers.run_while(lambda: bench.connection.execute("CALL textsim.expire('c')"))
    beside["removed_per_s"] = count / beside["seconds"]
    table = bench.relation("document", "c")
    assert bench.number(f"SELECT count(*) FROM {table} WHERE expires_at <= now()") == 0
    return {"alone": alone, "beside the expiry": beside}


if __name__ == "__main__":
    corner = f"{{documents:,}} expired documents, {CLIENTS} clients"
    compare("expiry", __doc__, measure, LABELS, corner, documents=1_000_000, words=50, seconds=60)
