"""A corpus of many scopes beside a corpus without scopes that has the same texts.

    python -m benchmarks.scopes [--documents 1000000] [--scopes 10000] [--words 50] [--record]

Searches and single writes of the two corpora take turns. Bulk loads run one after the other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import textsim_db as ts
from benchmarks.corpus_steps import shuffled, write_texts
from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    compare,
    times_in_turns,
)

QUERIES = 1000
WRITES = 300
LABELS = {
    "rate": "load, documents/s",
    "processor_us": "load, processor us a document",
    "bytes": "stored, bytes a document",
    "query_ms": "one query, median ms",
    "query_p99_ms": "&emsp;p99 ms",
    "matches_ms": "matches(), median ms",
    "matches_p99_ms": "&emsp;p99 ms",
    "insert_ms": "add() in SQL, median ms",
    "insert_p99_ms": "&emsp;p99 ms",
    "pairs_s": "all pairs, s",
    "pairs": "&emsp;pairs",
}


class Document(NamedTuple):
    """A document of the scoped corpus; the other corpus has its key and text."""

    key: str
    text: str
    scope: str


class Side:
    """One of the two corpora."""

    def __init__(self, bench: Bench, is_scoped: bool) -> None:
        self.bench, self.is_scoped = bench, is_scoped
        self.corpus = bench.db.create_corpus("scoped" if is_scoped else "plain", scoped=is_scoped)

    def load(self, made: Iterator[Document]) -> Figures:
        """Load all documents, and list all pairs."""
        stream = made if self.is_scoped else (document[:2] for document in made)
        loaded = self.bench.load(self.corpus, stream)
        pairs = self.bench.spend(lambda: sum(1 for _ in self.corpus.pairs()))
        return loaded | {"pairs_s": pairs.seconds, "pairs": pairs.result}

    def query(self, document: Document) -> list[ts.Match]:
        """Search for a document in Python."""
        return self.corpus.query(document.text, scope=document.scope if self.is_scoped else None)

    def matches(self, document: Document) -> None:
        """Search for a document in SQL."""
        statement = "SELECT * FROM textsim.matches(%s, %s, scope => %s)"
        scope = document.scope if self.is_scoped else None
        rows = self.bench.connection.execute(statement, [self.corpus.name, document.text, scope])
        assert document.key in {row[0] for row in rows}

    def insert(self, document: Document) -> None:
        """Write a new document in SQL."""
        statement = "SELECT textsim.add(%s, %s, %s, %s)"
        scope = document.scope if self.is_scoped else None
        self.bench.connection.execute(
            statement, [self.corpus.name, f"new {document.key}", document.text, scope]
        )


def measure(bench: Bench, count: int, scopes: int, words: int) -> dict[str, Figures]:
    """Return the figures of both corpora."""
    sides = {"without scopes": Side(bench, False), f"{scopes:,} scopes": Side(bench, True)}
    with tempfile.TemporaryDirectory() as folder:
        texts = write_texts(Path(folder), documents(count, words), count)

        def made() -> Iterator[Document]:
            for number, (key, text) in enumerate(texts.documents()):
                yield Document(key, text, f"tenant {number % scopes}")

        figures = {name: side.load(made()) for name, side in sides.items()}
        chosen = list(islice(made(), 0, None, count // QUERIES))
    unlike = shuffled([document.text for document in chosen[:WRITES]], "insert")
    new = [
        document._replace(text=text) for document, text in zip(chosen[:WRITES], unlike, strict=True)
    ]
    bench.connection.execute("CHECKPOINT")
    for name, action, asked in (
        ("query", Side.query, chosen),
        ("matches", Side.matches, chosen),
        ("insert", Side.insert, new),
    ):
        calls = {
            side: lambda number, own=own, action=action, asked=asked: action(own, asked[number])
            for side, own in sides.items()
        }
        for side, times in times_in_turns(calls, len(asked)).items():
            figures[side] |= {f"{name}_{figure}": time for figure, time in times.items()}
    return figures


if __name__ == "__main__":
    corner = "{documents:,} documents of {words} words"
    compare(
        "scopes", __doc__, measure, LABELS, corner, documents=1_000_000, scopes=10_000, words=50
    )
