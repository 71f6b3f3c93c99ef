"""How a corpus grows: load, memory, bytes, queries, all pairs, integrity; on the embedded server.

    python -m benchmarks.scale --documents 10000000 [--folder FOLDER] [--steps load,queries]

The steps are texts, load, queries, pairs, clusters and check. Each step runs in its own process and
writes its figures to a file of the folder. A step with figures is skipped, so an interrupted run
continues; --again repeats the named steps. At the end the table of all sizes in the folder is printed;
`--documents 0` prints only the table.

The step texts writes files of a million texts, with a seed for each file and a process for each core.
So a corpus of 1,000,000 documents is the beginning of a corpus of 10,000,000. One document in 20 is a
near-copy, as in `generate.py`. Cold means that the server has just started and none of its files are in
memory. 10,000,000 documents of 200 words take 15 GB as texts, and 30 GB in the database with its log;
--remove-texts removes each file of texts when it has been loaded.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import psutil
import psycopg

import textsim_db as ts
from benchmarks.against_side import Server, milliseconds, own_seconds, peak_mb, read_documents
from benchmarks.generate import EXPONENT, vocabulary
from benchmarks.record import Table, add_option, identifier, record, shown
from textsim_db.db import embedded_server

Figures = dict[str, Any]
Connection = psycopg.Connection[Any]
FILE_DOCUMENTS = 1_000_000
CHUNK = 10_000
PLANTED = 0.05
QUANTILES = 2**22
QUERIES = 2_000
WARMING_QUERIES = 20
SQL_QUERIES = 300
WARM_TEXTS = ["some words to compile the kernels", "other words to compile the kernels"]
NAME = "scale"
PACKAGE = str(Path(ts.__file__).parent)
DEFAULT_STEPS = "texts,load,queries,pairs,check"

RELATIONS = """
SELECT 'document_' || id, 'band_' || id FROM textsim.corpus WHERE name = %s
"""
BYTES = """
SELECT pg_table_size(%s::regclass), pg_indexes_size(%s::regclass)
"""
ACTIVE = """
SELECT query FROM pg_stat_activity
WHERE state = 'active' AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


class Run:
    """A corpus of a size, its server, its texts, and the figures of its steps."""

    def __init__(self, folder: Path, documents: int, words: int, remove_texts: bool) -> None:
        self.folder, self.documents, self.words = folder, documents, words
        self.remove_texts = remove_texts
        self.data = folder / f"server-{documents}-{words}"
        self._figures = folder / f"figures-{documents}-{words}.json"

    def figures(self) -> Figures:
        """Return the figures of the finished steps."""
        if not self._figures.exists():
            return {"documents": self.documents, "words": self.words}
        figures: Figures = json.loads(self._figures.read_text())
        return figures

    def add_figures(self, step: str, figures: Figures) -> None:
        """Store the figures of a step."""
        temporary = self._figures.with_suffix(".new")
        temporary.write_text(json.dumps(self.figures() | {step: figures}, indent=1))
        temporary.rename(self._figures)

    def text_files(self) -> list[Path]:
        """Return the files of the texts."""
        counts = [
            min(FILE_DOCUMENTS, self.documents - first)
            for first in range(0, self.documents, FILE_DOCUMENTS)
        ]
        return [
            self.folder / f"texts-{number}-{count}-{self.words}.tsv"
            for number, count in enumerate(counts)
        ]

    def documents_of_files(self, remove: bool) -> Iterator[tuple[str, str]]:
        """Yield the documents; with remove, remove each file after its last document."""
        for path in self.text_files():
            yield from read_documents(path)
            if remove:
                path.unlink()

    def sample_file(self) -> Path:
        """Return the file of the texts of the queries."""
        return self.folder / f"queries-{self.documents}-{self.words}.json"

    def draw_texts(self, count: int) -> list[str]:
        """Return the texts of random documents."""
        generator = random.Random(1)
        files = self.text_files()
        texts: list[str] = []
        while len(texts) < count:
            with generator.choice(files).open("rb") as file:
                file.seek(generator.randrange(os.fstat(file.fileno()).st_size))
                file.readline()  # the end of a line
                if line := file.readline():
                    texts.append(line.decode().rstrip("\n").partition("\t")[2])
        return texts


