"""Run a worker under a steady load for a long time; nothing may grow or become slower.

    python -m tests.soak --seconds 3600

The test attaches a table of texts on an embedded server with autovacuum at its defaults. One thread
inserts, updates and deletes rows at a steady rate, so that their number stays the same, and another one
searches. The command prints the measurements of each interval. It exits with 1 and the reasons if

- the worker's memory, the connections or the pending changes grow,
- the band rows or their index take twice the space of a fresh copy,
- writes or queries become slower,
- or check finds a problem at the end.
"""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import psutil
import psycopg

import textsim_db as ts
from benchmarks.generate import vocabulary
from tests.support.connections import Connection, value
from tests.support.embedded import arguments_of, served, start_worker

WORDS = 60
VOCABULARY = 20_000
RATE = 50.0
"""Changed rows a second, and as many queries."""
WARM_UP = 0.25
"""Share of the run before memory and latency are judged; caches and statistics fill during it."""
MAX_MEMORY_SLOPE, MEMORY_NOISE = 32.0, 8.0
"""MiB an hour by which the worker may grow after the warm-up; MiB that come and go at any slope."""
MAX_BLOAT = 2.0
MAX_SLOWER, SLACK = 1.5, 10.0
"""Factor and additional milliseconds by which the last third may be slower than the first."""
MAX_LAG_SECONDS = 5.0
MIN_RATE = 0.9
"""Share of the writes and queries that must be reached."""
Durations = list[float]
"""In milliseconds."""


class Texts:
    """Different random texts of a fixed vocabulary, whose words are Zipf-distributed."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        # All threads use the same words, so that the dictionary stops growing.
        self._words = vocabulary(VOCABULARY)
        weights = 1.0 / np.arange(1, VOCABULARY + 1)
        self._cumulative = np.cumsum(weights / weights.sum())

    def draw(self) -> str:
        positions = np.searchsorted(self._cumulative, self._rng.random(WORDS))
        return " ".join(self._words[np.minimum(positions, VOCABULARY - 1)])

    def edit(self, text: str) -> str:
        """Return the text with a tenth of its words replaced."""
        words = text.split()
        for position in self._rng.integers(0, len(words), WORDS // 10):
            words[position] = self.draw().split(" ", 1)[0]
        return " ".join(words)


class Sample(NamedTuple):
    """The measurements of one interval: sizes as ratios to a fresh copy, times in milliseconds."""

    seconds: float
    memory: float
    """MiB of the worker."""
    connections: float
    table_size: float
    index_size: float
    lag: float
    """Seconds that the oldest change waits."""
    writes: float
    write_p50: float
    write_p99: float
    queries: float
    query_p50: float
    query_p99: float


def judge(samples: list[Sample]) -> list[str]:
    """Return the faults that the samples of a run show."""
    steady = [sample for sample in samples if sample.seconds > WARM_UP * samples[-1].seconds]
    third = max(1, len(steady) // 3)
    first, last = steady[:third], steady[-third:]

    def middle(part: list[Sample], name: str) -> float:
        return float(statistics.median(getattr(sample, name) for sample in part))

    hours = [sample.seconds / 3600 for sample in steady]
    slope = float(np.polyfit(hours, [sample.memory for sample in steady], 1)[0])
    is_growing = slope > MAX_MEMORY_SLOPE and slope * (hours[-1] - hours[0]) > MEMORY_NOISE
    faults = [f"the worker's memory grows by {slope:.0f} MiB an hour"] * is_growing
    if max(s.connections for s in last) > max(s.connections for s in first):
        faults.append("connections grow")
    for name in ("table_size", "index_size"):
        worst = max(getattr(sample, name) for sample in samples)
        if worst >= MAX_BLOAT:
            faults.append(f"{name} of the band rows is {worst:.2f} times that of a fresh copy")
    if middle(last, "lag") > MAX_LAG_SECONDS:
        faults.append(f"the worker is {middle(last, 'lag'):.1f} s behind")
    for name in ("write_p50", "write_p99", "query_p50", "query_p99"):
        before, after = middle(first, name), middle(last, name)
        if after > MAX_SLOWER * before + SLACK:
            faults.append(f"{name} grows from {before:.2f} to {after:.2f} ms")
    for name in ("writes", "queries"):
        if (rate := middle(steady, name)) < MIN_RATE * RATE:
            faults.append(f"{rate:.0f} {name} a second were reached, not {RATE:.0f}")
    return faults


def call_steadily(call: Callable[[], object], durations: Durations, stop: threading.Event) -> None:
    due = time.monotonic()
    while not stop.is_set():
        time.sleep(max(0.0, due - time.monotonic()))
        # A delay of up to a second is made up for; the calls of a longer delay are dropped.
        due = max(due + 1 / RATE, time.monotonic() - 1)
        start = time.perf_counter()
        call()
        durations.append((time.perf_counter() - start) * 1000)


def write(url: str, seed: int, durations: Durations, stop: threading.Event) -> None:
    """Insert, update and delete rows, each equally often."""
    rng, texts = random.Random(seed), Texts(seed)
    with psycopg.connect(url, autocommit=True) as connection:
        rows: dict[int, str] = dict(connection.execute("SELECT id, body FROM t").fetchall())
        count = len(rows)

        def change_row() -> None:
            # A row is deleted if the table has too many rows, else inserted, so their number stays.
            if rng.random() < 1 / 3:
                key = rng.choice(list(rows))
                rows[key] = texts.edit(rows[key])
                connection.execute("UPDATE t SET body = %s WHERE id = %s", [rows[key], key])
            elif len(rows) > count:
                key = rng.choice(list(rows))
                del rows[key]
                connection.execute("DELETE FROM t WHERE id = %s", [key])
            else:
                key = max(rows) + 1
                rows[key] = texts.draw()
                connection.execute("INSERT INTO t VALUES (%s, %s)", [key, rows[key]])

        call_steadily(change_row, durations, stop)


def search(url: str, seed: int, durations: Durations, stop: threading.Event) -> None:
    """Search for edited texts of the table."""
    rng, texts = random.Random(seed), Texts(seed)
    with ts.connect(url) as db, psycopg.connect(url) as connection:
        corpus = db.corpus("c")
        stored = [row[0] for row in connection.execute("SELECT body FROM t LIMIT 1000")]
        connection.rollback()
        call_steadily(lambda: corpus.query(texts.edit(rng.choice(stored))), durations, stop)


def bytes_of_fresh_copy(connection: Connection) -> tuple[float, float]:
    """Return the bytes of a band row and of its index entry in a fresh copy."""
    connection.execute(
        "CREATE TABLE fresh AS SELECT * FROM textsim.band_1 ORDER BY bucket;"
        "CREATE INDEX fresh_bucket ON fresh (bucket, document_id)"
    )
    sizes = "SELECT pg_relation_size('fresh')::float8 / n, pg_relation_size('fresh_bucket') / n "
    query = f"{sizes} FROM (SELECT count(*)::float8 FROM fresh) c (n)"
    ((table, index),) = connection.execute(query.encode()).fetchall()
    connection.execute("DROP TABLE fresh")
    return table, index


MEASURED = """
SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::float8,
    pg_relation_size('textsim.band_1') / n, pg_relation_size('textsim.band_1_bucket') / n,
    (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8
    FROM textsim.pending)
