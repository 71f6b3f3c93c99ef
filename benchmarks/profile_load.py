"""The time of each stage of a load, and how busy the load keeps the machine; embedded server.

    python -m benchmarks.profile_load [--documents 200000]

First each stage runs alone on the same documents: the kernels, looking up words, COPY, the index. Then
the whole load runs, and the processor time of client and server is measured. A load cannot take less
than this time divided by the number of cores.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil

import textsim_db as ts
from benchmarks.generate import documents
from textsim_db.db import stored_corpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import transaction
from textsim_db.db.store import Store
from textsim_db.write import bulk_load, vacuum_after_load, write_batch
from textsim_db.write.prepared_batch import in_batches, prepare

Documents = list[tuple[str, str]]


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the seconds that it took."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def server_seconds(folder: Path) -> float:
    """Return the processor time of a server and of its processes that have ended."""
    postmaster = psutil.Process(int((folder / "postmaster.pid").read_text().split()[0]))
    return sum(sum(each.cpu_times()[:4]) for each in [postmaster, *postmaster.children()])


def client_seconds() -> float:
    """Return the processor time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def disk_rate(folder: Path) -> float:
    """Return the megabytes a second that can be written and synced."""
    block = os.urandom(2**20)
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        start = time.perf_counter()
        for _ in range(512):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return 512 / (time.perf_counter() - start)


class Report:
    """Prints figures for each document."""

    def __init__(self, documents: int) -> None:
        self._documents = documents

    def line(self, what: str, seconds: float) -> None:
        """Print microseconds a document, and documents a second."""
        each = seconds / self._documents
        print(f"{what:<44}{each * 1e6:>8.1f} us{1 / each:>12,.0f} documents/s")


def stages(db: ts.Database, some: Documents, report: Report) -> None:
    """Measure each stage alone."""
    corpus = db.create_corpus("profile stages")
    stored = stored_corpus.load(db.engine, corpus.name)
    batches, seconds = timed(lambda: [prepare(batch, corpus.config) for batch in in_batches(some)])
    report.line("text to buckets, one core", seconds)
    store = Store(db.engine, Dictionary(db.engine), stored)
    look_up = partial(bulk_load.with_word_ids, store=store)
    _, seconds = timed(lambda: [look_up(batch) for batch in batches])
    report.line("word ids, no word known at first", seconds)
    ready, seconds = timed(lambda: [look_up(batch) for batch in batches])
    report.line("word ids, all words known", seconds)
    stored_corpus.drop_band_index(db.engine, stored)

    def write() -> None:
        for batch in ready:
            with transaction(db.engine) as connection:
                write_batch.write(connection.cursor(binary=True), store, batch)

    _, seconds = timed(write)
    report.line("COPY of documents and band rows, durable", seconds)
    _, seconds = timed(lambda: stored_corpus.build_band_index(db.engine, stored))
    report.line("index on the band rows", seconds)
    _, seconds = timed(lambda: vacuum_after_load.settle(store, len(some)))
    report.line("VACUUM and ANALYZE", seconds)
    corpus.drop()


def whole(db: ts.Database, some: Documents, report: Report, folder: Path) -> None:
    """Measure the load."""
    corpus = db.create_corpus("profile load")
    written = log_position(db)
    client, server = client_seconds(), server_seconds(folder)
    _, seconds = timed(lambda: corpus.add_many(some))
    client, server = client_seconds() - client, server_seconds(folder) - server
    report.line("the load as a whole", seconds)
    report.line("    processor time of the client", client)
    report.line("    processor time of the server", server)
    cores = os.cpu_count() or 1
    busy = (client + server) / seconds / cores
    limit = len(some) * cores / (client + server)
    print(
        f"    {cores} cores busy {busy:.0%} of the time; if always busy: {limit:,.0f} documents/s"
    )
    log = log_position(db) - written
    print(
        f"    log written: {log / len(some):,.0f} bytes a document, {log / seconds / 2**20:.0f} MB/s"
    )
    corpus.drop()


def log_position(db: ts.Database) -> int:
    """Return the bytes of write-ahead log since the beginning."""
    with db.engine.connect() as connection:
        statement = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
        return int(connection.exec_driver_sql(statement).scalar_one())


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--words", type=int, default=200)
    given = parser.parse_args()
    some = list(documents(given.documents, given.words))
    with ts.connect() as db:
        for name in ("profile stages", "profile load", "profile warm-up"):
            if name in db.corpora():
                db.drop_corpus(name)
        warm = db.create_corpus("profile warm-up")
        warm.add_many([("a", "some words to load the kernels"), ("b", "")])
        warm.drop()
        report = Report(len(some))
        with db.engine.connect() as connection:
            folder = Path(connection.exec_driver_sql("SHOW data_directory").scalar_one())
        stages(db, some, report)
        whole(db, some, report, folder)
        print(f"disk: {disk_rate(folder):,.0f} MB/s written and synced")


if __name__ == "__main__":
    main()
