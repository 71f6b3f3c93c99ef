"""A worker under a steady load for a long time: nothing of it may grow, and nothing get slower.

    python -m tests.soak --seconds 3600

On a server of its own, autovacuum at its defaults, a table of texts is attached; rows are inserted,
updated and deleted at a steady rate, so that their number stays what it is, and queries run beside.
What is measured is printed for each interval. Exits 1, and says why, where the worker's memory
grows, connections or what is pending do, the band rows or their index take twice the room of a
fresh copy, writes or queries get slower, or check finds anything at the end.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.synchronize
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from multiprocessing.queues import Queue
from typing import Any, TypeAlias

import numpy as np
import psutil
import psycopg

import textsim_db as ts
from benchmarks.generate import vocabulary
from tests.support.connections import Connection
from tests.support.embedded import own_folder
from textsim_db.db import embedded_server

WORDS = 60
VOCABULARY = 20_000
WARM_UP = 0.25
"""The share of the time before memory and latency are judged: caches and statistics fill in it."""

MAX_MEMORY_SLOPE = 32.0
"""MiB an hour that the worker may grow by after the warm-up, and"""
MEMORY_NOISE = 8.0
"""so many MiB in all whatever the slope: the allocator's pages come and go."""
MAX_BLOAT = 2.0
MAX_SLOWER = {"p50": (1.3, 0.5), "p99": (1.5, 10.0)}
"""By what factor, and by how many milliseconds on top, the last third may be slower than the first.

The factor is on top of that by which plain statements on a table that is not attached have become
slower meanwhile: others may use the machine.
"""
PLAIN_RATE = 10.0
MAX_LAG_SECONDS = 5.0
MIN_RATE = 0.9
"""The share of the writes and queries asked for that must have been made."""


@dataclass(frozen=True)
class Load:
    """Rows of the table, and what is done to them in a second."""

    documents: int
    writes: float
    queries: float


@dataclass(frozen=True)
class Sample:
    """What was measured in one interval: sizes as ratios to a fresh copy, times in milliseconds."""

    seconds: float
    memory: float
    connections: int
    table_bloat: float
    index_bloat: float
    pending: int
    lag: float
    writes: float
    write_p50: float
    write_p99: float
    queries: float
    query_p50: float
    query_p99: float
    plain_write_p50: float
    plain_write_p99: float
    plain_query_p50: float
    plain_query_p99: float


HEADS = {
    "seconds": "seconds",
    "memory": "worker MiB",
    "connections": "connections",
    "table_bloat": "bands x",
    "index_bloat": "index x",
    "pending": "pending",
    "lag": "lag s",
    "writes": "writes/s",
    "write_p50": "p50 ms",
    "write_p99": "p99 ms",
    "queries": "queries/s",
    "query_p50": "p50 ms",
    "query_p99": "p99 ms",
    "plain_write_p50": "plain write p50",
    "plain_write_p99": "p99 ms",
    "plain_query_p50": "plain read p50",
    "plain_query_p99": "p99 ms",
}


