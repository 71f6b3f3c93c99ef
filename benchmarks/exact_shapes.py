"""The cost of an exact corpus beside bands, by the shape of its documents.

    python -m benchmarks.exact_shapes [--threshold 0.8] [--shape NAME ...] [--record]

With --record, the shapes of a run replace the same shapes of earlier runs.

The shapes are documents of 10 to 20,000 words, documents that fill the slots of one template, many
copies of one text, and documents of paragraphs drawn from a pool. Each shape is loaded into a corpus of
bands, with the defaults, and into an exact corpus. A figure of bands stands before that of the exact
corpus. All times are processor times of client and server together, so that other work of the machine
disturbs them little; both corpora are queried in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

import textsim_db as ts
from benchmarks.against_side import Server, stored_bytes
from benchmarks.exact import CORPORA
from benchmarks.generate import documents, vocabulary
from benchmarks.record import FOLDER, add_option, markdown, record, shown

Documents = list[tuple[str, str]]
LENGTHS = {10: 50_000, 50: 50_000, 200: 20_000, 1000: 5000, 5000: 1000, 20_000: 250}
"""The number of documents of each number of words, so that most corpora have as many words."""
QUERIES = 300
SQL_QUERIES = 50
LABELS = {
    "keys": "keys of a document",
    "bytes": "bytes a document",
    "load_us": "load, us a document",
    "median_ms": "query, median ms",
    "p99_ms": "query, p99 ms",
    "sql_median_ms": "matches(), median ms",
    "rows_read": "rows read by a query",
    "candidates": "candidates of a query",
    "clusters_s": "all clusters, s",
}
ROWS_READ = """
SELECT coalesce(sum(b.rows), 0)::float8 FROM unnest(%s::integer[]) q (bucket)
CROSS JOIN LATERAL (SELECT count(*) AS rows FROM textsim.band_{id} r WHERE r.bucket = q.bucket) b
"""


def of_words(words: int) -> Documents:
    """Return documents of a number of words; 5 % are edited copies."""
    return list(documents(LENGTHS[words], words))


def templates(slots: int, count: int = 20_000, words: int = 200) -> Documents:
    """Return documents that have one text in common, except some words at places of their own."""
    rng = np.random.default_rng(1)
    vocabulary_ = vocabulary()
    template = rng.choice(vocabulary_, words)
    made = []
    for number in range(count):
        filled = template.copy()
        filled[rng.choice(words, slots, replace=False)] = rng.choice(vocabulary_, slots)
        made.append((f"{number}", " ".join(filled)))
    return made


def copies() -> Documents:
    """Return documents of which a third are copies of one text."""
    return list(documents(60_000, identical=20_000))


def shuffled_paragraphs(count: int = 20_000, pool: int = 200, drawn: int = 10) -> Documents:
    """Return documents of paragraphs of 40 words from a pool, in random order."""
    rng = np.random.default_rng(1)
    vocabulary_ = vocabulary()
    paragraphs = [" ".join(rng.choice(vocabulary_, 40)) for _ in range(pool)]
    return [
        (f"{number}", " ".join(paragraphs[i] for i in rng.choice(pool, drawn, replace=False)))
        for number in range(count)
    ]


SHAPES: dict[str, Callable[[], Documents]] = {
    **{f"{words:,} words": partial(of_words, words) for words in LENGTHS},
    "template, 20 of 200 words differ": partial(templates, 20),
    "template, 8 of 200 words differ": partial(templates, 8, 2000),
    "20,000 copies among 60,000": copies,
    "10 paragraphs of a pool of 200": shuffled_paragraphs,
}


def nanoseconds(processes: list[int]) -> int:
    """Return the processor time of processes, of those that still run."""
    total = 0
    for number in processes:
        with suppress(FileNotFoundError, ProcessLookupError):
            line = Path(f"/proc/{number}/schedstat").read_text(encoding="utf-8")
            total += int(line.split()[0])
    return total


class Measured:
    """The figures of one corpus."""

    def __init__(self, db: ts.Database, connection: psycopg.Connection[Any], name: str) -> None:
        self._db, self._connection, self._name = db, connection, name
        self._server = Server(connection)
        self.figures: dict[str, float] = {}
        self._times: list[float] = []
        self._sql_times: list[float] = []
        self._backends: list[int] = []

    def load(self, texts: Documents, threshold: float) -> None:
        """Load the documents into a new corpus."""
        if self._name in self._db.corpora():
            self._db.drop_corpus(self._name)
        self.corpus = self._db.create_corpus(
            self._name, threshold=threshold, recall=CORPORA[self._name]
        )
        self.figures["load_us"] = self._processor_of(self._add, texts) * 1e6 / len(texts)
        self.figures["bytes"] = stored_bytes(self._connection, self._name) / len(texts)
        row = self._connection.execute(
            "SELECT id FROM textsim.corpus WHERE name = %s", [self._name]
        ).fetchone()
        assert row is not None
        self._rows_read = ROWS_READ.format(id=row[0]).encode()
        (band_rows,) = self._connection.execute(
            f"SELECT count(*) FROM textsim.band_{row[0]}".encode()
        ).fetchone() or (0,)
        self.figures["keys"] = band_rows / len(texts)

    def _add(self, texts: Documents) -> None:
        self.corpus.add_many(texts)

    def warm_up(self, texts: list[str]) -> None:
        """Query without a measurement, and find the processes that answer."""
        for text in texts:
            self.corpus.query(text)
            self._matches(text)
        rows = self._connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
        )
        self._backends = [pid for (pid,) in rows]

    def query(self, text: str, in_sql: bool) -> None:
        """Measure a query in Python, and the same in SQL."""
        self._times.append(self._milliseconds_of(self.corpus.query, text))
        if in_sql:
            self._sql_times.append(self._milliseconds_of(self._matches, text))

    def end_queries(self) -> None:
        """Take the medians and the 99th percentile of the queries."""
        times = sorted(self._times)
        self.figures["median_ms"] = statistics.median(times)
        self.figures["p99_ms"] = times[int(len(times) * 0.99)]
        self.figures["sql_median_ms"] = statistics.median(self._sql_times)

    def reads(self, texts: list[str]) -> None:
        """Count the rows that queries read, and their candidates."""
        rows = [self._count_rows_read(text) for text in texts]
        candidates = [len(self.corpus.candidates(text)) for text in texts]
        self.figures["rows_read"] = statistics.mean(rows)
        self.figures["candidates"] = statistics.mean(candidates)

    def _matches(self, text: str) -> None:
        self._connection.execute(
            "SELECT * FROM textsim.matches(%s, %s)", [self._name, text], prepare=True
        ).fetchall()

    def _count_rows_read(self, text: str) -> float:
        buckets = self.corpus.buckets(text).tolist()
        row = self._connection.execute(self._rows_read, [buckets]).fetchone()
        return float(row[0]) if row else 0.0

    def clusters(self) -> None:
        """List all clusters."""
        self.figures["clusters_s"] = self._processor_of(lambda: list(self.corpus.clusters()))

    def _processor_of(self, function: Callable[..., object], *arguments: object) -> float:
        """Return the seconds of processor time of a call, those of the server included."""
        before = time.process_time() + self._server.seconds()
        function(*arguments)
        return time.process_time() + self._server.seconds() - before

    def _milliseconds_of(self, function: Callable[[str], object], text: str) -> float:
        """Return the milliseconds of processor time of a query, those of the server included."""
        before, start = nanoseconds(self._backends), time.process_time_ns()
        function(text)
        own = time.process_time_ns() - start
        return (own + nanoseconds(self._backends) - before) / 1e6


def measure(texts: Documents, threshold: float, queries: int) -> dict[str, dict[str, float]]:
    """Return the figures of both corpora."""
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        sides = [Measured(db, connection, name) for name in CORPORA]
        chosen = [text for _, text in texts[:: max(1, len(texts) // queries)]][:queries]
        for side in sides:
            side.load(texts, threshold)
        measure_queries(sides, chosen)
        for side in sides:
            side.reads(chosen[:SQL_QUERIES])
            side.clusters()
    return {name: side.figures for name, side in zip(CORPORA, sides, strict=True)}


def measure_queries(sides: list[Measured], texts: list[str]) -> None:
    """Query both corpora in turns, so that other work of the machine delays both alike."""
    for side in sides:
        side.warm_up(texts[:6])  # psycopg prepares a statement at its fifth execution
    for number, text in enumerate(texts):
        for side in sides:
            side.query(text, number < SQL_QUERIES)
    for side in sides:
        side.end_queries()


def shape_rows(
    names: list[str], threshold: float, queries: int
) -> Iterator[tuple[str, dict[str, dict[str, float]], list[str]]]:
    """Yield the name of each shape with its figures and its row of the table."""
    for name in names:
        texts = SHAPES[name]()
        start = time.perf_counter()
        figures = measure(texts, threshold, queries)
        bands, exact = figures["bands"], figures["exact"]
        cells = [f"{shown(bands[label])} / {shown(exact[label])}" for label in LABELS]
        yield name, figures, [f"{name}; {len(texts):,} documents", *cells]
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)


def main() -> None:
    """Measure each shape and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--shape", choices=list(SHAPES), nargs="+", default=list(SHAPES))
    add_option(parser)
    arguments = parser.parse_args()
    measure(list(documents(2000, 30)), arguments.threshold, 10)  # compiles the kernels
    header = ["bands / exact", *LABELS.values()]
    all_figures, rows = recorded_shapes() if arguments.record else ({}, {})
    for name, figures, row in shape_rows(arguments.shape, arguments.threshold, arguments.queries):
        all_figures[name], rows[name] = figures, row
        print(markdown([header, row]), flush=True)
    if arguments.record:
        table = [header, *(rows[name] for name in SHAPES if name in rows)]
        record("exact_shapes", all_figures, {"exact_shapes": table})


def recorded_shapes() -> tuple[dict[str, Any], dict[str, Sequence[str]]]:
    """Return the figures and the rows by shape that an earlier run recorded, which a run adds to."""
    path = FOLDER / "exact_shapes.json"
    if not path.exists():
        return {}, {}
    contents = json.loads(path.read_text(encoding="utf-8"))
    rows = {row[0].partition(";")[0]: row for row in contents["tables"]["exact_shapes"][1:]}
    return contents["figures"], rows


if __name__ == "__main__":
    main()
