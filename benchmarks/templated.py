"""Clusters and removals of documents that share one header and footer, without and with boilerplate.

    python -m benchmarks.templated [--documents 20000] [--words 100] [--record]

The folder ../shared/data has two files of JSON lines: arxiv_revisions.jsonl.gz, whose papers come in
two versions, and arxiv.jsonl.gz. Bodies are the first words of their texts. The header and footer are
60 % of each full text. Two versions are a true pair if their bodies alone reach the threshold.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import textsim_db as ts
from benchmarks.harness import (
    Bench,
    Figures,
    compare,
    read_corpora,
)
from textsim_db.measures import jaccard, shingles

FOLDER = Path("../shared/data")
FILES = ("arxiv_revisions.jsonl.gz", "arxiv.jsonl.gz")
THRESHOLD = 0.4
"""Two texts that share nothing but 60 % of their words have a similarity of 0.43."""
SHARE = 0.01
SETTINGS: dict[str, Any] = {"threshold": THRESHOLD, "recall": 0.99}
LABELS = {
    "clusters": "clusters",
    "largest": "documents of the largest cluster",
    "removed": "documents removed",
    "false": "&emsp;of them false",
    "false_share": "&emsp;false, % of all documents",
    "found_share": "true duplicates removed, %",
    "shingles": "shingles of boilerplate",
    "seconds": "rebuild, s",
}


def bodies(count: int, words: int) -> dict[str, str]:
    """Return the first words of texts that have as many, by key."""
    chosen: dict[str, str] = {}
    for name, records in read_corpora([FOLDER / file for file in FILES], 10**6):
        for number, record in enumerate(records):
            body = str(record["text"]).split()[:words]
            if len(body) == words and len(chosen) < count:
                chosen[f"{name} {number}"] = " ".join(body)
    return chosen


def template(words: int) -> tuple[str, str]:
    """Return a header and a footer that are together 60 % of a text with a body of these words."""
    rng = random.Random(1)
    made = [f"notice{rng.randrange(10**6)}" for _ in range(words * 60 // 40)]
    return " ".join(made[: len(made) // 2]), " ".join(made[len(made) // 2 :])


def outcome(corpus: ts.Corpus, texts: dict[str, str], true: set[str]) -> Figures:
    """Return the clusters and the removals of a corpus; texts: the bodies, which decide."""
    clusters = list(corpus.clusters())
    removals = list(corpus.duplicates(linkage="kept"))
    false = sum(not is_true(texts[each.key], texts[each.kept]) for each in removals)
    found = len(true & {each.key for each in removals})
    return {
        "clusters": len(clusters),
        "largest": max((len(each.keys) for each in clusters), default=0),
        "removed": len(removals),
        "false": false,
        "false_share": 100 * false / len(texts),
        "found_share": 100 * found / len(true),
    }


def is_true(a: str, b: str) -> bool:
    """Say whether two bodies match."""
    return jaccard(shingles(a, "word:3"), shingles(b, "word:3")) >= THRESHOLD


def full_texts(texts: dict[str, str], words: int) -> Iterator[tuple[str, str]]:
    """Yield each body between the header and the footer."""
    header, footer = template(words)
    for key, body in texts.items():
        yield key, f"{header} {body} {footer}"


def measure(bench: Bench, count: int, words: int) -> dict[str, Figures]:
    """Return the figures of bodies alone, of full texts, and of full texts without boilerplate."""
    texts = bodies(count, words)
    exact = bench.db.create_corpus("exact", threshold=THRESHOLD, recall=1)
    exact.add_many(texts.items())
    true = {each.key for each in exact.duplicates(linkage="kept")}
    alone = bench.db.create_corpus("alone", **SETTINGS)
    alone.add_many(texts.items())
    full = bench.db.create_corpus("full", **SETTINGS)
    full.add_many(full_texts(texts, words))
    figures = {
        "bodies alone": outcome(alone, texts, true),
        "with header and footer": outcome(full, texts, true),
    }
    spent = bench.spend(lambda: full.rebuild(boilerplate=SHARE))
    learned = {"shingles": len(full.config.boilerplate_values), "seconds": spent.seconds}
    figures[f"the same with boilerplate {SHARE}"] = outcome(full, texts, true) | learned
    return figures


if __name__ == "__main__":
    corner = "{documents:,} bodies of {words} words"
    compare("templated", __doc__, measure, LABELS, corner, documents=20_000, words=100)
