"""A Parquet file to a deduplicated frame beside the command, and queries of a frame beside a list.

    python -m benchmarks.frames [--documents 1000000] [--queries 100000] [--rounds 3] [--record]

The function reads the file with Polars and writes the frame to another file, in a process of its own.
The command reads and writes the same files. The memory is the peak of the process that runs it. Queries
are texts of a corpus of the same documents, each with a word changed; both sides get the same texts.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
from pyarrow import parquet

from benchmarks.generate import documents
from benchmarks.harness import Bench, Figures, fresh_database, in_turns, options, publish, shown

ROWS = 10_000
FRAME = """
import sys
import polars
import textsim_db
source, out, url = sys.argv[1:]
frame = polars.read_parquet(source)
unique, report = textsim_db.dedupe_frame(frame, text="text", database=url)
unique.write_parquet(out)
"""


def write_documents(path: Path, count: int) -> None:
    """Write documents with planted near-duplicates to a Parquet file."""
    schema = pa.schema({"id": pa.string(), "text": pa.string()})
    stream = documents(count)
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, count, ROWS):
            rows = [next(stream) for _ in range(min(ROWS, count - start))]
            keys, texts = zip(*rows, strict=True)
            writer.write_batch(pa.record_batch([keys, texts], schema=schema))


def run(command: list[str], _: int) -> tuple[float, float]:
    """Run a command in a process of its own; return its seconds and its peak memory in MB."""
    program = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program, *command], check=True, capture_output=True, text=True
    )
    return time.perf_counter() - start, float(done.stdout)


def dedupe_sides(bench: Bench, count: int, rounds: int) -> dict[str, Figures]:
    """Return the seconds and the memory of the function and of the command."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "documents.parquet")
        frame, file = Path(folder, "frame.parquet"), Path(folder, "file.parquet")
        write_documents(source, count)
        textsim = str(Path(sys.executable).with_name("textsim"))
        command = [textsim, "dedupe", str(source), "-o", str(file), "--database-url", bench.db.url]
        function = [sys.executable, "-c", FRAME, str(source), str(frame), bench.db.url]
        sides = in_turns(
            {"textsim dedupe": partial(run, command), "dedupe_frame": partial(run, function)},
            rounds,
        )
        assert pl.read_parquet(frame).equals(pl.read_parquet(file))
    return {
        name: {
            "dedupe_s": statistics.median(seconds for seconds, _ in results),
            "dedupe_mb": max(memory for _, memory in results),
        }
        for name, results in sides.items()
    }


def query_sides(bench: Bench, count: int, queries: int, rounds: int) -> dict[str, Figures]:
    """Return the seconds of queries as a list and as a frame."""
    corpus = bench.db.create_corpus("documents")
    corpus.add_many(documents(count))
    texts = []
    for _, text in documents(queries):
        words = text.split()
        words[len(words) // 2] = "changed"
        texts.append(" ".join(words))
    frame = pl.DataFrame({"text": texts})

    def as_list(_: int) -> tuple[float, int]:
        start = time.perf_counter()
        matches = corpus.query_many(texts)
        return time.perf_counter() - start, sum(map(len, matches))

    def as_frame(_: int) -> tuple[float, int]:
        start = time.perf_counter()
        matches = pl.DataFrame(corpus.query_many(frame, text="text"))
        return time.perf_counter() - start, len(matches)

    sides = in_turns({"list": as_list, "frame": as_frame}, rounds)
    assert len({matches for results in sides.values() for _, matches in results}) == 1
    return {
        name: {"query_s": statistics.median(seconds for seconds, _ in results)}
        for name, results in sides.items()
    }


def main() -> None:
    """Measure both, and print the tables."""
    parser = options(__doc__, documents=1_000_000, queries=100_000, rounds=3)
    given = parser.parse_args()
    with fresh_database() as bench:
        dedupe = dedupe_sides(bench, given.documents, given.rounds)
        queries = query_sides(bench, min(given.documents, 200_000), given.queries, given.rounds)
    file, frame = dedupe["textsim dedupe"], dedupe["dedupe_frame"]
    figures = {
        "documents": given.documents,
        "queries": given.queries,
        "file": file,
        "frame": frame,
        "list_s": queries["list"]["query_s"],
        "frame_s": queries["frame"]["query_s"],
        "dedupe_speed": file["dedupe_s"] / frame["dedupe_s"],
        "query_speed": queries["list"]["query_s"] / queries["frame"]["query_s"],
    }
    header = ["", "seconds", "peak memory, MB", "speed beside the first"]
    tables = {
        "frames_dedupe": [
            [f"{given.documents:,} rows of Parquet", *header[1:]],
            ["`textsim dedupe`", shown(file["dedupe_s"]), shown(file["dedupe_mb"]), "1"],
            [
                "`dedupe_frame`, with Polars",
                shown(frame["dedupe_s"]),
                shown(frame["dedupe_mb"]),
                f"{figures['dedupe_speed']:.2f}",
            ],
        ],
        "frames_query": [
            [f"{given.queries:,} texts", "seconds", "speed beside the first"],
            ["`query_many` of a list", shown(figures["list_s"]), "1"],
            [
                "`query_many` of a frame, to a frame",
                shown(figures["frame_s"]),
                f"{figures['query_speed']:.2f}",
            ],
        ],
    }
    publish(given.record, "frames", figures, tables)


if __name__ == "__main__":
    main()
