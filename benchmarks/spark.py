"""Deduplicate generated documents with Spark and with `textsim dedupe`, in one run.

    python -m benchmarks.spark [--documents 100000] [--record]
    python -m benchmarks.spark --executors [--documents 1000000] [--record]    # one and two of them
    python -m benchmarks.spark --same 100000      # the results of four engines, as checksums
    python -m benchmarks.spark --same articles arxiv --corpora FOLDER --threshold 0.5 0.8

Both sides read one Parquet file, and start from nothing. The memory is the sum of the proportional
set sizes of all processes, sampled every half second. The bytes of the shuffle come from Spark's event
log. The machine may be busy, so compare processor times.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

import textsim_db as ts
from benchmarks.against_side import Server
from benchmarks.generate import documents
from benchmarks.record import Table, add_option, markdown, record
from textsim_db.text.streams import cut

SAMPLE_SECONDS = 0.5
WORDS, BYTES = 200, 1500
"""The words and the bytes of a generated document."""
EXECUTOR = "CoarseGrainedExecutorBackend"
"""The class whose name is in the command of each executor."""
LABELS = {
    "seconds": "time, s",
    "rate": "documents/s",
    "further_us": "each further document, us",
    "processor_us": "processor, us a document",
    "peak_mb": "all processes, peak MB",
    "shuffle_bytes": "shuffle, bytes a document",
    "kept": "documents kept",
}


class Watched:
    """A command, with its time, the processor time and the peak memory of its processes.

    The Java process and the Python processes of Spark do not wait for each other at the end, so their
    times are sampled with their memory. Each executor of a cluster is kept on one core, with its
    Python processes, because one task uses more than one core if it can.
    """

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.peak = 0.0
        self._times: dict[int, float] = {}
        start = time.perf_counter()
        self._process = psutil.Popen(command, env=os.environ | environment)
        thread = threading.Thread(target=self._sample, daemon=True)
        thread.start()
        status = self._process.wait()
        self.seconds = time.perf_counter() - start
        thread.join()
        if status:
            raise SystemExit(f"the command ended with status {status}: {' '.join(command)}")

    def _sample(self) -> None:
        while True:
            total = 0
            try:
                for process in [self._process, *self._process.children(recursive=True)]:
                    total += process.memory_full_info().pss
                    times = process.cpu_times()
                    self._times[process.pid] = times.user + times.system
                for core, executor in enumerate(executors_of(self._process)):
                    _pin([executor, *executor.children(recursive=True)], core)
            except psutil.Error:  # a process has just ended
                if not self._process.is_running():
                    return
            self.peak = max(self.peak, total / 2**20)
            time.sleep(SAMPLE_SECONDS)

    @property
    def processor(self) -> float:
        """The seconds of processor time of all processes, without the last moment of each."""
        return sum(self._times.values())


def executors_of(process: psutil.Process) -> list[psutil.Process]:
    """Return the executors of a Spark cluster that a process has started, the oldest first."""
    children = process.children(recursive=True)
    executors = [child for child in children if EXECUTOR in " ".join(child.cmdline())]
    return sorted(executors, key=psutil.Process.create_time)


def _pin(processes: list[psutil.Process], core: int) -> None:
    for process in processes:
        for thread in process.threads():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread.id, {core})


def scale(count: int, folder: Path) -> dict[str, dict[str, float]]:
    """Return the figures of one executor and of two, each on a core of its own.

    A third of the documents are measured too: the difference is the time without the start.
    """
    fewer = count // 3
    sources = {number: folder / f"documents{number}.parquet" for number in (fewer, count)}
    for number, source in sources.items():
        _write_parquet(documents(number), source)
    sides: dict[str, dict[str, float]] = {}
    for executors, label in ((1, "one executor"), (2, "two executors")):
        master = f"local-cluster[{executors},1,2048]"
        seconds = _with_spark(sources[fewer], master)["seconds"]
        figures = _with_spark(sources[count], master)
        figures["further_us"] = (figures["seconds"] - seconds) * 1e6 / (count - fewer)
        _per_document(figures, count)
        sides[label] = figures
    _check_same(sides)
    return sides


def _per_document(figures: dict[str, Any], count: int) -> None:
    figures["rate"] = count / figures["seconds"]
    per_core_hour = figures["rate"] * 3600 / (os.cpu_count() or 1)
    figures["billion_words"] = WORDS * per_core_hour / 1e9
    figures["gigabytes"] = BYTES * per_core_hour / 1e9
    figures["processor_us"] = figures.pop("processor") * 1e6 / count
    if "shuffle_bytes" in figures:
        figures["shuffle_bytes"] /= count


def _check_same(sides: dict[str, dict[str, Any]]) -> None:
    if len({figures.pop("checksum") for figures in sides.values()}) > 1:
        raise SystemExit(f"they keep different documents: {', '.join(sides)}")


def compare(count: int, folder: Path, only_spark: bool) -> dict[str, dict[str, float]]:
    """Return the figures of both sides."""
    source = folder / "documents.parquet"
    _write_parquet(documents(count), source)
    sides = {} if only_spark else {"textsim dedupe": _with_server(source)}
    sides["Spark"] = _with_spark(source, "local[2]")
    for figures in sides.values():
        _per_document(figures, count)
    _check_same(sides)
    return sides


def _write_parquet(rows: Iterable[tuple[str, str]], path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for batch in cut(rows, 50_000, lambda _: 0):
            columns = [list(column) for column in zip(*batch, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays([*map(pa.array, columns)], schema=schema))


def _with_server(source: Path) -> dict[str, float]:
    output = source.with_suffix(".unique.parquet")
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        server = Server(connection)
        before = server.seconds()
        command = [sys.executable, "-m", "textsim_db.cli", "dedupe", str(source), "-o", str(output)]
        watched = Watched(command, {})
        processor = watched.processor + server.seconds() - before
    return _figures(watched, [output]) | {"processor": processor}


def _with_spark(source: Path, master: str) -> dict[str, float]:
    output, log = source.with_suffix(".unique"), source.with_suffix(".log")
    for path in (output, log):
        shutil.rmtree(path, ignore_errors=True)
    log.mkdir()
    with _eventlog(log) as environment:
        command = [sys.executable, "-m", "textsim_db.spark", "dedupe", str(source), str(output)]
        options = ["--format", "parquet", "--master", master]
        watched = Watched(command + options, environment)
    figures = _figures(watched, sorted(output.glob("part-*.parquet")))
    return figures | {"processor": watched.processor, "shuffle_bytes": shuffle_bytes(log)}


@contextmanager
def _eventlog(folder: Path) -> Iterator[dict[str, str]]:
    options = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.local.dir": str(folder.with_suffix(".tmp")),
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
    }
    words = [word for option in options.items() for word in ("--conf", "=".join(option))]
    yield {"PYSPARK_SUBMIT_ARGS": " ".join([*words, "pyspark-shell"])}


def _figures(watched: Watched, outputs: Iterable[Path]) -> dict[str, Any]:
    keys = [
        key for path in outputs for key in pq.read_table(path, columns=["id"])["id"].to_pylist()
    ]
    return {
        "seconds": watched.seconds,
        "peak_mb": watched.peak,
        "kept": len(keys),
        "checksum": checksum([key] for key in keys),
    }


def shuffle_bytes(log: Path) -> int:
    """Return the bytes that all tasks wrote for other tasks, from Spark's event log."""
    total = 0
    for path in log.rglob("*"):
        if not path.is_file():
            continue
        for line in path.open(encoding="utf-8"):
            if '"SparkListenerTaskEnd"' in line:
                metrics = json.loads(line).get("Task Metrics") or {}
                written = metrics.get("Shuffle Write Metrics", {})
                total += written.get("Shuffle Bytes Written", 0)
    return total


