"""An exact corpus beside a corpus of bands, with the same documents.

    python -m benchmarks.exact [--documents 100000] [--words 200] [--record]
    python -m benchmarks.exact --shapes [NAME ...] [--record]
    python -m benchmarks.exact --linkages [NAME ...] [--record]

The shapes are documents of 10 to 1,000,000 words, documents that fill the slots of one template, many
copies of one text, and documents of paragraphs drawn from a pool. All times of shapes are processor
times of client and server together. --linkages measures the clusters of each linkage: of a stored
corpus, and of the same texts in memory, where the time includes all steps from the texts on. With
--record, a shape replaces the same shape of an earlier run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import textsim_db as ts
from benchmarks.corpus_steps import STEPS, Measured, Texts, measure, shuffled, write_texts
from benchmarks.generate import documents, vocabulary
from benchmarks.harness import (
    Documents,
    Figures,
    Table,
    fresh_database,
    in_turns,
    median_and_p99,
    options,
    publish,
    recorded,
    shown,
    table_of,
)
from textsim_db.settings.named_values import Linkage
from textsim_db.sketch import sketch_texts

RECALLS = {"bands": 0.95, "exact": 1.0}
"""The recall of each corpus."""
LABELS = {
    "rows": "band rows of a document",
    "bytes": "stored, bytes a document",
    "load_s": "load, s",
    "load_us": "load, processor us a document",
    "query_ms": "one query, median ms",
    "p99_ms": "one query, p99 ms",
    "candidates": "candidates of a query, mean",
    "batch_rate": "query_many, queries/s",
    "sql_match_ms": "matches() with a match, ms",
    "sql_none_ms": "matches() without a match, ms",
    "write_ms": "add() in SQL, processor ms",
    "pairs": "pairs",
    "pairs_s": "all pairs, s",
    "pairs_processor_s": "all pairs, processor s",
    "clusters_s": "all clusters, s",
    "peak_mb": "client, peak MB",
}
LENGTHS = {10: 50_000, 50: 50_000, 200: 20_000, 1000: 5000, 5000: 1000, 20_000: 250, 1_000_000: 2}
"""The number of documents of each number of words, so that most corpora have as many words."""
QUERIES = 300
SQL_QUERIES = 50
SHAPE_LABELS = {
    "keys": "band rows of a document",
    "bytes": "bytes a document",
    "load_us": "load, us a document",
    "median_ms": "query, median ms",
    "p99_ms": "query, p99 ms",
    "sql_median_ms": "matches(), median ms",
    "rows_read": "rows read by a query",
    "candidates": "candidates of a query",
    "clusters_s": "all clusters, s",
}
LINKAGE_LABELS = {
    **{f"stored_{each}_s": f"stored, {each}, s" for each in Linkage},
    **{f"memory_{each}_s": f"in memory, {each}, s" for each in Linkage},
}
ROWS_READ = """
SELECT coalesce(sum(b.rows), 0)::float8 FROM unnest(%s::integer[]) q (bucket)
CROSS JOIN LATERAL (SELECT count(*) AS rows FROM {} r WHERE r.bucket = q.bucket) b
"""


class Side(Measured):
    """A corpus of one kind, with steps that only this benchmark has."""

    def keys(self) -> Figures:
        """Count the band rows of a document."""
        band = self.bench.relation("band", self.name)
        rows = self.bench.number(f"SELECT count(*) FROM {band}")
        self.rows_read_statement = ROWS_READ.format(band)
        return {"rows": rows / len(self.corpus)}

    def write(self) -> Figures:
        """Add documents in SQL, and roll them back."""
        rows = list(enumerate(shuffled(self.texts.indexed[:200], "write")))
        statement = "SELECT textsim.add(%s, %s, %s)"

        def add_all() -> None:
            with self.bench.connection.transaction(force_rollback=True):
                for number, text in rows:
                    self.bench.connection.execute(statement, [self.name, f"new {number}", text])

        add_all()
        return {"write_ms": 1000 * self.bench.spend(add_all).processor / len(rows)}

    def find_backends(self) -> None:
        """Query without a measurement, and find the processes that answer."""
        for text in self.texts.indexed[:6]:  # psycopg prepares a statement at its fifth execution
            self.corpus.query(text)
            self.matches(text)
        rows = self.bench.connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        )
        self._backends = [pid for (pid,) in rows]

    def matches(self, text: str) -> None:
        """Search in SQL."""
        statement = "SELECT key, similarity FROM textsim.matches(%s, %s)"
        self.bench.connection.execute(statement, [self.name, text]).fetchall()

    def processor_ms(self, function: Callable[[str], object], text: str) -> float:
        """Return the milliseconds of processor time of a query, the server's included."""
        before, start = nanoseconds(self._backends), time.process_time_ns()
        function(text)
        own = time.process_time_ns() - start
        return (own + nanoseconds(self._backends) - before) / 1e6

    def rows_read(self) -> Figures:
        """Count the rows that a query reads, and its candidates."""
        texts = self.texts.indexed[:SQL_QUERIES]
        buckets = [sketch_texts.buckets(text, self.corpus.config).tolist() for text in texts]
        rows = [self.bench.number(self.rows_read_statement, some) for some in buckets]
        return {"rows_read": statistics.mean(rows), **self.candidates()}

    def linkages(self) -> Figures:
        """List the clusters of each linkage."""
        figures = {}
        for linkage in Linkage:
            spent = self.bench.spend(partial(self._count_clusters, linkage))
            figures[f"stored_{linkage}_s"] = spent.processor
        return figures

    def _count_clusters(self, linkage: Linkage) -> int:
        return sum(1 for _ in self.corpus.clusters(linkage=linkage))

    def memory(self) -> Figures:
        """Find the clusters of each linkage among the texts in memory, without the server."""
        texts = dict(self.texts.documents())
        figures = {}
        for linkage in Linkage:
            ts.clusters(self.texts.indexed[:2], linkage, **self.settings)
            start = time.process_time()
            ts.clusters(texts, linkage, **self.settings)
            figures[f"memory_{linkage}_s"] = time.process_time() - start
        return figures


