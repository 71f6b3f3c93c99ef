"""Passages with learned classes of commonness beside the plain order of shingle values, on real texts.

    python -m benchmarks.passage_classes FILE... [--documents 60000] [--record]

Each file has gzip'ed JSON lines with a text. Both corpora have the same texts. The corpus of the plain
order has learned nothing, because its first load had too few documents. Queries are documents of the
corpus. A false candidate is another document that shares a fingerprint with the query, and no passage.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import textsim_db as ts
from benchmarks.harness import (
    Bench,
    Figures,
    fresh_database,
    median_and_p99,
    options,
    publish,
    read_corpora,
    table_of,
)
from textsim_db.sketch.learn_classes import FEWEST_DOCUMENTS

PASSAGE = 13
QUERIES = 500
LABELS = {
    "rows": "fingerprints a document",
    "listed": "common shingles",
    "longest": "documents of the most common fingerprint",
    "candidates": "candidates of a query, mean",
    "candidates_p99": "&emsp;p99",
    "false": "&emsp;false candidates, mean",
    "passages": "passages found",
}
ROWS = """
SELECT count(*)::float8 / (SELECT count(*) FROM textsim.document_{id}) FROM textsim.passage_{id}
"""
LONGEST = """
SELECT max(p.documents) FROM (
    SELECT count(*) AS documents FROM textsim.passage_{id} GROUP BY fingerprint) p
"""
CANDIDATES = """
SELECT count(DISTINCT p.document_id)
FROM textsim.document_{id} d JOIN textsim.passage_{id} p ON p.fingerprint = ANY (d.fingerprints)
WHERE d.key = %s AND p.document_id <> d.id
"""


def load(bench: Bench, name: str, documents: list[tuple[str, str]], classes: bool) -> ts.Corpus:
    """Load documents into a new corpus, which learns classes or not."""
    corpus = bench.db.create_corpus(name, passages=PASSAGE)
    corpus.add_many([] if classes else documents[: FEWEST_DOCUMENTS - 1])
    corpus.add_many(documents)
    return corpus


def figures_of(bench: Bench, corpus: ts.Corpus, keys: list[str]) -> Figures:
    """Return the fingerprints and candidates of a corpus."""
    execute = bench.connection.execute
    ((corpus_id,),) = execute("SELECT id FROM textsim.corpus WHERE name = %s", [corpus.name])
    execute(f"VACUUM ANALYZE textsim.passage_{corpus_id}".encode())

    def one(statement: str, *parameters: str) -> Any:
        ((value,),) = execute(statement.format(id=corpus_id).encode(), parameters)
        return value

    candidates = [one(CANDIDATES, key) for key in keys]
    found = [corpus.passages_of(key) for key in keys]
    true = [len({passage.key for passage in passages}) for passages in found]
    common = corpus.config.common_of_passages
    return {
        "rows": one(ROWS),
        "listed": 0 if common is None else len(common.values),
        "longest": one(LONGEST),
        "candidates": sum(candidates) / len(keys),
        "candidates_p99": median_and_p99(candidates)[1],
        "false": (sum(candidates) - sum(true)) / len(keys),
        "passages": sum(map(len, found)),
    }


def measure(bench: Bench, name: str, records: list[dict[str, Any]]) -> dict[str, Figures]:
    """Return the figures of both corpora."""
    documents = [(str(number), record["text"]) for number, record in enumerate(records)]
    corpora = {
        "plain": load(bench, f"{name} plain", documents, classes=False),
        "classes": load(bench, f"{name} classes", documents, classes=True),
    }
    keys = [key for key, _ in documents[:: max(1, len(documents) // QUERIES)][:QUERIES]]
    return {side: figures_of(bench, corpus, keys) for side, corpus in corpora.items()}


def main() -> None:
    """Measure each file, and print their tables."""
    parser = options(__doc__, documents=60_000)
    parser.add_argument("files", nargs="+", type=Path)
    given = parser.parse_args()
    figures, tables = {}, {}
    with fresh_database() as bench:
        for name, records in read_corpora(given.files, given.documents):
            figures[name] = measure(bench, name, records)
            sides = {"smallest value": figures[name]["plain"], "rarest": figures[name]["classes"]}
            corner = f"{len(records):,} texts of {name}"
            tables[f"passage_classes_{name}"] = table_of(sides, LABELS, corner)
    publish(given.record, "passage_classes", figures, tables)


if __name__ == "__main__":
    main()
