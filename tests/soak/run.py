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

import psycopg

import textsim_db as ts
from tests.soak.load import Reports, Texts, plain, query, write
from tests.soak.samples import HEADS, Load, Sample, judge, line
from tests.soak.watch import Watch
from tests.support.connections import Connection
from tests.support.embedded import server_folder
from textsim_db.db import embedded_server


def soak(seconds: float, load: Load, seed: int) -> tuple[list[Sample], list[str]]:
    """Run the load for so long; return what was measured and what is wrong."""
    interval = max(5.0, min(60.0, seconds / 20))
    with server_folder() as folder:
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
    reports: Reports = context.Queue()
    stop = context.Event()
    others = [
        context.Process(
            target=target, args=(url, load, interval, seed + i, reports, stop), daemon=True
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
        taken = reports.get(timeout=interval + 60)
        # Where one of them is late, what the next one tells first is of the next interval.
        for sample in waiting:
            if not sample.keys() & taken.keys():
                sample.update(taken)
                break
        else:
            waiting.append(taken)
        if len(waiting[0]) == 4:
            samples.append(watch.sample(interval, waiting.pop(0)))
            print(line(samples[-1]), flush=True)
    stop.set()
    for other in others:
        while other.is_alive():
            while not reports.empty():  # what is not read would keep it from ending
                reports.get()
            other.join(0.1)
    return samples


def finish(connection: Connection, corpus: ts.Corpus) -> list[str]:
    """Wait for the worker, and check everything."""
    wrong = []
    end = time.monotonic() + 60
    while (status := corpus.status()).pending and time.monotonic() < end:
        time.sleep(0.1)
    if status.pending or status.failed:
        wrong.append(f"at the end there are {status.pending} changes, {status.failed} failures")
    wrong += [f"check: {problem}" for problem in corpus.check()[:10]]
    wrong += [f"differs: {difference}" for difference in list(corpus.drift())[:10]]
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
    for message in wrong:
        print(f"FAILED: {message}")
    return 1 if wrong else 0
