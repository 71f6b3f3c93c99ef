"""Promised recall beside recall measured by brute force, and precision, at several thresholds.

    python -m benchmarks.recall [--corpora FOLDER] [--documents 20000]

Each set of documents is indexed once and rebuilt for each threshold. Recall compares a sample of
documents with all documents. Precision compares every reported pair again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import textsim_db as ts
from benchmarks.generate import pair_of_similarity, vocabulary
from benchmarks.harness import fresh_database, options, publish, read_corpora
from textsim_db.text.shingles import shingles

THRESHOLDS = (0.5, 0.7, 0.8, 0.9)
Documents = list[tuple[str, str]]


def generated(count: int, seed: int) -> Documents:
    """Return pairs of documents with similarities from 0.4 to 1."""
    rng = np.random.default_rng(seed)
    words = vocabulary(50_000).tolist()
    made: Documents = []
    for number in range(count // 2):
        a, b, _ = pair_of_similarity(rng, words, 200, rng.uniform(0.4, 1))
        made += [(f"{number} a", a), (f"{number} b", b)]
    return made


def workloads(given: argparse.Namespace) -> Iterator[tuple[str, Documents]]:
    """Yield the generated documents, and the documents of each file of the folder."""
    yield "generated", generated(given.documents, given.seed)
    paths = sorted(given.corpora.glob("*.jsonl.gz")) if given.corpora else []
    for name, read in read_corpora(paths, given.documents):
        yield name, [(str(i), document["text"]) for i, document in enumerate(read)]


def precision(corpus: ts.Corpus, documents: Documents, most: int = 20_000) -> float | None:
    """Return the share of reported pairs whose similarity is right and reaches the threshold."""
    texts = dict(documents)
    right = count = 0
    for pair in corpus.pairs():
        a, b = (set(shingles(texts[key], str(corpus.config.shingle))) for key in pair[:2])
        right += pair.similarity == len(a & b) / len(a | b) >= corpus.config.threshold
        count += 1
        if count == most:
            break
    return right / count if count else None


def measure(name: str, documents: Documents, given: argparse.Namespace) -> Iterator[list[str]]:
    """Yield a row of the table for each threshold."""
    with fresh_database() as bench:
        corpus = bench.db.create_corpus("recall", threshold=THRESHOLDS[0], recall=given.recall)
        corpus.add_many(documents)
        for threshold in THRESHOLDS:
            corpus.rebuild(threshold=threshold, recall=given.recall)
            report = corpus.measure_recall(sample=given.sample, seed=given.seed)
            low, high = report.interval
            measured, promised, precise = (
                report.recall,
                report.promised,
                precision(corpus, documents),
            )
            yield [
                f"{name}, {len(documents):,}",
                f"{threshold}",
                f"{corpus.config.bands} x {corpus.config.rows}",
                f"{report.pairs:,}",
                "" if measured is None else f"{measured:.4f} ({low:.4f} to {high:.4f})",
                "" if promised is None else f"{promised:.4f}",
                "" if precise is None else f"{precise}",
            ]


def main() -> None:
    """Measure each set of documents, and print a table."""
    parser = options(__doc__, documents=20_000, sample=3000, seed=1)
    parser.add_argument("--corpora", type=Path, help="a folder of gzip'ed JSON lines with text")
    parser.add_argument("--recall", type=float, default=0.95)
    given = parser.parse_args()
    header = "documents, threshold, bands x rows, pairs, measured (95 %), promised, precision"
    table = [header.split(", ")]
    for name, documents in workloads(given):
        table += measure(name, documents, given)
    publish(given.record, "recall", {}, {"recall": table})


if __name__ == "__main__":
    main()
