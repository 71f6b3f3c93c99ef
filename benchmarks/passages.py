"""A corpus with passages beside a corpus without, which has the same texts.

    python -m benchmarks.passages [--documents 1000000] [--words 200] [--record]

The bulk loads run one after the other. Each query is a run of words of a document, and the middle of its
text comes from another one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.corpus_steps import write_texts
from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    compare,
    milliseconds,
    times_in_turns,
)
from textsim_db.results import Passage

PASSAGE = 13
QUERIES = 500
LONG = 100_000
"""The words of the long text."""
LABELS = {
    "rate": "load, documents/s",
    "processor_us": "load, processor us a document",
    "bytes": "stored, bytes a document",
    "add_ms": "add() in SQL, median ms",
    "query_ms": "query(), median ms",
    "query_p99_ms": "&emsp;p99 ms",
    "passages_ms": "passages(), median ms",
    "passages_p99_ms": "&emsp;p99 ms",
    "sql_ms": "passages() in SQL, median ms",
    "sql_p99_ms": "&emsp;p99 ms",
    "processor_ms": "passages(), processor ms of client and server",
    "sql_processor_ms": "passages() in SQL, processor ms",
    "found": "&emsp;quotations found, of 1",
    "long_s": f"passages() of {LONG:,} words, s",
}


class Side:
    """One of the two corpora."""

    def __init__(self, bench: Bench, passages: int | None) -> None:
        self.bench = bench
        self.name = "plain" if passages is None else "passages"
        self.corpus = bench.db.create_corpus(self.name, passages=passages)

    def add(self, number: int, text: str) -> None:
        """Write a new document in SQL."""
        self.bench.connection.execute(
            "SELECT textsim.add(%s, %s, %s)", [self.name, f"new {number}", text]
        )

    def passages_in_sql(self, text: str) -> None:
        """Find the passages of a text in SQL."""
        rows = self.bench.connection.execute(
            "SELECT * FROM textsim.passages(%s, %s)", [self.name, text]
        )
        rows.fetchall()


def quoting(texts: list[str]) -> list[str]:
    """Return texts whose middle is a quotation of 30 words of the next text."""
    result = []
    for text, next_text in zip(texts, texts[1:] + texts[:1], strict=True):
        words, quoted = text.split()[::-1], next_text.split()[20:50]
        middle = len(words) // 2
        result.append(" ".join([*words[:middle], *quoted, *words[middle + 30 :]]))
    return result


def processor_ms(bench: Bench, call: Callable[[str], object], texts: list[str]) -> float:
    """Return the processor time of a call in milliseconds, which depends little on other work."""
    return bench.spend(lambda: [call(text) for text in texts]).processor * 1000 / len(texts)


def measure(bench: Bench, count: int, words: int) -> dict[str, Figures]:
    """Return the figures of the corpus without passages, and of the other."""
    plain, quoted = Side(bench, None), Side(bench, PASSAGE)
    with tempfile.TemporaryDirectory() as folder:
        texts = write_texts(Path(folder), documents(count, words), count, QUERIES)
        loads = [bench.load(side.corpus, texts.documents()) for side in (plain, quoted)]
    queries = quoting(texts.indexed[:QUERIES])
    bench.connection.execute("CHECKPOINT")
    found = sum(has_quotation(quoted.corpus.passages(text)) for text in queries)
    for side in (plain, quoted):  # their pages were read long ago
        side.corpus.query_many(queries)
    measured = times_in_turns(
        {
            "query plain": lambda number: plain.corpus.query(queries[number]),
            "query passages": lambda number: quoted.corpus.query(queries[number]),
            "passages": lambda number: quoted.corpus.passages(queries[number]),
            "sql": lambda number: quoted.passages_in_sql(queries[number]),
        },
        len(queries),
    )
    added = times_in_turns(
        {
            plain.name: lambda number: plain.add(number, queries[number]),
            quoted.name: lambda number: quoted.add(number, queries[number]),
        },
        200,
    )
    for side, figures in zip((plain, quoted), loads, strict=True):
        query = measured[f"query {side.name}"]
        figures |= {
            "add_ms": added[side.name]["ms"],
            "query_ms": query["ms"],
            "query_p99_ms": query["p99_ms"],
        }
    long_text = " ".join(" ".join(queries).split()[:LONG])
    passages = {
        "passages_ms": measured["passages"]["ms"],
        "passages_p99_ms": measured["passages"]["p99_ms"],
        "sql_ms": measured["sql"]["ms"],
        "sql_p99_ms": measured["sql"]["p99_ms"],
        "processor_ms": processor_ms(bench, quoted.corpus.passages, queries),
        "sql_processor_ms": processor_ms(bench, quoted.passages_in_sql, queries),
        "found": found / len(queries),
        "long_s": milliseconds(quoted.corpus.passages, long_text) / 1000,
    }
    return {"without passages": loads[0], f"passages of {PASSAGE} words": loads[1] | passages}


def has_quotation(passages: list[Passage]) -> bool:
    """Say whether the thirty words that quoting() took are in a passage."""
    return any(passage.words >= 30 and passage.in_document <= 20 for passage in passages)


if __name__ == "__main__":
    corner = "{documents:,} documents of {words} words"
    compare("passages", __doc__, measure, LABELS, corner, documents=1_000_000, words=200)
