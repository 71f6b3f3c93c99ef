"""How a corpus grows: load, memory, bytes, queries, all pairs, integrity.

    python -m benchmarks.scale --documents 10000000 [--folder FOLDER] [--record]

The texts are written to files first, a million to each, with a seed for each file and a process for each
core. So a corpus of 1,000,000 documents is the beginning of a corpus of 10,000,000. Each step runs in
its own process, on a server of its own in the folder. Cold means that the server has just started and
none of its files are in memory. 10,000,000 documents of 200 words take 15 GB as texts, and 30 GB in the
database with its log; all are removed at the end. --record adds a size to the recorded sizes.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import psutil

import textsim_db as ts
from benchmarks.corpus_steps import Measured, keep_texts, read_texts, write_documents
from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    Spent,
    identifier,
    in_own_process,
    open_bench,
    options,
    publish,
    recorded,
    table_of,
)
from textsim_db.db import embedded_server
from textsim_db.results import AddReport

NAME = "scale"
FILE_DOCUMENTS = 1_000_000
QUERIES = 2_000
LABELS = [
    "load, s",
    "load, documents/s",
    "load, slowest slice, documents/s",
    "load, client, peak MB",
    "log, bytes a document",
    "stored without the dictionary, bytes a document",
    "one query, warm, median ms",
    "one query, warm, p99 ms",
    "one query, cold, median ms",
    "candidates of a query, mean",
    "query_many, warm, queries/s",
    "matches() in SQL, warm, median ms",
    "all pairs, cold, s",
    "all pairs, warm, s",
    "all pairs, warm, client, peak MB",
    "check, s",
]
"""The rows of the table in the docs; the figures have more."""


@dataclass(frozen=True)
class Run:
    """A corpus of a size, its server, and the files of its texts."""

    folder: Path
    documents: int
    words: int

    @property
    def server(self) -> Path:
        """The folder of the server."""
        return self.folder / "server"

    def start_cold(self) -> None:
        """Start the server again, without its files in the system's cache."""
        embedded_server.stop(self.server)
        for path in self.server.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        embedded_server.start(self.server)


