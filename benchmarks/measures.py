"""Measures of two documents of 200 words, in batches and one at a time; one core, no database.

    python -m benchmarks.measures [--pairs 20000] [--rounds 5]

Documents are rows of word ids, as in the verification of a corpus. RapidFuzz is also called directly on
the same words.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from rapidfuzz.distance import Levenshtein

from benchmarks.generate import documents
from benchmarks.record import add_option, identifier, record, shown
from textsim_db import measures
from textsim_db.compare.document_rows import Rows
from textsim_db.compare.jaccard import jaccard_pairs
from textsim_db.compare.verify import Criterion, values_of_pairs
from textsim_db.measures import MEASURES, words

SHINGLE = 3
LOOSEST = {True: 1e9, False: 0.0}
"""Thresholds that every pair reaches, for distances (True) and similarities (False)."""


def microseconds(function: Callable[[], object], pairs: int) -> float:
    """Return the time of a call for each pair, in microseconds."""
    start = time.perf_counter()
    function()
    return 1e6 * (time.perf_counter() - start) / pairs


def of_each(
    function: Callable[[list[str], list[str]], float], some: list[tuple[list[str], list[str]]]
) -> list[float]:
    """Call a measure for each pair."""
    return [function(a, b) for a, b in some]


def main() -> None:
    """Run the benchmark and print medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    add_option(parser)
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    texts = [words(text) for _, text in documents(2 * given.pairs, 200, planted=0.5)]
    vocabulary = measures.Vocabulary()
    rows = [vocabulary.encode(text) for text in texts]
    tokens = np.concatenate(rows)
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    shingles = np.array(
        [len(set(zip(row, row[1:], row[2:], strict=False))) for row in map(np.ndarray.tolist, rows)]
    )
    # Near and far pairs. Each document is in one pair only.
    left = np.arange(given.pairs) * 2
    right = left + 1
    tasks: dict[str, Callable[[], object]] = {
        f"batch: {measure.name}": partial(
            values_of_pairs,
            Criterion(measure, LOOSEST[measure.is_distance]),
            Rows(tokens, offsets, shingles, SHINGLE),
            left,
            right,
        )
        for measure in MEASURES.values()
    }
    counts = np.array([len(set(text)) for text in texts])
    single_words = Rows(tokens, offsets, counts, 1)
    tasks["batch: jaccard of words"] = lambda: jaccard_pairs(single_words, left, right)
    some = [(texts[i], texts[j]) for i, j in zip(left[:4000], right[:4000], strict=True)]
    for name in ("jaccard", "cosine_similarity", "euclidean", "manhattan", "levenshtein"):
        tasks[f"single: {name} of words"] = partial(of_each, MEASURES[name].function, some)
    tasks["RapidFuzz called directly, words"] = partial(of_each, Levenshtein.distance, some)
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(given.rounds):
        for name, task in tasks.items():
            pairs = given.pairs if name.startswith("batch") else len(some)
            times[name].append(microseconds(task, pairs))
    for name, found in times.items():
        print(f"{name:<40}{statistics.median(found):>8.2f} µs a pair")
    if given.record:
        medians = {name: statistics.median(found) for name, found in times.items()}
        cells = [[name, shown(value)] for name, value in medians.items()]
        figures = {identifier(name): value for name, value in medians.items()}
        record("measures", figures, {"measures": [["", "µs a pair"], *cells]})


if __name__ == "__main__":
    main()
