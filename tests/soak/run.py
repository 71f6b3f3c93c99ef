"""Run a worker under a steady load for a long time; nothing may grow or become slower.

    python -m tests.soak --seconds 3600

The test attaches a table of texts on an embedded server with autovacuum at its defaults. Clients
insert, update and delete rows at a steady rate, so that their number stays the same, and others search.
The command prints the measurements of each interval. It exits with 1 and the reasons if

- the worker's memory, the connections or the pending changes grow,
- the band rows or their index take twice the space of a fresh copy,
- writes or queries become slower,
- or check finds a problem at the end.
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
from tests.soak.load import Client, Reports, Texts, plain, query, write
from tests.soak.samples import HEADS, Load, Sample, judge, line
from tests.soak.watch import Watch
from tests.support.connections import Connection
from tests.support.embedded import server_folder
from textsim_db.db import embedded_server


def soak(seconds: float, load: Load, seed: int) -> tuple[list[Sample], list[str]]:
    """Run the load for this time; return the samples and the faults."""
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
                faults = judge(samples, load)
                if worker.poll() is not None:
                    faults.append(f"the worker ended with {worker.returncode}")
                faults += finish(connection, corpus)
            finally:
                worker.send_signal(signal.SIGTERM)
                worker.wait(60)
    return samples, faults


def fill(connection: Connection, corpus: ts.Corpus, load: Load, seed: int) -> None:
    """Create the table and index it."""
    texts = Texts(seed)
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text NOT NULL)")
    with connection.cursor().copy("COPY t FROM STDIN") as copy:
        for number in range(load.documents):
            copy.write_row((number, texts.draw()))
    corpus.attach("t", "id", "body")


def measure(
    watch: Watch, url: str, seconds: float, interval: float, load: Load, seed: int
) -> list[Sample]:
    """Run the load in processes, and print a line for each interval."""
    context = multiprocessing.get_context("spawn")
    reports: Reports = context.Queue()
    stop = context.Event()
    processes = [
        context.Process(
            target=target,
            args=(Client(url, load, interval, seed + i, reports, stop),),
            daemon=True,
        )
        for i, target in enumerate((write, query, plain), start=1)
    ]
    for process in processes:
        process.start()
    samples: list[Sample] = []
    incomplete: list[dict[str, list[float]]] = []
    print("  ".join(HEADS.values()), flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        durations = reports.get(timeout=interval + 60)
        # If a process reports late, the next report of a faster process belongs to the next interval.
        for sample in incomplete:
            if not sample.keys() & durations.keys():
                sample.update(durations)
                break
        else:
            incomplete.append(durations)
        if len(incomplete[0]) == 4:
            samples.append(watch.sample(interval, incomplete.pop(0)))
            print(line(samples[-1]), flush=True)
    stop.set()
    for process in processes:
        while process.is_alive():
            while not reports.empty():  # a process ends only when its reports are read
                reports.get()
            process.join(0.1)
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
    row = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    if row != (len(corpus),):
        faults.append(f"the table has {row} rows, the corpus {len(corpus)} documents")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--writes", type=float, default=50.0, help="changed rows per second")
    parser.add_argument("--queries", type=float, default=50.0, help="queries per second")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    # However the run ends, the server must not outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"--seed {arguments.seed}", flush=True)
    load = Load(arguments.documents, arguments.writes, arguments.queries)
    samples, faults = soak(arguments.seconds, load, arguments.seed)
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
    for message in faults:
        print(f"FAILED: {message}")
    return 1 if faults else 0