def write_file(run: Run, number: int) -> list[str]:
    """Write one file of documents, and return some of the texts."""
    count = min(FILE_DOCUMENTS, run.documents - number * FILE_DOCUMENTS)
    rows = documents(count, run.words, seed=number + 1)
    path = run.folder / f"documents-{number:03d}.tsv"
    named = ((f"{number}-{key}", text) for key, text in rows)
    return write_documents(path, named, max(1, run.documents // QUERIES))


def write_files(run: Run) -> None:
    """Write the files of documents, and the texts of the queries."""
    numbers = range(-(-run.documents // FILE_DOCUMENTS))
    with get_context("spawn").Pool(os.cpu_count()) as pool:
        chosen = pool.starmap(write_file, [(run, number) for number in numbers])
    keep_texts(run.folder, [text for some in chosen for text in some])


@contextmanager
def opened(run: Run) -> Iterator[Measured]:
    """Lend the corpus, which the first process loads."""
    with open_bench(embedded_server.start(run.server)) as bench:
        measured = Measured(bench, read_texts(run.folder), NAME)
        if NAME in bench.db.corpora():
            measured.corpus = bench.db.corpus(NAME)
        yield measured


def load(run: Run) -> Figures:
    """Load the documents with one add_many()."""
    cores = os.cpu_count() or 1
    with opened(run) as measured:
        bench = measured.bench
        slice_size = max(1, min(FILE_DOCUMENTS, run.documents // 5))
        slices = [(0, 0.0)]
        memory, process = [0.0], psutil.Process()
        log, start = bench.log_position(), time.perf_counter()

        def note(report: AddReport) -> None:
            if report.received // slice_size >= len(slices):
                slices.append((report.received, time.perf_counter() - start))
                memory.append(process.memory_info().rss / 2**20)

        done = measured.load(note)
        rates = [(n - m) / (b - a) for (m, a), (n, b) in pairwise(slices)]
        seconds = done["load_s"]
        return {
            "load, s": seconds,
            "load, documents/s": done["rate"],
            "load, first slice, documents/s": rates[0],
            "load, slowest slice, documents/s": min(rates),
            "load, last slice, documents/s": rates[-1],
            "load, index and vacuum after the documents, s": seconds - slices[-1][1],
            "load, million tokens an hour a core": done["rate"] * run.words / cores * 0.0036,
            "load, processor us a document, client": done["client_us"],
            "load, processor us a document, server": done["server_us"],
            "load, cores busy, %": done["processor_us"] * done["rate"] / cores / 1e4,
            "load, client after the first slice, MB": memory[1],
            "load, client after the last slice, MB": memory[-1],
            "load, client, peak MB": done["peak_mb"],
            "log, bytes a document": (bench.log_position() - log) / run.documents,
            **stored(bench, run.documents),
        }


def stored(bench: Bench, count: int) -> Figures:
    """Return the bytes of a document in the tables and indexes of the corpus."""
    figures = {}
    for what, kind in (("documents", "document"), ("band rows", "band")):
        relation = bench.relation(kind, NAME)
        for label, function in (("", "pg_table_size"), (", indexes", "pg_indexes_size")):
            size = bench.number(f"SELECT {function}('{relation}')")
            figures[f"stored {what}{label}, bytes a document"] = size / count
    total = sum(figures.values())
    return figures | {"stored without the dictionary, bytes a document": total}


def queries(run: Run) -> Figures:
    """Query documents cold and warm, in batches, and in SQL."""
    run.start_cold()
    figures: Figures = {}
    with opened(run) as corpus:
        for state in ("cold", "warm"):
            done = corpus.query()
            figures[f"one query, {state}, median ms"] = done["query_ms"]
            figures[f"one query, {state}, p99 ms"] = done["p99_ms"]
        figures["query_many, warm, queries/s"] = corpus.batches()["batch_rate"]
        done = corpus.sql_match()
        figures["matches() in SQL, warm, median ms"] = done["sql_match_ms"]
        figures["matches() in SQL, warm, p99 ms"] = done["sql_match_p99_ms"]
        figures["candidates of a query, mean"] = corpus.candidates()["candidates"]
    return figures


def pairs_and_check(run: Run) -> Figures:
    """List all pairs, cold and warm, and check all stored rows."""
    run.start_cold()
    figures: Figures = {}
    with opened(run) as measured:
        bench, corpus = measured.bench, measured.corpus
        for state in ("cold", "warm"):
            done = bench.spend(lambda: sum(1 for _ in corpus.pairs()))
            figures[f"all pairs, {state}, pairs"] = done.result
            figures |= costs(f"all pairs, {state}", done)
        done = bench.spend(lambda: len(corpus.check()))
        return figures | {"check, problems": done.result} | costs("check", done)


def costs(what: str, done: Spent) -> Figures:
    """Return what a call has spent."""
    return {
        f"{what}, s": done.seconds,
        f"{what}, processor s, client": done.client,
        f"{what}, processor s, server": done.server,
        f"{what}, client, peak MB": done.peak_mb,
    }


def main() -> None:
    """Run the steps of one size, each in its own process."""
    parser = options(__doc__, documents=1_000_000, words=200)
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results"))
    given = parser.parse_args()
    folder = given.folder.resolve() / f"scale-{given.documents}-{given.words}"
    folder.mkdir(parents=True)
    run = Run(folder, given.documents, given.words)
    figures: Figures = {}
    try:
        write_files(run)
        ts.install(embedded_server.start(run.server))
        for step in (load, queries, pairs_and_check):
            figures |= in_own_process(step, run)
            print(f"{step.__name__} is done", flush=True)
    finally:
        embedded_server.stop(run.server)
        shutil.rmtree(folder)
    named = {identifier(label): value for label, value in figures.items()}
    sizes = recorded("scale") if given.record else {}
    sizes[f"d{run.documents}"] = named
    columns = {f"{n:,}": sizes[f"d{n}"] for n in sorted(int(size[1:]) for size in sizes)}
    labels = {identifier(label): label for label in (LABELS if given.record else figures)}
    table = table_of(columns, labels, f"documents of {run.words} words")
    publish(given.record, "scale", sizes, {"scale": table})


if __name__ == "__main__":
    main()
