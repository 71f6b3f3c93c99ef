"""A new corpus from Spark and from `textsim index`, of the same file; on the embedded server.

    python -m benchmarks.spark_write [--documents 1000000] [--words 200] [--record]

Spark runs in local mode with two task slots. "again" is a second call of write() after a first call
that died just before the corpus took its name: it finds all documents stored. Processor times are those
of all processes of the client, and of the server.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import psutil
import psycopg

import textsim_db as ts
from benchmarks.against_side import Server, stored_bytes
from benchmarks.generate import documents
from benchmarks.record import Table, add_option, markdown, record
from textsim_db.write.temporary_corpora import temporary_name

NAME = "benchmark-spark"
POLL_SECONDS = 0.5
LABELS = {
    "seconds": "s",
    "rate": "documents/s",
    "client_us": "client, processor us a document",
    "server_us": "server, processor us a document",
    "peak_mb": "client, peak MB of all processes",
    "bytes": "stored, bytes a document",
}
SIDES = {"index": "textsim index", "write": "write()", "again": "write() again"}


class Watched:
    """A program and the processes that it starts: their processor time, and their largest memory."""

    def __init__(self, arguments: list[str]) -> None:
        self.seconds: dict[tuple[int, float], float] = {}
        self.peak_mb = 0.0
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        with subprocess.Popen([sys.executable, "-m", *arguments], env=environment) as program:
            root = psutil.Process(program.pid)
            while program.poll() is None:
                self._sample(root)
                time.sleep(POLL_SECONDS)
        if program.returncode:
            raise SystemExit(f"{arguments} ended with status {program.returncode}")

    def _sample(self, root: psutil.Process) -> None:
        memory = 0
        for process in (root, *root.children(recursive=True)):
            try:
                times, created = process.cpu_times(), process.create_time()
                memory += process.memory_full_info().pss
            except psutil.NoSuchProcess:
                continue
            self.seconds[process.pid, created] = times.user + times.system
        self.peak_mb = max(self.peak_mb, memory / 2**20)


def measure(side: str, path: Path, count: int, url: str) -> dict[str, float]:
    """Load the file into a new corpus, and return the figures."""
    command = ["benchmarks.spark_write", "--run", side, str(path), url]
    if side == "index":
        command = ["textsim_db.cli", "index", NAME, str(path), "--create", "--database-url", url]
    with ts.connect(url) as db, psycopg.connect(url, autocommit=True) as connection:
        if NAME in db.corpora():
            db.drop_corpus(NAME)
        if side == "again":
            Watched(["benchmarks.spark_write", "--run", "die", str(path), url])
        connection.execute("CHECKPOINT")
        server = Server(connection)
        before, start = server.seconds(), time.perf_counter()
        watched = Watched(command)
        seconds = time.perf_counter() - start
        of_server = server.seconds() - before
        assert len(db.corpus(NAME)) == count
        size = stored_bytes(connection, NAME)
    return {
        "seconds": seconds,
        "rate": count / seconds,
        "client_us": sum(watched.seconds.values()) * 1e6 / count,
        "server_us": of_server * 1e6 / count,
        "peak_mb": watched.peak_mb,
        "bytes": size / count,
    }


def run_spark(side: str, path: str, url: str) -> None:
    """Write the file with Spark; die: give up before the corpus takes its name."""
    from pyspark.sql import SparkSession

    from textsim_db.spark import write

    settings: dict[str, str | int | float | bool | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "1g",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    df = spark.read.schema("id string, text string").json(path)
    if side != "die":
        print(write(df, url, NAME))
        return
    with mock.patch("textsim_db.spark.write_corpus.take_name", side_effect=TimeoutError):
        try:
            write(df, url, NAME)
        except TimeoutError:
            print("gave up before the corpus took its name")


def table(figures: dict[str, dict[str, float]]) -> Table:
    """Return the figures of all sides."""
    rows = [["", *SIDES.values()]]
    rows += [
        [label, *(f"{figures[s][name]:,.0f}" for s in SIDES)] for name, label in LABELS.items()
    ]
    return rows


def main() -> None:
    """Measure all sides and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--run", nargs=3, metavar=("SIDE", "FILE", "URL"), help=argparse.SUPPRESS)
    add_option(parser)
    arguments = parser.parse_args()
    if arguments.run:
        run_spark(*arguments.run)
        return
    with tempfile.TemporaryDirectory() as folder, ts.connect() as db:
        path = Path(folder) / "documents.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for key, text in documents(arguments.documents, arguments.words):
                file.write(json.dumps({"id": key, "text": text}) + "\n")
        figures = {}
        for side in arguments.sides:
            figures[side] = measure(side, path, arguments.documents, db.url)
            print(side, figures[side], flush=True)
        db.drop_corpus(NAME)
        with temporary_name(db.engine):
            pass  # drops what a run that died has left
    print(markdown(table(figures)))
    if arguments.record:
        name = f"spark_write_{arguments.documents}"
        record(name, figures, {name: table(figures)})


if __name__ == "__main__":
    main()
