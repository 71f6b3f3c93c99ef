"""Memory of the client: a load, `textsim dedupe`, and a worker; on the embedded server.

    python -m benchmarks.memory --documents 1000000

Each job runs in its own process. It prints the resident memory every 100,000 documents, then the slope
and the peak. The slope is the number of bytes that each further document adds. It is fitted to the last
four fifths of the documents, because caches fill during the first fifth.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np
import psutil
import psycopg

import textsim_db as ts
from benchmarks.main_job import read_documents, write_documents
from benchmarks.record import add_option, record

STEP = 100_000
NAME = "benchmark-memory"
JOBS = ("load", "dedupe", "worker")


class Samples:
    """The resident memory of a process by number of documents, printed as it is measured."""

    def __init__(self, documents: int, process: psutil.Process) -> None:
        self._documents = documents
        self._process = process
        self._rows: list[tuple[int, int]] = []

    def take(self, done: int) -> None:
        """Measure the memory if STEP documents were processed since the last sample."""
        if done // STEP > (self._rows[-1][0] // STEP if self._rows else 0):
            self._rows.append((done, self._process.memory_info().rss))
            print(f"{done:>16,} documents{self._rows[-1][1] / 2**20:>10,.0f} MB", flush=True)

    def finish(self, peak: int) -> None:
        """Print the slope and the peak, then both as JSON on one line; peak: kilobytes."""
        slope = 0.0
        rows = np.array([row for row in self._rows if row[0] > self._documents / 5], float)
        if len(rows) > 1:
            slope = np.polynomial.Polynomial.fit(rows[:, 0], rows[:, 1], 1).convert().coef[1]
            print(f"{'slope':<16}{slope:>20,.0f} bytes a document")
        print(f"{'peak':<16}{peak / 1024:>20,.0f} MB", flush=True)
        print(json.dumps({"slope_bytes": slope, "peak_mb": peak / 1024}), flush=True)


def load(path: Path, documents: int) -> None:
    """Load the documents into a new corpus with add_many()."""
    samples = Samples(documents, psutil.Process())
    with ts.connect() as db:
        drop_corpus(db)
        corpus = db.create_corpus(NAME)
        corpus.add_many(read_documents(path), lambda report: samples.take(report.received))
        corpus.drop()
    samples.finish(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def dedupe(path: Path, documents: int) -> None:
    """Deduplicate the documents as a file of JSON lines with the command."""
    records, output = path.with_suffix(".jsonl"), path.with_suffix(".unique.jsonl")
    with records.open("w", encoding="utf-8") as file:
        for key, text in read_documents(path):
            file.write(json.dumps({"id": key, "text": text}) + "\n")
    command = ["dedupe", str(records), "--output", str(output), "--log-json"]
    with subprocess.Popen(
        [sys.executable, "-m", "textsim_db.cli", *command], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        samples = Samples(documents, psutil.Process(process.pid))
        for line in process.stderr:  # every five seconds, and the summary at the end
            message = json.loads(line)
            if "documents" in message:
                samples.take(message["documents"])
            else:
                print(message["message"], flush=True)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"textsim dedupe ended with {process.returncode}; expected 0")
    samples.finish(usage.ru_maxrss)


def worker(path: Path, documents: int) -> None:
    """Index an attached table with a worker, one change for each row."""
    samples = Samples(documents, psutil.Process())
    done = 0

    def count(report: ts.WorkReport) -> None:
        nonlocal done
        done += report.changes.added
        samples.take(done)

    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        drop_corpus(db)
        connection.execute("CREATE TABLE benchmark_memory (id text PRIMARY KEY, body text)")
        corpus = db.create_corpus(NAME)
        corpus.attach("benchmark_memory", "id", "body", "queue")
        rows = read_documents(path)
        while some := list(islice(rows, 10_000)):
            copy_rows(connection, some)
        db.worker(report=count).run(until_idle=True)
        corpus.detach("benchmark_memory")
        corpus.drop()
        connection.execute("DROP TABLE benchmark_memory")
    samples.finish(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def copy_rows(
    connection: psycopg.Connection[tuple[object, ...]], rows: list[tuple[str, str]]
) -> None:
    """Insert rows into the attached table in one transaction."""
    with connection.cursor() as cursor, cursor.copy("COPY benchmark_memory FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def drop_corpus(db: ts.Database) -> None:
    """Drop the corpus of an earlier run."""
    if NAME in db.corpora():
        db.corpus(NAME).drop()


def main() -> None:
    """Run each job in its own process; with --file, run the named jobs in this process."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument(
        "--file", type=Path, help="the documents; used by the processes of the jobs"
    )
    add_option(parser)
    arguments = parser.parse_args()
    if arguments.file is not None:
        for job in arguments.jobs:
            {"load": load, "dedupe": dedupe, "worker": worker}[job](
                arguments.file, arguments.documents
            )
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.tsv"
        write_documents(path, arguments.documents, arguments.words)
        figures = {}
        for job in arguments.jobs:
            print(f"{job}: {arguments.documents:,} documents", flush=True)
            parts = ["--jobs", job, "--file", str(path), "--documents", str(arguments.documents)]
            figures[job] = run_job([sys.executable, "-m", "benchmarks.memory", *parts])
    if arguments.record:
        rows = [
            [job, f"{job_figures['slope_bytes']:,.0f}", f"{job_figures['peak_mb']:,.0f}"]
            for job, job_figures in figures.items()
        ]
        header = [
            f"{arguments.documents:,} documents",
            "bytes for each further document",
            "peak, MB",
        ]
        record("memory", figures, {"memory": [header, *rows]})


def run_job(command: list[str]) -> dict[str, float]:
    """Run a job, pass its output on, and return the figures of its last line."""
    line = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith("{"):
                print(line, end="", flush=True)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}; expected 0")
    figures: dict[str, float] = json.loads(line)
    return figures


if __name__ == "__main__":
    main()