def nanoseconds(processes: list[int]) -> int:
    """Return the processor time of the processes that still run."""
    total = 0
    for number in processes:
        with suppress(FileNotFoundError, ProcessLookupError):
            line = Path(f"/proc/{number}/schedstat").read_text(encoding="utf-8")
            total += int(line.split()[0])
    return total


def measure_both(
    made: Documents, count: int, steps: tuple[str, ...], queries: int = 1000, **settings: Any
) -> dict[str, Figures]:
    """Run steps on both corpora; if they count rows, measure processor times of queries too."""
    with tempfile.TemporaryDirectory() as folder, fresh_database() as bench:
        texts = write_texts(Path(folder), made, count, queries)
        sides = {
            name: Side(bench, texts, name, recall=recall, **settings)
            for name, recall in RECALLS.items()
        }
        figures = measure(sides, {step: STEPS.get(step, 1) for step in steps})
        if "rows_read" in steps:
            for name, times in processor_times(sides, texts).items():
                figures[name] |= times
    for of_side in figures.values():
        of_side["load_us"] = of_side["processor_us"]
    return figures


def processor_times(sides: Mapping[str, Side], texts: Texts) -> dict[str, Figures]:
    """Return the processor times of queries; the corpora take turns at each text."""
    for side in sides.values():
        side.find_backends()
    asked = texts.indexed

    def query(side: Side, number: int) -> float:
        return side.processor_ms(side.corpus.query, asked[number])

    def query_in_sql(side: Side, number: int) -> float:
        return side.processor_ms(side.matches, asked[number])

    times = in_turns({n: partial(query, s) for n, s in sides.items()}, len(asked))
    in_sql = in_turns(
        {n: partial(query_in_sql, s) for n, s in sides.items()}, min(len(asked), SQL_QUERIES)
    )
    figures = {}
    for name in sides:
        median, p99 = median_and_p99(times[name])
        sql_median = statistics.median(in_sql[name])
        figures[name] = {"median_ms": median, "p99_ms": p99, "sql_median_ms": sql_median}
    return figures


def measure_documents(given: argparse.Namespace) -> None:
    """Measure generated documents."""
    made = documents(given.documents, given.words)
    queries = ("query", "batches", "candidates", "sql_match", "sql_none")
    steps = ("load", "keys", *queries, "write", "pairs", "clusters")
    figures = measure_both(made, given.documents, steps, threshold=given.threshold)
    name = f"exact_{given.documents}"
    publish(given.record, name, of_labels(figures), {name: sides_table(figures)})