FROM (SELECT %s * count(*)::float8 FROM t) c (n)
"""


def soak(seconds: float, documents: int, seed: int) -> list[str]:
    """Run the load for this time, print a line for each interval, and return the faults."""
    interval = max(5.0, min(60.0, seconds / 20))
    with (
        served() as url,
        ts.connect(url) as db,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        corpus = db.create_corpus("c")
        texts = Texts(seed)
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text NOT NULL)")
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            for number in range(documents):
                copy.write_row((number, texts.draw()))
        corpus.attach("t", "id", "body")
        fresh = bytes_of_fresh_copy(connection)
        worker = start_worker(url)
        try:
            times = (seconds, interval, seed)
            faults = judge(measure(url, connection, corpus, worker.pid, fresh, *times))
            if worker.poll() is not None:
                faults.append(f"the worker ended with {worker.returncode}")
            faults += finish(connection, corpus)
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait(60)
    return faults


def measure(
    url: str,
    connection: Connection,
    corpus: ts.Corpus,
    worker: int,
    fresh: tuple[float, float],
    seconds: float,
    interval: float,
    seed: int,
) -> list[Sample]:
    stop = threading.Event()
    samples: list[Sample] = []
    durations: list[Durations] = [[], []]
    print("".join(f"{name:>12}" for name in Sample._fields), flush=True)
    start = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        futures = [
            pool.submit(work, url, seed + number, durations[number], stop)
            for number, work in enumerate((write, search))
        ]
        try:
            while time.monotonic() - start < seconds and not any(f.done() for f in futures):
                time.sleep(interval)
                measured = connection.execute(MEASURED, [corpus.config.bands])
                ((connections, table, index, lag),) = measured.fetchall()
                calls: list[float] = []
                for each in durations:
                    calls += [len(each) / interval, *np.percentile(each or [0.0], (50, 99))]
                    each.clear()
                memory = psutil.Process(worker).memory_info().rss / 2**20
                sizes = (table / fresh[0], index / fresh[1])
                elapsed = time.monotonic() - start
                samples.append(Sample(elapsed, memory, connections, *sizes, lag, *calls))
                print("".join(f"{each:>12.2f}" for each in samples[-1]), flush=True)
        finally:
            stop.set()
        for future in futures:
            future.result()
    return samples


def finish(connection: Connection, corpus: ts.Corpus, table: str = "t") -> list[str]:
    """Wait until the worker has indexed all changes, and return what check and drift find."""
    faults = []
    end = time.monotonic() + 60
    while (status := corpus.status()).pending and time.monotonic() < end:
        time.sleep(0.1)
    if status.pending or status.failed:
        faults.append(f"at the end there are {status.pending} changes, {status.failed} failures")
    faults += [f"check: {problem}" for problem in corpus.check()[:10]]
    faults += [f"differs: {difference}" for difference in list(corpus.drift())[:10]]
    if (rows := value(connection, f"SELECT count(*) FROM {table}")) != len(corpus):
        faults.append(f"the table has {rows} rows, the corpus {len(corpus)} documents")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--documents", type=int, default=20_000)
    arguments = arguments_of(parser)
    faults = soak(arguments.seconds, arguments.documents, arguments.seed)
    for message in faults:
        print(f"FAILED: {message}")
    return 1 if faults else 0