def checksum(rows: Iterable[Iterable[Any]]) -> str:
    """Return a checksum of rows in any order; floats count with all their digits."""
    lines = sorted("\t".join(map(repr, row)) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


class Case(NamedTuple):
    """Documents and the settings of a corpus."""

    source: str
    settings: dict[str, Any]
    corpora: Path | None

    @property
    def label(self) -> str:
        """The source and the settings in one line."""
        return ", ".join([self.source, *(str(value) for value in self.settings.values())])

    def texts(self) -> list[tuple[str, str]]:
        """Return the documents; the keys of a file are numbered, because some occur twice."""
        if self.corpora is None:
            return list(documents(int(self.source), planted=0.1))
        with gzip.open(self.corpora / f"{self.source}.jsonl.gz", "rt", encoding="utf-8") as file:
            rows = enumerate(map(json.loads, file))
            return [(f"{number} {row['id']}", row["text"]) for number, row in rows]


def same(
    cases: list[Case], masters: list[str], partitions: int | None, with_sql: bool
) -> Iterator[list[str]]:
    """Yield a row for each case and engine, with the checksums of pairs, clusters and duplicates."""
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        for case in cases:
            yield from _rows_of_corpus(db, connection, case, with_sql)
    for master in masters:
        with tempfile.TemporaryDirectory() as folder, session(master, Path(folder)) as spark:
            for case in cases:
                yield _row_of_spark(spark, case, Path(folder), partitions)


def _rows_of_corpus(
    db: ts.Database, connection: psycopg.Connection[Any], case: Case, with_sql: bool
) -> Iterator[list[str]]:
    name = "benchmark-spark"
    if name in db.corpora():
        db.drop_corpus(name)
    corpus = db.create_corpus(name, **case.settings)
    corpus.add_many(case.texts())
    pairs = list(corpus.pairs())
    clusters = ((c.keys, c.weakest) for c in corpus.clusters())
    yield _row(case, "Python", pairs, clusters, corpus.duplicates())
    if with_sql:
        rows = connection.execute("SELECT a, b, similarity FROM textsim.pairs(%s)", [name])
        in_sql = rows.fetchall()
        yield [case.label, "SQL", checksum(in_sql), f"{len(in_sql):,}", "", ""]
    corpus.drop()


def _row(case: Case, engine: str, pairs: Any, clusters: Any, duplicates: Any) -> list[str]:
    pairs = list(pairs)
    checksums = [checksum(rows) for rows in (pairs, clusters, duplicates)]
    return [case.label, engine, checksums[0], f"{len(pairs):,}", *checksums[1:]]


def _row_of_spark(spark: Any, case: Case, folder: Path, partitions: int | None) -> list[str]:
    """Compute with Spark; with a cluster, kill one of its executors at random moments."""
    from textsim_db.spark import find_candidates

    path = folder / "documents.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": k, "text": t}) + "\n" for k, t in case.texts())
    rows = spark.read.schema("id string, text string").json(str(path)).repartition(7)
    master = spark.sparkContext.master
    with _kill_executors(is_on=master.startswith("local-cluster")) as killed:
        candidates = find_candidates(rows, partitions=partitions, **case.settings)
        pairs = [tuple(row) for row in candidates.pairs().toLocalIterator()]
        clusters = [(tuple(c["keys"]), c["weakest"]) for c in candidates.clusters().collect()]
        duplicates = [tuple(row) for row in candidates.duplicates().collect()]
    label = f"{master}, {len(killed)} executors killed" if killed else master
    return _row(case, label, pairs, clusters, duplicates)