def write_text_file(path: Path, number: int, count: int, words: int) -> float:
    """Write one file of documents and return the processor seconds."""
    start = own_seconds()
    rng = np.random.default_rng([1, number])
    all_words = vocabulary()
    weights = np.cumsum(1.0 / np.arange(1, len(all_words) + 1) ** EXPONENT)
    # A table of the word at each of four million quantiles is faster than a search.
    quantiles = (np.arange(QUANTILES) + 0.5) / QUANTILES * weights[-1]
    word_at = np.searchsorted(weights, quantiles).astype(np.int32)
    temporary = path.with_suffix(".new")
    with temporary.open("w", encoding="utf-8") as file:
        for first in range(0, count, CHUNK):
            size = min(CHUNK, count - first)
            numbers = word_at[rng.integers(0, QUANTILES, (size, words), np.int32)]
            for i in np.flatnonzero(rng.random(size) < PLANTED)[1:]:
                copy = numbers[rng.integers(0, i)].copy()
                edited = np.flatnonzero(rng.random(words) < rng.uniform(0, 0.2))
                copy[edited] = word_at[rng.integers(0, QUANTILES, len(edited))]
                numbers[i] = copy
            file.writelines(
                f"doc-{number * FILE_DOCUMENTS + first + i:08d}\t{' '.join(row)}\n"
                for i, row in enumerate(all_words[numbers].tolist())
            )
    temporary.rename(path)
    return own_seconds() - start


def make_texts(run: Run) -> Figures:
    """Write the missing files of texts."""
    start = time.perf_counter()
    missing = [
        (path, number, min(FILE_DOCUMENTS, run.documents - number * FILE_DOCUMENTS), run.words)
        for number, path in enumerate(run.text_files())
        if not path.exists()
    ]
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        processor = sum(pool.starmap(write_text_file, missing))
    written = sum(count for _, _, count, _ in missing)
    if not run.sample_file().exists():
        run.sample_file().write_text(json.dumps(run.draw_texts(QUERIES + WARMING_QUERIES)))
    return {
        "written": written,
        "seconds": time.perf_counter() - start,
        "processor_us": processor * 1e6 / max(1, written),
        "bytes": sum(path.stat().st_size for path in run.text_files()) / run.documents,
    }


