"""The steps that measure a corpus: load, queries, pairs, clusters, SQL, single writes.

exact runs them on two corpora, scale on a large corpus, and beside_checkout on two checkouts. So they
use only the public interface, and SQL that both checkouts have.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import textsim_db as ts
from benchmarks.harness import (
    Bench,
    Documents,
    Figures,
    in_turns,
    median_and_p99,
    medians,
    milliseconds,
)
from textsim_db.results import AddReport

BLOCKS = 4
STEPS = {
    "load": 1,
    "query": BLOCKS,
    "batches": 1,
    "pairs": 1,
    "clusters": 1,
    "sql_match": BLOCKS,
    "sql_none": BLOCKS,
    "add": BLOCKS,
    "insert": BLOCKS,
}
"""The number of blocks of each step. Each block of a short step has its own part of the texts."""
LABELS = {
    "rate": "load, documents/s",
    "load_s": "load, s",
    "processor_us": "load, processor us a document",
    "client_us": "&emsp;of the client",
    "server_us": "&emsp;of the server",
    "peak_mb": "client after the load, peak MB",
    "bytes": "stored, bytes a document",
    "query_ms": "one query, median ms",
    "p99_ms": "&emsp;p99 ms",
    "batch_rate": "query_many, queries/s",
    "pairs_s": "all pairs, s",
    "pairs": "&emsp;pairs",
    "clusters_s": "all clusters, s",
    "clusters": "&emsp;clusters",
    "sql_match_ms": "matches() with a match, ms",
    "sql_none_ms": "matches() without a candidate, ms",
    "add_ms": "add(), one document, ms",
    "plain_ms": "insert without the disk, plain table, ms",
    "inline_ms": "insert without the disk, inline, ms",
    "over_plain_ms": "&emsp;on top of the plain one, ms",
}

Side = Callable[[str, int], Figures]
"""Runs a block of a step, and returns its figures."""


class Texts(NamedTuple):
    """A folder with files of documents, and texts of some of them."""

    folder: Path
    indexed: list[str]
    unlike: list[str]
    """The same words in random order: the dictionary has them, but no document is similar."""

    def documents(self) -> Iterator[tuple[str, str]]:
        """Yield (key, text) of each document."""
        for path in sorted(self.folder.glob("documents*.tsv")):
            with path.open(encoding="utf-8") as file:
                for line in file:
                    key, _, text = line.rstrip("\n").partition("\t")
                    yield key, text


def write_texts(folder: Path, documents: Documents, count: int, queries: int = 1000) -> Texts:
    """Write documents, so that the memory of a load is that of the load, and choose texts of queries."""
    folder.mkdir(exist_ok=True)
    indexed = write_documents(folder / "documents.tsv", documents, max(1, count // queries))
    return keep_texts(folder, indexed)


def write_documents(path: Path, documents: Documents, step: int) -> list[str]:
    """Write documents, one a line, and return the text of each step-th one."""
    indexed = []
    with path.open("w", encoding="utf-8") as file:
        for number, (key, text) in enumerate(documents):
            file.write(f"{key}\t{text}\n")
            if number % step == 0:
                indexed.append(text)
    return indexed


def keep_texts(folder: Path, indexed: list[str]) -> Texts:
    """Write texts of documents to the folder, in random order."""
    random.Random(1).shuffle(indexed)
    texts = Texts(folder, indexed, shuffled(indexed, "unlike"))
    (folder / "texts.json").write_text(json.dumps(texts[1:]), encoding="utf-8")
    return texts


def read_texts(folder: Path) -> Texts:
    """Return what write_texts has written."""
    indexed, unlike = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    return Texts(folder, indexed, unlike)


def shuffled(texts: list[str], seed: str) -> list[str]:
    """Return the texts with their words in a random order."""
    generator = random.Random(seed)
    return [" ".join(generator.sample(words, len(words))) for words in map(str.split, texts)]


def measure(
    sides: Mapping[str, Side], steps: Mapping[str, int] = STEPS, first: int = 0
) -> dict[str, Figures]:
    """Run the steps; the sides take turns at each block, beginning with the side of number `first`."""
    figures: dict[str, Figures] = {name: {} for name in sides}
    for step, blocks in steps.items():
        turns = in_turns({name: partial(side, step) for name, side in sides.items()}, blocks, first)
        for name, measured in turns.items():
            figures[name] |= medians(measured)
    return figures


class Measured:
    """A corpus, and the steps that measure it."""

    def __init__(self, bench: Bench, texts: Texts, name: str = "measured", **settings: Any) -> None:
        self.bench, self.texts, self.name, self.settings = bench, texts, name, settings
        self.corpus: ts.Corpus
        self.block, self.blocks = 0, 1

    def __call__(self, step: str, block: int) -> Figures:
        """Run a block of a step."""
        self.block, self.blocks = block, STEPS.get(step, 1)
        figures: Figures = getattr(self, step)()
        self.bench.connection.execute("CHECKPOINT")  # a later one would disturb the other side
        return figures

    def part(self, texts: list[str]) -> list[str]:
        """Return the texts of the block."""
        return texts[self.block :: self.blocks]

    def load(self, note: Callable[[AddReport], None] | None = None) -> Figures:
        """Load the documents into a new corpus."""
        self.corpus = self.bench.db.create_corpus(self.name, **self.settings)
        return self.bench.load(self.corpus, self.texts.documents(), note)

    def query(self) -> Figures:
        """Query indexed texts one at a time."""
        for text in self.texts.indexed[:5]:
            self.corpus.query(text)
        times = [milliseconds(self.corpus.query, text) for text in self.part(self.texts.indexed)]
        median, p99 = median_and_p99(times)
        return {"query_ms": median, "p99_ms": p99}

    def batches(self) -> Figures:
        """Query indexed texts in batches."""
        texts = self.texts.indexed
        times = [milliseconds(self.corpus.query_many, texts) for _ in range(3)]
        return {"batch_rate": 1000 * len(texts) / statistics.median(times)}

    def candidates(self) -> Figures:
        """Count the candidates of indexed texts."""
        counts = [len(self.corpus.candidates(text)) for text in self.texts.indexed[:300]]
        return {"candidates": statistics.mean(counts)}

    def pairs(self) -> Figures:
        """List all pairs."""
        return self._listed("pairs", lambda: sum(1 for _ in self.corpus.pairs()))

    def clusters(self) -> Figures:
        """List all clusters."""
        return self._listed("clusters", lambda: sum(1 for _ in self.corpus.clusters()))

    def _listed(self, what: str, count: Callable[[], int]) -> Figures:
        spent = self.bench.spend(count)
        return {
            what: spent.result,
            f"{what}_s": spent.seconds,
            f"{what}_processor_s": spent.processor,
            f"{what}_client_s": spent.client,
            f"{what}_server_s": spent.server,
            f"{what}_peak_mb": spent.peak_mb,
        }

    def sql_match(self) -> Figures:
        """Call textsim.matches() with texts of documents."""
        median, p99 = self._matches(self.texts.indexed, True)
        return {"sql_match_ms": median, "sql_match_p99_ms": p99}

    def sql_none(self) -> Figures:
        """Call textsim.matches() with texts that no document is similar to."""
        return {"sql_none_ms": self._matches(self.texts.unlike, False)[0]}

    def _matches(self, texts: list[str], has_match: bool) -> tuple[float, float]:
        results = []

        def ask(text: str) -> None:
            statement = "SELECT key, similarity FROM textsim.matches(%s, %s)"
            cursor = self.bench.connection.execute(statement, [self.name, text])
            results.append(bool(cursor.fetchall()))

        for text in texts[:6]:  # psycopg prepares a statement at its fifth execution
            ask(text)
        times = [milliseconds(ask, text) for text in self.part(texts)]
        assert set(results) == {has_match}
        return median_and_p99(times)

    def add(self) -> Figures:
        """Add documents one at a time; their words are in the dictionary, and no document is similar."""
        texts = shuffled(self.part(self.texts.unlike), "add")[:50]
        times = [
            milliseconds(self.corpus.add, f"new {self.block}-{number}", text)
            for number, text in enumerate(texts)
        ]
        return {"add_ms": statistics.median(times)}

    def insert(self) -> Figures:
        """Insert the same rows into a plain table and an attached table, in turns.

        Commits do not wait for the disk, because that time varies from 0.2 to 2 ms within a minute.
        """
        execute = self.bench.connection.execute
        for table in ("plain", "inline"):
            execute(f"DROP TABLE IF EXISTS {table}_rows".encode())
            execute(f"CREATE TABLE {table}_rows (id integer PRIMARY KEY, body text)".encode())
        corpus = self.bench.db.create_corpus("inline")
        corpus.attach("inline_rows", "id", "body", "inline")
        times: dict[str, list[float]] = {"plain": [], "inline": []}
        execute("SET synchronous_commit = off")
        for number, text in enumerate(shuffled(self.part(self.texts.unlike), "insert")):
            for table, measured in times.items():
                statement = f"INSERT INTO {table}_rows VALUES (%s, %s)".encode()
                insert = partial(execute, statement, [number, text], prepare=True)
                measured.append(milliseconds(insert))
        execute("RESET synchronous_commit")
        corpus.detach("inline_rows")
        self.bench.db.drop_corpus("inline")
        plain, inline = (statistics.median(measured[5:]) for measured in times.values())
        return {"plain_ms": plain, "inline_ms": inline, "over_plain_ms": inline - plain}