@contextmanager
def session(master: str, folder: Path) -> Iterator[Any]:
    """Lend a Spark session that only this machine reaches."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    builder = builder.config("spark.local.dir", str(folder))
    builder = builder.config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _kill_executors(is_on: bool) -> Iterator[list[int]]:
    """Kill an executor of this process's cluster every 5 to 15 seconds, at most four."""
    killed: list[int] = []
    done = threading.Event()

    def kill() -> None:
        while len(killed) < 4 and not done.wait(random.uniform(5, 15)):
            executors = executors_of(psutil.Process())
            if executors:
                victim = random.choice(executors)
                victim.kill()
                killed.append(victim.pid)

    thread = threading.Thread(target=kill, daemon=True)
    if is_on:
        thread.start()
    try:
        yield killed
    finally:
        done.set()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Spark beside textsim dedupe")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--only-spark", action="store_true", help="leave textsim dedupe out")
    parser.add_argument("--executors", action="store_true", help="one executor beside two")
    parser.add_argument(
        "--same", nargs="+", metavar="SOURCE", help="numbers of documents, or names of corpora"
    )
    parser.add_argument("--corpora", type=Path, help="folder of .jsonl.gz files with id and text")
    parser.add_argument("--threshold", type=float, nargs="+", default=[0.8])
    parser.add_argument("--shingle", nargs="+", default=["word:3"])
    parser.add_argument("--recall", type=float, nargs="+", default=[0.95])
    parser.add_argument("--master", nargs="+", default=["local[2]", "local-cluster[2,1,2048]"])
    parser.add_argument("--no-sql", action="store_true", help="leave SQL out: it is slow at 0.5")
    parser.add_argument("--partitions", type=int, help="partitions of the buckets")
    add_option(parser)
    arguments = parser.parse_args()
    if arguments.same:
        print_same(arguments)
        return
    folder = Path(tempfile.mkdtemp(prefix="textsim-spark-"))
    try:
        if arguments.executors:
            figures = scale(arguments.documents, folder)
        else:
            figures = compare(arguments.documents, folder, arguments.only_spark)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    name = f"spark_{'executors' if arguments.executors else arguments.documents}"
    print(markdown(table(figures)))
    if arguments.record:
        keyed = {label.replace(" ", "_").lower(): values for label, values in figures.items()}
        record(name, keyed, {name: table(figures)})


def print_same(arguments: argparse.Namespace) -> None:
    """Print the results of all engines, and stop with an error if they differ."""
    names = ("threshold", "shingle", "recall")
    choices = product(*(getattr(arguments, name) for name in names))
    settings = [dict(zip(names, choice, strict=True)) for choice in choices]
    cases = [Case(s, each, arguments.corpora) for s in arguments.same for each in settings]
    results: dict[str, list[list[str]]] = {}
    header = ["case", "engine", "pairs", "pairs found", "clusters", "duplicates"]
    for row in same(cases, arguments.master, arguments.partitions, not arguments.no_sql):
        results.setdefault(row[0], []).append(row)
        print(markdown([header, row]).splitlines()[-1], flush=True)
    differing = [
        case
        for case, rows in results.items()
        if any(len({row[column] for row in rows} - {""}) > 1 for column in (2, 3, 4, 5))
    ]
    if differing:
        raise SystemExit(f"the engines differ: {'; '.join(differing)}")
    print(f"all engines agree in {len(results)} cases")


def table(figures: dict[str, dict[str, float]]) -> Table:
    """Return the figures of both sides."""
    rows = [["", *figures]]
    for name, label in LABELS.items():
        values = [side.get(name) for side in figures.values()]
        if not any(values):
            continue
        rows.append([label, *("" if value is None else f"{value:,.0f}" for value in values)])
    return rows


if __name__ == "__main__":
    main()