def load(run: Run) -> Figures:
    """Load the documents with one add_many()."""
    if not all(path.exists() for path in run.text_files()):  # --remove-texts of an earlier load
        make_texts(run)
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        drop_corpus(db, NAME)
        warm_up(db)
        corpus = db.create_corpus(NAME)
        server, process = Server(connection), psutil.Process()
        slice_size = max(1, min(FILE_DOCUMENTS, run.documents // 5))
        slices: list[Figures] = []
        own, of_server, log = own_seconds(), server.seconds(), log_position(connection)
        start = time.perf_counter()

        def note(report: ts.AddReport) -> None:
            if report.received // slice_size > len(slices):
                slices.append(
                    {
                        "documents": report.received,
                        "seconds": time.perf_counter() - start,
                        "client_mb": process.memory_info().rss / 2**20,
                        "client_s": own_seconds() - own,
                        "server_s": server.seconds() - of_server,
                    }
                )
                print(f"{report.received:,} documents, {slices[-1]['seconds']:.0f} s", flush=True)

        report = corpus.add_many(run.documents_of_files(run.remove_texts), note)
        seconds = time.perf_counter() - start
        assert report.added == run.documents
        return {
            "seconds": seconds,
            "slices": slices,
            "peak_mb": peak_mb(),
            "client_s": own_seconds() - own,
            "server_s": server.seconds() - of_server,
            "log_bytes": (log_position(connection) - log) / run.documents,
            "stored": stored_bytes(connection),
        }


def queries(run: Run) -> Figures:
    """Query random documents: cold, warm, in batches, and in SQL."""
    drawn = json.loads(run.sample_file().read_text())
    texts, warming = drawn[:QUERIES], drawn[QUERIES:]
    start_cold(run)
    figures: Figures = {}
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        warm_up(db)
        corpus = db.corpus(NAME)
        for text in warming:
            corpus.query(text)
        for state in ("cold", "warm"):
            times = sorted(milliseconds(corpus.query, text) for text in texts)
            figures[f"{state}_ms"] = statistics.median(times)
            figures[f"{state}_p99_ms"] = times[int(len(times) * 0.99)]
        together = [milliseconds(corpus.query_many, texts) for _ in range(3)]
        figures["batch_rate"] = 1000 * len(texts) / statistics.median(together)
        statement = b"SELECT * FROM textsim.matches('scale', %s)"
        ask = partial(connection.execute, statement, prepare=True)
        for text in warming[:10]:
            ask([text])
        times = sorted(milliseconds(ask, [text]) for text in texts[:SQL_QUERIES])
        figures["sql_ms"], figures["sql_p99_ms"] = (
            statistics.median(times),
            times[-len(times) // 100],
        )
        candidates = [len(corpus.candidates(text)) for text in texts[:SQL_QUERIES]]
        figures["candidates"] = statistics.mean(candidates)
    return figures


def pairs(run: Run) -> Figures:
    """List all pairs, cold and warm."""
    return cold_and_warm(run, lambda corpus: sum(1 for _ in corpus.pairs()))


def clusters(run: Run) -> Figures:
    """List all clusters, cold and warm."""
    return cold_and_warm(run, lambda corpus: sum(1 for _ in corpus.clusters()))


def cold_and_warm(run: Run, count: Callable[[ts.Corpus], int]) -> Figures:
    """Measure a call on a cold server, and again on the warm server."""
    start_cold(run)
    figures: Figures = {}
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        warm_up(db)
        corpus = db.corpus(NAME)
        for state in ("cold", "warm"):
            figures[state] = measured(connection, lambda: count(corpus))
            print(f"{state}: {figures[state]['seconds']:.1f} s", flush=True)
    return figures


def check(run: Run) -> Figures:
    """Check all stored rows; the server is warm from the step pairs, or cold."""
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        corpus = db.corpus(NAME)
        return measured(connection, lambda: len(corpus.check()))


STEPS: dict[str, Callable[[Run], Figures]] = {
    "texts": make_texts,
    "load": load,
    "queries": queries,
    "pairs": pairs,
    "clusters": clusters,
    "check": check,
}


def measured(connection: Connection, function: Callable[[], int]) -> Figures:
    """Return the time, memory and stages of a function, and the number that it returns."""
    server = Server(connection)
    own, of_server, start = own_seconds(), server.seconds(), time.perf_counter()
    with sampled(connection) as stages:
        number = function()
    seconds = time.perf_counter() - start
    return {
        "number": number,
        "seconds": seconds,
        "client_s": own_seconds() - own,
        "server_s": server.seconds() - of_server,
        "peak_mb": stages.peak_mb,
        "client_stages": stages.of_client.most_common(12),
        "server_stages": stages.of_server.most_common(12),
    }


class Stages:
    """Samples of the main thread's functions, the server's statements, and the memory."""

    def __init__(self, connection: Connection) -> None:
        self.of_client: Counter[str] = Counter()
        self.of_server: Counter[str] = Counter()
        self.peak_mb = 0.0
        self._connection = connection
        self._process = psutil.Process()
        self._main = threading.main_thread().ident

    def run(self, ended: threading.Event) -> None:
        """Sample until the event is set."""
        last = time.perf_counter()
        number = 0
        while not ended.wait(0.02):
            frame = sys._current_frames().get(self._main or 0)
            now = time.perf_counter()
            self.of_client[self._function(frame)] += now - last  # type: ignore[assignment]
            if number % 5 == 0:
                self.peak_mb = max(self.peak_mb, self._process.memory_info().rss / 2**20)
                for (query,) in self._connection.execute(ACTIVE):
                    self.of_server[statement_name(query)] += 0.1  # type: ignore[assignment]
            last, number = now, number + 1

    @staticmethod
    def _function(frame: FrameType | None) -> str:
        """Return the innermost function of the package."""
        while frame is not None:
            path = frame.f_code.co_filename
            if path.startswith(PACKAGE) and "/db/" not in path and "/streams" not in path:
                return f"{path[len(PACKAGE) + 1 :]} {frame.f_code.co_qualname}"
            frame = frame.f_back
        return "outside"


def statement_name(query: str) -> str:
    """Return the comment of a statement or else its beginning, without numbers."""
    query = " ".join(query.split())
    comment = re.match(r"/\* textsim-db: (.*?) \*/", query)
    name = comment[1] if comment else query[:60]
    return re.sub(r"\d+", "N", name)


@contextmanager
def sampled(connection: Connection) -> Iterator[Stages]:
    """Sample the stages while the block runs."""
    stages, ended = Stages(connection), threading.Event()
    thread = threading.Thread(target=stages.run, args=[ended])
    thread.start()
    try:
        yield stages
    finally:
        ended.set()
        thread.join()


def start_cold(run: Run) -> None:
    """Stop the server, and drop its files from the system's cache; the next connect() starts it."""
    embedded_server.stop()
    for path in run.data.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm_up(db: ts.Database) -> None:
    """Load the kernels."""
    drop_corpus(db, "scale-warm-up")
    warm = db.create_corpus("scale-warm-up")
    warm.add_many([(f"{number}", text) for number, text in enumerate(WARM_TEXTS * 2)])
    warm.query_many(WARM_TEXTS)
    assert list(warm.pairs())
    assert list(warm.clusters())
    warm.drop()


def drop_corpus(db: ts.Database, name: str) -> None:
    """Drop the corpus of an interrupted run."""
    if name in db.corpora():
        db.drop_corpus(name)


def stored_bytes(connection: Connection) -> dict[str, int]:
    """Return the bytes of the corpus's tables and indexes, and of the dictionary."""
    names = connection.execute(RELATIONS, [NAME]).fetchone()
    assert names is not None
    stored = {}
    for what, relation in zip(
        ("documents", "band rows", "dictionary"), (*names, "word"), strict=True
    ):
        row = connection.execute(BYTES, [f"textsim.{relation}"] * 2).fetchone()
        assert row is not None
        stored[what], stored[f"{what}, indexes"] = row
    return stored


def log_position(connection: Connection) -> int:
    """Return the bytes of write-ahead log since the beginning."""
    row = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')").fetchone()
    assert row is not None
    return int(row[0])


RECORDED = [
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
"""The rows of the table in the docs."""


def rows_of(figures: Figures) -> dict[str, float]:
    """Return the rows of the table for the figures of one size."""
    count, words, cores = figures["documents"], figures["words"], os.cpu_count() or 1
    rows: dict[str, float] = {}
    if texts := figures.get("texts"):
        rows["making the texts, us of a core a document"] = texts["processor_us"]
    if done := figures.get("load"):
        slices = [{"documents": 0, "seconds": 0.0}, *done["slices"]]
        rates = [
            (b["documents"] - a["documents"]) / (b["seconds"] - a["seconds"])
            for a, b in pairwise(slices)
        ]
        memory = [one["client_mb"] for one in done["slices"]]
        rows |= {
            "load, s": done["seconds"],
            "load, documents/s": count / done["seconds"],
            "load, first slice, documents/s": rates[0],
            "load, slowest slice, documents/s": min(rates),
            "load, last slice, documents/s": rates[-1],
            "load, index and vacuum after the documents, s": done["seconds"]
            - slices[-1]["seconds"],
            "load, million tokens an hour a core": count * words / done["seconds"] / cores * 0.0036,
            "load, processor us a document, client": done["client_s"] * 1e6 / count,
            "load, processor us a document, server": done["server_s"] * 1e6 / count,
            "load, cores busy, %": 100
            * (done["client_s"] + done["server_s"])
            / done["seconds"]
            / cores,
            "load, client after the first slice, MB": memory[0],
            "load, client after the last slice, MB": memory[-1],
            "load, client, peak MB": done["peak_mb"],
            "log, bytes a document": done["log_bytes"],
        }
        stored = done["stored"]
        for what in ("documents", "documents, indexes", "band rows", "band rows, indexes"):
            rows[f"stored {what}, bytes a document"] = stored[what] / count
        rows["stored without the dictionary, bytes a document"] = (
            sum(size for what, size in stored.items() if "dictionary" not in what) / count
        )
    if done := figures.get("queries"):
        for state in ("cold", "warm"):
            rows[f"one query, {state}, median ms"] = done[f"{state}_ms"]
            rows[f"one query, {state}, p99 ms"] = done[f"{state}_p99_ms"]
        rows["query_many, warm, queries/s"] = done["batch_rate"]
        rows["matches() in SQL, warm, median ms"] = done["sql_ms"]
        rows["matches() in SQL, warm, p99 ms"] = done["sql_p99_ms"]
        rows["candidates of a query, mean"] = done["candidates"]
    for step in ("pairs", "clusters"):
        for state, done in figures.get(step, {}).items():
            rows |= measured_rows(f"all {step}, {state}", step, done)
    if done := figures.get("check"):
        rows |= measured_rows("check", "problems", done)
    return rows


def measured_rows(what: str, number: str, done: Figures) -> dict[str, float]:
    """Return the rows of the table for figures of measured()."""
    return {
        f"{what}, s": done["seconds"],
        f"{what}, {number}": done["number"],
        f"{what}, processor s, client": done["client_s"],
        f"{what}, processor s, server": done["server_s"],
        f"{what}, client, peak MB": done["peak_mb"],
    }


def stage_lines(figures: Figures) -> Iterator[str]:
    """Yield the stages of pairs, clusters and check that take at least a fiftieth of the time."""
    measurements = {
        f"all {step}, {state}": done
        for step in ("pairs", "clusters")
        for state, done in figures.get(step, {}).items()
    }
    if "check" in figures:
        measurements["check"] = figures["check"]
    for name, done in measurements.items():
        yield f"\n{figures['documents']:,} documents, {name}: {done['seconds']:.1f} s, of these\n"
        for side in ("client", "server"):
            for stage, seconds in done[f"{side}_stages"]:
                if seconds * 50 >= done["seconds"]:
                    yield f"- {side}, {seconds:.1f} s: {stage}"


def report(folder: Path) -> str:
    """Return the table of all sizes in the folder, with the growth between the last two."""
    all_figures = [json.loads(path.read_text()) for path in folder.glob("figures-*.json")]
    all_figures.sort(key=lambda figures: (figures["words"], figures["documents"]))
    columns = [rows_of(figures) for figures in all_figures]
    titles = [f"{f['documents']:,} of {f['words']} words" for f in all_figures]
    lines = [f"| | {' | '.join(titles)} | last two |", "|---" * (len(titles) + 2) + "|"]
    for name in dict.fromkeys(name for column in columns for name in column):
        cells = ["" if name not in column else shown(column[name]) for column in columns]
        growth = ""
        if len(columns) > 1 and columns[-2].get(name) and name in columns[-1]:
            growth = f"x {columns[-1][name] / columns[-2][name]:.2f}"
        lines.append(f"| {name} | {' | '.join(cells)} | {growth} |")
    for figures in all_figures:
        lines += stage_lines(figures)
    return "\n".join(lines) + "\n"


def recorded_sizes(folder: Path) -> tuple[dict[str, dict[str, float]], Table]:
    """Return the rows of each size by name, and a table of the RECORDED ones."""
    all_figures = [json.loads(path.read_text()) for path in folder.glob("figures-*.json")]
    all_figures.sort(key=lambda figures: (figures["words"], figures["documents"]))
    return recorded_rows({figures["documents"]: rows_of(figures) for figures in all_figures})


def recorded_rows(
    sizes: dict[int, dict[str, float]],
) -> tuple[dict[str, dict[str, float]], Table]:
    """Return the rows of each size by name, and a table of the RECORDED ones."""
    table = [["documents of 200 words", *(f"{documents:,}" for documents in sizes)]]
    for label in RECORDED:
        cells = [shown(rows[label]) if label in rows else "" for rows in sizes.values()]
        table.append([label, *cells])
    named = {
        f"d{documents}": {identifier(label): value for label, value in rows.items()}
        for documents, rows in sizes.items()
    }
    return named, table


def main() -> None:
    """Run the steps that have no figures yet, each in its own process."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/scale"))
    parser.add_argument("--steps", default=DEFAULT_STEPS, help=f"steps, of {', '.join(STEPS)}")
    parser.add_argument("--again", default="", help="steps to repeat")
    parser.add_argument(
        "--remove-texts", action="store_true", help="remove texts after loading them"
    )
    parser.add_argument("--drop", action="store_true", help="remove the server's files at the end")
    parser.add_argument("--only", choices=STEPS, help=argparse.SUPPRESS)
    add_option(parser)
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder, given.documents, given.words, given.remove_texts)
    if given.only:
        run.add_figures(given.only, STEPS[given.only](run))
        return
    wanted = [step for step in given.steps.split(",") if given.documents]
    environment = {n: v for n, v in os.environ.items() if not n.startswith("TEXTSIM_")}
    environment["TEXTSIM_DATA_DIR"] = str(run.data)
    for step in wanted:
        if step in run.figures() and step not in given.again.split(","):
            continue
        print(f"step {step}", flush=True)
        size = ["--documents", f"{given.documents}", "--words", f"{given.words}"]
        command = [sys.executable, "-m", "benchmarks.scale", *size, "--folder", str(folder)]
        if given.remove_texts:
            command.append("--remove-texts")
        subprocess.run([*command, "--only", step], env=environment, check=True)
    if given.drop and run.data.exists():
        embedded_server.stop(run.data)
        shutil.rmtree(run.data)
    print(report(folder))
    if given.record:
        sizes, table = recorded_sizes(folder)
        record("scale", sizes, {"scale": table})


if __name__ == "__main__":
    main()