def of_labels(figures: dict[str, Figures]) -> dict[str, Figures]:
    """Return the figures that have a label."""
    for of_side in figures.values():
        of_side["peak_mb"] = max(of_side["peak_mb"], of_side["pairs_peak_mb"])
    return {
        name: {label: of_side[label] for label in LABELS if label in of_side}
        for name, of_side in figures.items()
    }


def sides_table(figures: dict[str, Figures]) -> Table:
    """Return the figures of both corpora, and their ratio."""
    header, *rows = table_of(of_labels(figures), LABELS)
    names = [name for name in LABELS if name in figures["exact"]]
    for name, row in zip(names, rows, strict=True):
        bands, exact = figures["bands"][name], figures["exact"][name]
        row.append(f"{exact / bands:.2f}" if bands else "")
    return [[*header, "exact / bands"], *rows]


def templates(slots: int, count: int) -> Iterator[tuple[str, str]]:
    """Yield documents of 200 words with one text in common, except some words at places of their own."""
    rng = np.random.default_rng(1)
    template = rng.choice(vocabulary(), 200)
    for number in range(count):
        filled = template.copy()
        filled[rng.choice(200, slots, replace=False)] = rng.choice(vocabulary(), slots)
        yield f"{number}", " ".join(filled)


def shuffled_paragraphs(count: int) -> Iterator[tuple[str, str]]:
    """Yield documents of 10 paragraphs of 40 words from a pool of 200, in random order."""
    rng = np.random.default_rng(1)
    pool = [" ".join(rng.choice(vocabulary(), 40)) for _ in range(200)]
    for number in range(count):
        yield f"{number}", " ".join(pool[i] for i in rng.choice(200, 10, replace=False))


SHAPES: dict[str, tuple[int, Callable[[int], Documents]]] = {
    **{f"{w:,} words": (count, partial(documents, words=w)) for w, count in LENGTHS.items()},
    "template, 20 of 200 words differ": (20_000, partial(templates, 20)),
    "template, 8 of 200 words differ": (2_000, partial(templates, 8)),
    "20,000 copies among 60,000": (60_000, lambda n: documents(n, identical=n // 3)),
    "10 paragraphs of a pool of 200": (20_000, shuffled_paragraphs),
}
"""The number of documents of each shape, and what makes them."""


def measure_shapes(given: argparse.Namespace) -> None:
    """Measure shapes, and add them to the recorded shapes."""
    steps: tuple[str, ...] = ("load", "keys", "rows_read", "clusters")
    name, labels = "exact_shapes", SHAPE_LABELS
    if given.linkages is not None:
        steps, name, labels = ("load", "linkages", "memory"), "exact_linkages", LINKAGE_LABELS
    shapes = recorded(name) if given.record else {}
    for shape in given.linkages or given.shapes or SHAPES:
        most, make = SHAPES[shape]
        count = min(most, given.documents)
        figures = measure_both(make(count), count, steps, QUERIES, threshold=given.threshold)
        for of_side in figures.values():
            of_side["keys"] = of_side.get("rows")
            of_side["clusters_s"] = of_side.get("clusters_processor_s")
        shapes[shape] = {
            side: {label: of_side[label] for label in ("documents", *labels)}
            for side, of_side in figures.items()
        }
        publish(False, "", {}, {"": shapes_table({shape: shapes[shape]}, labels)})
    publish(given.record, name, shapes, {name: shapes_table(shapes, labels)})


def shapes_table(shapes: dict[str, dict[str, Figures]], labels: dict[str, str]) -> Table:
    """Return a row for each shape, with the figure of bands before that of the exact corpus."""
    rows = [["bands / exact", *labels.values()]]
    for shape in (shape for shape in SHAPES if shape in shapes):
        bands, exact = shapes[shape]["bands"], shapes[shape]["exact"]
        cells = [f"{shown(bands[name])} / {shown(exact[name])}" for name in labels]
        count = bands.get("documents", SHAPES[shape][0])
        rows.append([f"{shape}; {count:,} documents", *cells])
    return rows


def main() -> None:
    """Measure both corpora, and print a table."""
    parser = options(__doc__, documents=100_000, words=200)
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument(
        "--shapes", choices=SHAPES, nargs="*", help="shapes, each of at most --documents"
    )
    parser.add_argument(
        "--linkages", choices=SHAPES, nargs="*", help="the same shapes, clustered by each linkage"
    )
    given = parser.parse_args()
    if given.shapes is not None or given.linkages is not None:
        measure_shapes(given)
    else:
        measure_documents(given)


if __name__ == "__main__":
    main()
