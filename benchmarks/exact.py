"""Storage, load, queries and pairs of an exact corpus, compared with a corpus of bands.

    python -m benchmarks.exact [--documents 100000] [--words 200] [--threshold 0.8] [--record]
    python -m benchmarks.exact --corpora FOLDER [--record]    # each .jsonl.gz of a folder
    python -m benchmarks.exact --sets 1432693 [--record]      # load and pairs of small sets

Both corpora hold the same documents. Processor times are those of the client and the server together.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

import textsim_db as ts
from benchmarks.against_side import (
    Server,
    milliseconds,
    own_seconds,
    peak_mb,
    shuffled,
    stored_bytes,
)
from benchmarks.generate import documents
from benchmarks.record import Table, add_option, markdown, record

CORPORA = {"bands": 0.95, "exact": 1.0}
"""The recall of each corpus."""
QUERIES = 1000
ELEMENTS = 1_600_000
"""The elements of generated sets."""
SKEW = 0.6
"""The exponent of the Zipf distribution of the elements; the most frequent one is in 3 % of the sets."""
SET_SIZE, SPREAD = 26.5, 1.0
"""The mean size of a generated set, and the standard deviation of the logarithm of its size."""
SETS_THRESHOLD = 0.5
LABELS = {
    "rows": "keys of a document",
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


class Measured:
    """The figures of one corpus."""

    def __init__(
        self,
        db: ts.Database,
        connection: psycopg.Connection[Any],
        name: str,
        shingle: str = "word:3",
    ) -> None:
        self.db, self.connection, self.name, self.shingle = db, connection, name, shingle
        self.server = Server(connection)
        self.figures: dict[str, float] = {}

    def load(self, texts: list[tuple[str, str]], threshold: float) -> None:
        """Load the documents into a new corpus."""
        if self.name in self.db.corpora():
            self.db.drop_corpus(self.name)
        self.corpus = self.db.create_corpus(
            self.name, self.shingle, threshold=threshold, recall=CORPORA[self.name]
        )
        count = len(texts)
        seconds, processor = self._timed(lambda: self.corpus.add_many(texts))
        self.figures |= {"load_s": seconds, "load_us": processor * 1e6 / count}
        self.figures["bytes"] = stored_bytes(self.connection, self.name) / count
        row = self.connection.execute(
            "SELECT (SELECT reltuples FROM pg_class WHERE relname = 'band_' || id) "
            "FROM textsim.corpus WHERE name = %s",
            [self.name],
        ).fetchone()
        self.figures["rows"] = (row or (0,))[0] / count

    def queries(self, texts: list[str]) -> None:
        """Query indexed texts one at a time, in batches, and from SQL."""
        for text in texts[:5]:
            self.corpus.query(text)
        times = sorted(milliseconds(self.corpus.query, text) for text in texts)
        self.figures |= {
            "query_ms": statistics.median(times),
            "p99_ms": times[int(len(times) * 0.99)],
        }
        seconds = statistics.median(milliseconds(self.corpus.query_many, texts) for _ in range(3))
        self.figures["batch_rate"] = 1000 * len(texts) / seconds
        counts = [len(self.corpus.candidates(text)) for text in texts[:200]]
        self.figures["candidates"] = statistics.mean(counts)
        self.figures["sql_match_ms"] = self._sql("SELECT textsim.matches(%s, %s)", texts[:300])
        unlike = shuffled(texts[:300], "unlike")
        self.figures["sql_none_ms"] = self._sql("SELECT textsim.matches(%s, %s)", unlike)

    def _sql(self, statement: str, texts: list[str]) -> float:
        def run(text: str) -> None:
            self.connection.execute(statement.encode(), [self.name, text], prepare=True).fetchall()

        for text in texts[:6]:
            run(text)
        return statistics.median(milliseconds(run, text) for text in texts)

    def writes(self, texts: list[str]) -> None:
        """Add documents in SQL, and roll them back."""
        rows = list(enumerate(shuffled(texts[:200], "write")))

        def write() -> None:
            with self.connection.transaction(force_rollback=True):
                for number, text in rows:
                    self.connection.execute(
                        "SELECT textsim.add(%s, %s, %s)",
                        [self.name, f"new {number}", text],
                        prepare=True,
                    )

        write()
        _, processor = self._timed(write)
        self.figures["write_ms"] = 1000 * processor / len(rows)

    def pairs(self) -> None:
        """List all pairs and all clusters."""
        pairs: list[ts.Pair] = []
        seconds, processor = self._timed(lambda: pairs.extend(self.corpus.pairs()))
        self.figures |= {"pairs_s": seconds, "pairs_processor_s": processor, "pairs": len(pairs)}
        self.figures["clusters_s"], _ = self._timed(lambda: list(self.corpus.clusters()))
        self.figures["peak_mb"] = peak_mb()

    def _timed(self, function: Callable[[], object]) -> tuple[float, float]:
        """Return the seconds that a call takes, and the seconds of processor time."""
        before, start = own_seconds() + self.server.seconds(), time.perf_counter()
        function()
        return time.perf_counter() - start, own_seconds() + self.server.seconds() - before


def sets(count: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Yield (key, text) of sets as texts whose words are the elements.

    Sizes are log-normal, and every twentieth set is a copy of the set before it, with a fifth of its
    elements drawn anew.
    """
    rng = np.random.default_rng(seed)
    sizes = np.maximum(1, rng.lognormal(np.log(SET_SIZE) - SPREAD**2 / 2, SPREAD, count)).astype(
        int
    )
    before = np.empty(0, np.int64)
    for number, size in enumerate(sizes.tolist()):
        elements = (ELEMENTS * rng.random(size) ** (1 / (1 - SKEW))).astype(np.int64)
        if number % 20 == 19:
            elements = np.append(before[len(before) // 5 :], elements[: len(before) // 5])
        before = elements
        yield f"set-{number:07d}", " ".join(map(str, elements.tolist()))


def measure_sets(count: int, threshold: float) -> tuple[dict[str, dict[str, float]], Table]:
    """Return the figures of both corpora of generated sets, and those of the load and the pairs."""
    texts = list(sets(count))
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        sides = [Measured(db, connection, name, "word:1") for name in CORPORA]
        for side in sides:
            side.load(texts, threshold)
            side.pairs()
        figures = {side.name: side.figures for side in sides}
    return figures, table(figures)


def measure(texts: list[tuple[str, str]], threshold: float) -> dict[str, dict[str, float]]:
    """Return the figures of both corpora."""
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        sides = [Measured(db, connection, name) for name in CORPORA]
        chosen = [text for _, text in texts[:: max(1, len(texts) // QUERIES)]][:QUERIES]
        for side in sides:
            side.load(texts, threshold)
        for side in sides:
            side.queries(chosen)
            side.writes(chosen)
            side.pairs()
    return {side.name: side.figures for side in sides}


def table(figures: dict[str, dict[str, float]]) -> Table:
    """Return the figures of both corpora and their ratio."""
    bands, exact = figures["bands"], figures["exact"]
    rows = [["", "bands", "exact", "exact / bands"]]
    for name, label in LABELS.items():
        if name not in exact:
            continue
        ratio = f"{exact[name] / bands[name]:.2f}" if bands[name] else ""
        rows.append([label, _shown(bands[name]), _shown(exact[name]), ratio])
    return rows


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def main() -> None:
    """Measure both corpora and print a table."""
    parser = argparse.ArgumentParser(description="what an exact corpus costs beside bands")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--threshold", type=float)
    parser.add_argument("--sets", type=int, help="number of generated sets of a few elements")
    add_option(parser)
    parser.add_argument("--corpora", type=Path, help="folder of .jsonl.gz files with id and text")
    arguments = parser.parse_args()
    threshold = arguments.threshold or (SETS_THRESHOLD if arguments.sets else 0.8)
    if arguments.corpora:
        measure_corpora(arguments.corpora, threshold, arguments.record)
        return
    if arguments.sets:
        figures, rows = measure_sets(arguments.sets, threshold)
        print(markdown(rows))
        if arguments.record:
            record("exact_sets", figures, {"exact_sets": rows})
        return
    texts = list(documents(arguments.documents, arguments.words))
    figures = measure(texts, threshold)
    print(markdown(table(figures)))
    if arguments.record:
        name = f"exact_{arguments.documents}"
        record(name, figures, {name: table(figures)})


def measure_corpora(folder: Path, threshold: float, is_recorded: bool) -> None:
    """Measure each file of a folder, and print the ratios of exact to bands."""
    names = ("bytes", "load_us", "query_ms", "batch_rate", "sql_match_ms", "pairs_processor_s")
    rows = [["exact / bands", *(LABELS[name] for name in names), "pairs: bands, exact"]]
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            texts = list({row["id"]: row["text"] for row in map(json.loads, file)}.items())
        figures = measure(texts, threshold)
        bands, exact = figures["bands"], figures["exact"]
        label = f"{path.name.removesuffix('.jsonl.gz')}, {len(texts):,}"
        ratios = [f"{exact[name] / bands[name]:.2f}" for name in names]
        rows.append([label, *ratios, f"{bands['pairs']:,.0f}, {exact['pairs']:,.0f}"])
        print(markdown(rows[:1] + rows[-1:]), flush=True)
    if is_recorded:
        record("exact_corpora", {}, {"exact_corpora": rows})


if __name__ == "__main__":
    main()
