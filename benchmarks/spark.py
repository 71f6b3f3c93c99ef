"""Deduplicate generated documents with Spark and with `textsim dedupe`.

    python -m benchmarks.spark [--documents 100000] [--record]
    python -m benchmarks.spark --executors [--documents 1000000] [--record]    # one and two of them

Both sides read one Parquet file, and start from nothing. The memory is the sum of the proportional
set sizes of all processes, sampled every half second. The bytes of the shuffle come from Spark's event
log. The machine may be busy, so compare processor times.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.generate import documents
from benchmarks.harness import Documents, Figures, fresh_database, options, publish, table_of
from textsim_db.base.run_ahead import cut

SAMPLE_SECONDS = 0.5
EXECUTOR = "CoarseGrainedExecutorBackend"
"""The class whose name is in the command of each executor."""
PROGRAM = """
import sys
from pyspark.sql import SparkSession
from textsim_db.spark import find_candidates

source, output = sys.argv[1:]
find_candidates(SparkSession.builder.getOrCreate().read.parquet(source)).dedupe().write.parquet(output)
"""
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
        self.peak_mb = 0.0
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
                    pin([executor, *executor.children(recursive=True)], core)
            except psutil.Error:  # a process has just ended
                if not self._process.is_running():
                    return
            self.peak_mb = max(self.peak_mb, total / 2**20)
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


def pin(processes: list[psutil.Process], core: int) -> None:
    """Keep the threads of processes on one core."""
    for process in processes:
        for thread in process.threads():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread.id, {core})


def compare(count: int, folder: Path, only_spark: bool) -> dict[str, Figures]:
    """Return the figures of both sides."""
    source = write_parquet(documents(count), folder / "documents.parquet")
    sides = {} if only_spark else {"textsim dedupe": with_server(source, count)}
    return sides | {"Spark": with_spark(source, count, "local[2]")}


def compare_executors(count: int, folder: Path) -> dict[str, Figures]:
    """Return the figures of one executor and of two, each on a core of its own.

    A third of the documents are measured too: the difference is the time without the start.
    """
    fewer = count // 3
    small, large = (
        write_parquet(documents(number), folder / f"documents{number}.parquet")
        for number in (fewer, count)
    )
    sides = {}
    for executors, label in ((1, "one executor"), (2, "two executors")):
        master = f"local-cluster[{executors},1,2048]"
        seconds = with_spark(small, fewer, master)["seconds"]
        figures = with_spark(large, count, master)
        further = (figures["seconds"] - seconds) * 1e6 / (count - fewer)
        sides[label] = figures | {"further_us": further}
    return sides


def write_parquet(rows: Documents, path: Path) -> Path:
    """Write documents to a file, and return its path."""
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for batch in cut(rows, 50_000, lambda _: 0):
            columns = [list(column) for column in zip(*batch, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays([*map(pa.array, columns)], schema=schema))
    return path


def with_server(source: Path, count: int) -> Figures:
    """Run `textsim dedupe`; the memory is that of the client."""
    output = source.with_suffix(".unique.parquet")
    with fresh_database() as bench:
        program = [sys.executable, "-m", "textsim_db.cli", "dedupe", str(source), "-o", str(output)]
        command = [*program, "--database-url", bench.db.url]
        spent = bench.spend(lambda: Watched(command, {}))
    return figures_of(spent.result, spent.server, [output], count)


def with_spark(source: Path, count: int, master: str) -> Figures:
    """Run the same with Spark."""
    output, log = source.with_suffix(".unique"), source.with_suffix(".log")
    for path in (output, log):
        shutil.rmtree(path, ignore_errors=True)
    log.mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.local.dir": str(log.with_suffix(".tmp")),
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
    }
    words = [word for setting in settings.items() for word in ("--conf", "=".join(setting))]
    watched = Watched(
        [sys.executable, "-c", PROGRAM, str(source), str(output)],
        {
            "PYSPARK_SUBMIT_ARGS": " ".join(["--master", master, *words, "pyspark-shell"]),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
    )
    figures = figures_of(watched, 0.0, sorted(output.glob("part-*.parquet")), count)
    return figures | {"shuffle_bytes": shuffle_bytes(log) / count}


def figures_of(watched: Watched, server: float, outputs: Iterable[Path], count: int) -> Figures:
    """Return the figures of a run, with a checksum of the documents that it keeps."""
    tables = (pq.read_table(path, columns=["id"]) for path in outputs)
    keys = sorted(key for table in tables for key in table["id"].to_pylist())
    rate = count / watched.seconds
    return {
        "seconds": watched.seconds,
        "rate": rate,
        "processor_us": (watched.processor + server) * 1e6 / count,
        "peak_mb": watched.peak_mb,
        "kept": len(keys),
        "checksum": hashlib.sha256("\n".join(keys).encode()).hexdigest(),
    }


def shuffle_bytes(log: Path) -> int:
    """Return the bytes that all tasks wrote for other tasks, from Spark's event log."""
    total = 0
    for path in (path for path in log.rglob("*") if path.is_file()):
        for line in path.open(encoding="utf-8"):
            if '"SparkListenerTaskEnd"' in line:
                metrics = json.loads(line).get("Task Metrics") or {}
                written = metrics.get("Shuffle Write Metrics", {})
                total += written.get("Shuffle Bytes Written", 0)
    return total


def main() -> None:
    """Measure, and print a table."""
    parser = options(__doc__, documents=100_000)
    parser.add_argument("--only-spark", action="store_true", help="leave textsim dedupe out")
    parser.add_argument("--executors", action="store_true", help="one executor beside two")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="textsim-spark-") as folder:
        if given.executors:
            sides = compare_executors(given.documents, Path(folder))
        else:
            sides = compare(given.documents, Path(folder), given.only_spark)
    if len({figures.pop("checksum") for figures in sides.values()}) > 1:
        raise SystemExit(f"they keep different documents: {', '.join(sides)}")
    name = f"spark_{'executors' if given.executors else given.documents}"
    figures = {label.replace(" ", "_").lower(): side for label, side in sides.items()}
    publish(given.record, name, figures, {name: table_of(sides, LABELS)})


if __name__ == "__main__":
    main()
