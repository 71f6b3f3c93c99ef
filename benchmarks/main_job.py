"""The main job: load, queries, batches of queries, all pairs, clusters; on the embedded server.

    python -m benchmarks.main_job --documents 200000

Each figure is printed as it is measured. The documents are written to a temporary file before the clock
starts, so that the memory shown is the memory of the project.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

import textsim_db as ts
from benchmarks.against_side import stored_bytes
from benchmarks.generate import documents


def write_documents(
    path: Path, count: int, words: int, identical: int = 0, boilerplate: int = 0
) -> None:
    """Write the documents of the benchmark, one a line."""
    with path.open("w", encoding="utf-8") as file:
        for key, text in documents(count, words, identical=identical, boilerplate=boilerplate):
            file.write(f"{key}\t{text}\n")


def read_documents(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (key, text) from the file."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            key, _, text = line.rstrip("\n").partition("\t")
            yield key, text


def peak_memory() -> float:
    """Return the peak resident memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_queries(db: ts.Database, corpus: ts.Corpus, some: list[str]) -> None:
    """Query texts one at a time, in SQL, and in batches, and print the figures."""
    for run in ("right after the load", "again"):
        times = []
        for text in some:
            begin = time.perf_counter()
            corpus.query(text)
            times.append(1000 * (time.perf_counter() - begin))
        times.sort()
        print(f"one query, {run}")
        print(f"{'    median ms':<34}{statistics.median(times):>12.3f}")
        print(f"{'    p99 ms':<34}{times[int(len(times) * 0.99)]:>12.3f}")
    with db.engine.connect() as connection:
        sql_times = []
        for text in some[:300]:
            begin = time.perf_counter()
            connection.exec_driver_sql(
                "SELECT * FROM textsim.matches(%s, %s)", (corpus.name, text)
            ).all()
            sql_times.append(1000 * (time.perf_counter() - begin))
    print(f"{'one query in SQL, median ms':<34}{statistics.median(sql_times):>12.3f}")
    rates = []
    for _ in range(5):
        start = time.perf_counter()
        corpus.query_many(some)
        rates.append(len(some) / (time.perf_counter() - start))
    print(f"{'query_many, queries/s (median of 5)':<34}{statistics.median(rates):>12,.0f}")


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--identical", type=int, default=0, help="number of identical documents")
    parser.add_argument(
        "--boilerplate", type=int, default=0, help="number of documents with the same first half"
    )
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--database-url")
    parser.add_argument("--keep", action="store_true", help="do not drop the corpus")
    arguments = parser.parse_args()
    name = f"benchmark-{arguments.documents}"
    with tempfile.TemporaryDirectory() as folder, ts.connect(arguments.database_url) as db:
        path = Path(folder) / "documents.tsv"
        write_documents(
            path,
            arguments.documents,
            arguments.words,
            arguments.identical,
            arguments.boilerplate,
        )
        if name in db.corpora():
            db.corpus(name).drop()
        corpus = db.create_corpus(name)
        warm = db.create_corpus("benchmark-warm-up", exist_ok=True)
        warm.add_many([("a", "some words to compile the kernels"), ("b", "")])
        warm.query_many(["some words to compile the kernels"])
        warm.query("some words to compile the kernels")
        warm.drop()
        print(f"{'documents':<34}{arguments.documents:>12,}")
        start = time.perf_counter()
        report = corpus.add_many(read_documents(path))
        seconds = time.perf_counter() - start
        assert report.added == arguments.documents
        print(f"{'load, documents/s':<34}{report.added / seconds:>12,.0f}")
        print(f"{'peak memory after the load, MB':<34}{peak_memory():>12,.0f}")
        with psycopg.connect(db.url) as connection:
            total = stored_bytes(connection, name)
        print(f"{'stored bytes/document':<34}{total / report.added:>12,.0f}")
        if not arguments.identical:  # identical documents have too many matches and pairs to list
            step = max(1, arguments.documents // arguments.queries)
            some = [text for i, (_, text) in enumerate(read_documents(path)) if i % step == 0]
            measure_queries(db, corpus, some)
            start = time.perf_counter()
            pairs = sum(1 for _ in corpus.pairs())
            print(f"{'all pairs, s':<34}{time.perf_counter() - start:>12.2f}  ({pairs:,} pairs)")
        start = time.perf_counter()
        clusters = sum(1 for _ in corpus.clusters())
        seconds = time.perf_counter() - start
        print(f"{'all clusters, s':<34}{seconds:>12.2f}  ({clusters:,} clusters)")
        start = time.perf_counter()
        removed = sum(1 for _ in corpus.duplicates())
        seconds = time.perf_counter() - start
        print(f"{'what to remove, s':<34}{seconds:>12.2f}  ({removed:,} documents)")
        print(f"{'peak memory, MB':<34}{peak_memory():>12,.0f}")
        if not arguments.keep:
            corpus.drop()


if __name__ == "__main__":
    main()
