"""Measures of two documents of 200 words, in batches and one at a time; one core, no database.

    python -m benchmarks.measures [--pairs 20000] [--rounds 5] [--record]

In a batch, documents are rows of word ids, as in the verification of a corpus. RapidFuzz is also called
directly on the same words.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial

import numpy as np
from rapidfuzz.distance import Levenshtein

from benchmarks.generate import documents
from benchmarks.harness import in_turns, milliseconds, options, publish, span, use_one_core
from textsim_db import measures
from textsim_db.compare.document_rows import Rows
from textsim_db.compare.verify import Criterion, values_of_pairs
from textsim_db.measures import MEASURES, words

SHINGLE = 3
LOOSEST = {True: 1e9, False: 0.0}
"""Thresholds that every pair reaches, for distances (True) and similarities (False)."""
SINGLE = 4000
"""The pairs that are measured one at a time."""
BATCHES = {
    "exact Jaccard, containment, overlap, Dice of shingles, in batches": [
        *("jaccard", "containment", "overlap", "dice")
    ],
    "cosine, Euclidean, Manhattan, Jaccard of counts, in batches": [
        *("cosine_similarity", "euclidean", "manhattan", "jaccard_of_counts")
    ],
    "edit distance of words, in batches": ["levenshtein"],
}
RAPIDFUZZ = "RapidFuzz called directly, two lists of words"
SINGLES = {
    "one pair at a time, lists of words: Jaccard": "jaccard",
    "one pair at a time, lists of words: cosine": "cosine_similarity",
    "one pair at a time, lists of words: edit distance": "levenshtein",
}


def encoded(texts: list[list[str]]) -> Rows:
    """Return the documents as rows of word ids."""
    vocabulary = measures.Vocabulary()
    rows = [vocabulary.encode(text) for text in texts]
    offsets = np.cumsum([0, *map(len, rows)])
    shingles = [len(set(zip(r, r[1:], r[2:], strict=False))) for r in map(np.ndarray.tolist, rows)]
    return Rows(np.concatenate(rows), offsets, np.array(shingles), SHINGLE)


def tasks(pairs: int) -> dict[tuple[str, str], Callable[[int], float]]:
    """Return what is measured, by its row of the table and its measure: microseconds a pair.

    Half of the pairs are near. Each document is in one pair only.
    """
    texts = [words(text) for _, text in documents(2 * pairs, 200, planted=0.5)]
    rows, left = encoded(texts), np.arange(pairs) * 2
    some = list(zip(texts[0::2], texts[1::2], strict=True))[:SINGLE]

    def batch(name: str, number: int) -> float:
        criterion = Criterion(MEASURES[name], LOOSEST[MEASURES[name].is_distance])
        return 1000 * milliseconds(values_of_pairs, criterion, rows, left, left + 1) / pairs

    def single(function: Callable[[list[str], list[str]], float], number: int) -> float:
        return 1000 * milliseconds(lambda: [function(a, b) for a, b in some]) / len(some)

    batches = {
        (row, name): partial(batch, name) for row, names in BATCHES.items() for name in names
    }
    singles = {
        (row, name): partial(single, MEASURES[name].function) for row, name in SINGLES.items()
    }
    return {**batches, (RAPIDFUZZ, ""): partial(single, Levenshtein.distance), **singles}


def main() -> None:
    """Measure, and print medians; a row of several measures has the smallest and the largest."""
    given = options(__doc__, pairs=20_000, rounds=5).parse_args()
    use_one_core()
    measured = tasks(given.pairs)
    sides = {str(task): function for task, function in measured.items()}
    in_turns(sides, 1)  # compiles the kernels
    medians: dict[str, list[float]] = {}
    for (row, _), times in zip(measured, in_turns(sides, given.rounds).values(), strict=True):
        medians.setdefault(row, []).append(statistics.median(times))
    rows = [[row, span(values)] for row, values in medians.items()]
    publish(given.record, "measures", {}, {"measures": [["", "µs a pair"], *rows]})


if __name__ == "__main__":
    main()