def judge(samples: list[Sample], load: Load) -> list[str]:
    """Return what is wrong with the samples of a run."""
    end = samples[-1].seconds
    steady = [sample for sample in samples if sample.seconds > WARM_UP * end]
    third = max(1, len(steady) // 3)
    first, last = steady[:third], steady[-third:]

    def middle(some: list[Sample], name: str) -> float:
        return float(statistics.median(getattr(sample, name) for sample in some))

    wrong = []
    hours = [sample.seconds / 3600 for sample in steady]
    slope = float(np.polyfit(hours, [sample.memory for sample in steady], 1)[0])
    grown = slope * (hours[-1] - hours[0])
    if slope > MAX_MEMORY_SLOPE and grown > MEMORY_NOISE:
        wrong.append(f"the worker's memory grows by {slope:.0f} MiB an hour")
    if max(s.connections for s in last) > max(s.connections for s in first):
        wrong.append("connections grow")
    for name in ("table_bloat", "index_bloat"):
        worst = max(getattr(sample, name) for sample in samples)
        if worst >= MAX_BLOAT:
            wrong.append(f"{name.replace('_', ' ')} reaches {worst:.2f}")
    if middle(last, "lag") > MAX_LAG_SECONDS:
        wrong.append(f"the worker is {middle(last, 'lag'):.1f} s behind")
    for kind in ("write", "query"):
        for part, (factor, slack) in MAX_SLOWER.items():
            before, after = middle(first, f"{kind}_{part}"), middle(last, f"{kind}_{part}")
            plain = f"plain_{kind}_{part}"
            noise = max(1.0, middle(last, plain) / middle(first, plain))
            if after > factor * noise * before + slack:
                wrong.append(f"{part} of each {kind} grows from {before:.2f} to {after:.2f} ms")
    for name, wanted in (("writes", load.writes), ("queries", load.queries)):
        made = middle(steady, name)
        if made < MIN_RATE * wanted:
            wrong.append(f"{made:.0f} {name}/s were made, not {wanted:.0f}")
    return wrong


Told: TypeAlias = "Queue[dict[str, list[float]]]"
"""Where processes tell how many milliseconds each time of what they did has taken."""


class Texts:
    """Random texts of a fixed vocabulary, Zipf-distributed; each is another one."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        # The same words in all processes, so that the dictionary does not grow for ever.
        self._words = vocabulary(np.random.default_rng(1), VOCABULARY)
        weights = 1.0 / np.arange(1, VOCABULARY + 1)
        self._cumulative = np.cumsum(weights / weights.sum())

    def draw(self) -> str:
        found = np.searchsorted(self._cumulative, self._rng.random(WORDS))
        return " ".join(self._words[np.minimum(found, VOCABULARY - 1)])

    def edit(self, text: str) -> str:
        """Return a text with a tenth of the words replaced."""
        words = text.split()
        for place in self._rng.integers(0, len(words), WORDS // 10):
            words[place] = self.draw().split(" ", 1)[0]
        return " ".join(words)


def steadily(
    rate: float,
    interval: float,
    acts: dict[str, Callable[[], None]],
    told: Told,
    stop: multiprocessing.synchronize.Event,
) -> None:
    """Act at a steady rate, and tell the milliseconds of each time at the end of each interval."""
    taken: dict[str, list[float]] = {name: [] for name in acts}
    due = told_at = time.monotonic()
    while not stop.is_set():
        time.sleep(max(0.0, due - time.monotonic()))
        # What is late is made up for, but for what another second's load would have to wait.
        due = max(due + 1 / rate, time.monotonic() - 1)
        for name, act in acts.items():
            start = time.perf_counter()
            act()
            taken[name].append((time.perf_counter() - start) * 1000)
        if time.monotonic() - told_at >= interval:
            told.put(taken)
            taken, told_at = {name: [] for name in acts}, time.monotonic()


def write(
    url: str,
    load: Load,
    interval: float,
    seed: int,
    told: Told,
    stop: multiprocessing.synchronize.Event,
) -> None:
    """Insert, update and delete rows, as many of the one as of the other."""
    rng, texts = random.Random(seed), Texts(seed)
    with psycopg.connect(url, autocommit=True, application_name="soak-writer") as connection:
        rows: dict[int, str] = dict(connection.execute("SELECT id, body FROM t").fetchall())
        keys = list(rows)
        highest = max(keys)

        def act() -> None:
            nonlocal highest
            place = rng.randrange(len(keys))
            key = keys[place]
            kind = rng.random()
            # Deleted more often where there are too many, so that the number stays.
            if kind < 1 / 3:
                rows[key] = texts.edit(rows[key])
                connection.execute("UPDATE t SET body = %s WHERE id = %s", [rows[key], key])
            elif len(keys) > load.documents:
                keys[place] = keys[-1]
                keys.pop()
                del rows[key]
                connection.execute("DELETE FROM t WHERE id = %s", [key])
            else:
                highest += 1
                keys.append(highest)
                rows[highest] = texts.draw()
                connection.execute("INSERT INTO t VALUES (%s, %s)", [highest, rows[highest]])

        steadily(load.writes, interval, {"write": act}, told, stop)


def query(
    url: str,
    load: Load,
    interval: float,
    seed: int,
    told: Told,
    stop: multiprocessing.synchronize.Event,
) -> None:
    """Look for texts that are near some that there were."""
    texts = Texts(seed)
    with ts.connect(f"{url}&application_name=soak-reader") as db:
        corpus = db.corpus("c")
        with psycopg.connect(url) as connection:
            known = [row[0] for row in connection.execute("SELECT body FROM t LIMIT 1000")]
        rng = random.Random(seed)

        def act() -> None:
            corpus.query(texts.edit(rng.choice(known)))

        steadily(load.queries, interval, {"query": act}, told, stop)


def plain(
    url: str,
    load: Load,
    interval: float,
    seed: int,
    told: Told,
    stop: multiprocessing.synchronize.Event,
) -> None:
    """Write and read a table that is not attached: what that takes is up to the machine."""
    rng, texts = random.Random(seed), Texts(seed)
    with psycopg.connect(url, autocommit=True, application_name="soak-plain") as connection:
        connection.execute("CREATE TABLE plain (id bigint PRIMARY KEY, body text NOT NULL)")
        connection.execute("INSERT INTO plain SELECT i, '' FROM generate_series(0, 999) i")

        def write_one() -> None:
            connection.execute(
                "UPDATE plain SET body = %s WHERE id = %s", [texts.draw(), rng.randrange(1000)]
            )

        def read_some() -> None:
            first = rng.randrange(900)
            connection.execute(
                "SELECT body FROM plain WHERE id BETWEEN %s AND %s", [first, first + 100]
            ).fetchall()

        acts = {"plain_write": write_one, "plain_query": read_some}
        steadily(PLAIN_RATE, interval, acts, told, stop)


class Watch:
    """Measures one worker and its database."""

    def __init__(self, connection: Connection, worker: int, corpus: ts.Corpus) -> None:
        self._connection = connection
        self._worker = psutil.Process(worker)
        self._corpus = corpus
        self._start = time.monotonic()
        self._number = self._value("SELECT id FROM textsim.corpus")
        self._fresh = self.fresh()

    def _value(self, statement: str) -> Any:
        row = self._connection.execute(statement.encode()).fetchone()
        assert row is not None
        return row[0]

    def fresh(self) -> tuple[float, float]:
        """Return the bytes of a band row and of its entry in the index, in a freshly built copy."""
        name = f"textsim.band_{self._number}"
        for statement in (
            "DROP TABLE IF EXISTS fresh",
            f"CREATE TABLE fresh AS SELECT * FROM {name} ORDER BY bucket",
            "CREATE INDEX fresh_bucket ON fresh (bucket, document_id)",
        ):
            self._connection.execute(statement.encode())
        count = self._value("SELECT count(*) FROM fresh")
        sizes = [
            self._value(f"SELECT pg_relation_size('{what}')") for what in ("fresh", "fresh_bucket")
        ]
        self._connection.execute("DROP TABLE fresh")
        return sizes[0] / count, sizes[1] / count

    def bloat(self, fresh: tuple[float, float] | None = None) -> tuple[float, float]:
        """Return the size of the band rows, and of their index, in sizes of a fresh copy."""
        rows = self._value("SELECT count(*) FROM t") * self._corpus.config.bands
        name = f"textsim.band_{self._number}"
        sizes = [
            self._value(f"SELECT pg_relation_size('{what}')") for what in (name, f"{name}_bucket")
        ]
        per_row = fresh or self._fresh
        return sizes[0] / (rows * per_row[0]), sizes[1] / (rows * per_row[1])

    def sample(self, interval: float, taken: dict[str, list[float]]) -> Sample:
        table, index = self.bloat()
        lag = self._value(
            "SELECT coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 "
            "FROM textsim.pending"
        )
        return Sample(
            time.monotonic() - self._start,
            self._worker.memory_info().rss / 2**20,
            self._value(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            ),
            table,
            index,
            self._value("SELECT count(*) FROM textsim.pending"),
            lag,
            len(taken["write"]) / interval,
            *_percentiles(taken["write"]),
            len(taken["query"]) / interval,
            *_percentiles(taken["query"]),
            *_percentiles(taken["plain_write"]),
            *_percentiles(taken["plain_query"]),
        )


def _percentiles(values: list[float]) -> tuple[float, float]:
    return float(np.percentile(values, 50)), float(np.percentile(values, 99))


def soak(seconds: float, load: Load, seed: int) -> tuple[list[Sample], list[str]]:
    """Run the load for so long; return what was measured and what is wrong."""
    interval = max(5.0, min(60.0, seconds / 20))
    with own_folder() as folder:
        url = embedded_server.start(folder)
        ts.install(url)
        with (
            ts.connect(f"{url}&application_name=soak-watch") as db,
            psycopg.connect(url, autocommit=True) as connection,
        ):
            corpus = db.create_corpus("c")
            fill(connection, corpus, load, seed)
            worker = subprocess.Popen(
                [sys.executable, "-m", "textsim_db.cli", "worker", "--quiet"],
                env={**os.environ, "TEXTSIM_DATABASE_URL": f"{url}&application_name=soak-worker"},
            )
            try:
                samples = measure(
                    Watch(connection, worker.pid, corpus), url, seconds, interval, load, seed
                )
                wrong = judge(samples, load)
                if worker.poll() is not None:
                    wrong.append(f"the worker ended with {worker.returncode}")
                wrong += finish(connection, corpus)
            finally:
                worker.send_signal(signal.SIGTERM)
                worker.wait(60)
    return samples, wrong


def fill(connection: Connection, corpus: ts.Corpus, load: Load, seed: int) -> None:
    """Make the table and index it."""
    texts = Texts(seed)
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text NOT NULL)")
    with connection.cursor().copy("COPY t FROM STDIN") as copy:
        for number in range(load.documents):
            copy.write_row((number, texts.draw()))
    corpus.attach("t", "id", "body")


def measure(
    watch: Watch, url: str, seconds: float, interval: float, load: Load, seed: int
) -> list[Sample]:
    """Have others write and query, and print a line for each interval."""
    context = multiprocessing.get_context("spawn")
    told: Told = context.Queue()
    stop = context.Event()
    others = [
        context.Process(
            target=target, args=(url, load, interval, seed + i, told, stop), daemon=True
        )
        for i, target in enumerate((write, query, plain), start=1)
    ]
    for other in others:
        other.start()
    samples: list[Sample] = []
    waiting: list[dict[str, list[float]]] = []
    print("  ".join(HEADS.values()), flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        taken = told.get(timeout=interval + 60)
        # Where one of them is late, what the next one tells first is of the next interval.
        for some in waiting:
            if not some.keys() & taken.keys():
                some.update(taken)
                break
        else:
            waiting.append(taken)
        if len(waiting[0]) == 4:
            samples.append(watch.sample(interval, waiting.pop(0)))
            print(line(samples[-1]), flush=True)
    stop.set()
    for other in others:
        while other.is_alive():
            while not told.empty():  # what is not read would keep it from ending
                told.get()
            other.join(0.1)
    return samples


def line(sample: Sample) -> str:
    """Return a sample as a line of the table."""
    values = [getattr(sample, part.name) for part in fields(Sample)]
    return "  ".join(
        f"{value:>{len(head)}.{0 if isinstance(value, int) or value >= 100 else 2}f}"
        for value, head in zip(values, HEADS.values(), strict=True)
    )


def finish(connection: Connection, corpus: ts.Corpus) -> list[str]:
    """Wait for the worker, and check everything."""
    wrong = []
    end = time.monotonic() + 60
    while (status := corpus.status()).pending and time.monotonic() < end:
        time.sleep(0.1)
    if status.pending or status.failed:
        wrong.append(f"at the end there are {status.pending} changes, {status.failed} failures")
    wrong += [f"check: {problem}" for problem in corpus.check()[:10]]
    wrong += [f"differs: {found}" for found in list(corpus.drift())[:10]]
    row = connection.execute("SELECT count(*) FROM t").fetchone()
    if row != (len(corpus),):
        wrong.append(f"the table has {row} rows, the corpus {len(corpus)} documents")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--writes", type=float, default=50.0, help="rows changed in a second")
    parser.add_argument("--queries", type=float, default=50.0, help="queries in a second")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    # The server must not outlive the run, however it ends.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"--seed {arguments.seed}", flush=True)
    load = Load(arguments.documents, arguments.writes, arguments.queries)
    samples, wrong = soak(arguments.seconds, load, arguments.seed)
    writes, queries = (
        statistics.mean(getattr(sample, name) for sample in samples)
        for name in ("writes", "queries")
    )
    write_p99, query_p99 = (
        statistics.median(getattr(sample, name) for sample in samples)
        for name in ("write_p99", "query_p99")
    )
    print(
        f"{queries:.1f} queries/s (p99 {query_p99:.1f} ms) beside "
        f"{writes:.1f} writes/s (p99 {write_p99:.1f} ms)"
    )
    for what in wrong:
        print(f"FAILED: {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
