"""Long texts in SQL: the processor time of the server, which grows in proportion to the words.

    python -m benchmarks.long_texts [--words 50000 100000 500000] [--threshold 0.5] [--record]

The words have a Zipf distribution.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.harness import Bench, fresh_database, options, publish, shown

KINDS: dict[str, dict[str, Any]] = {
    "bands": {},
    "exact": {"recall": 1.0},
    "exact, unique": {"recall": 1.0, "is_unique": True},
}
STATEMENTS = {
    "add": "SELECT textsim.add('c', 'a', %(text)s)",
    "matches": "SELECT textsim.matches('c', %(near)s)",
    "update": "SELECT textsim.add('c', 'a', %(near)s)",
    "index_pending": "CALL textsim.index_pending('c')",
    "neighbours": "SELECT textsim.neighbours('c', 'a')",
    "remove": "SELECT textsim.remove('c', 'a')",
}
VOCABULARY = 200_000


def measure(bench: Bench, lengths: list[int], threshold: float) -> Iterator[list[str]]:
    """Yield the seconds of all steps for each kind of corpus and each length."""
    rng = random.Random(1)
    words = [f"w{i}" for i in range(VOCABULARY)]
    weights = list(itertools.accumulate(1 / (i + 10) for i in range(VOCABULARY)))
    for kind, settings in KINDS.items():
        bench.db.create_corpus("c", threshold=threshold, **settings)
        for length in lengths:
            text = rng.choices(words, cum_weights=weights, k=length)
            near = [*text[: -length // 50], *rng.choices(words, k=length // 50)]
            texts = {"text": " ".join(text), "near": " ".join(near)}
            spent = [
                bench.spend(partial(bench.connection.execute, statement.encode(), texts)).server
                for statement in STATEMENTS.values()
            ]
            yield [f"{kind}, {length:,} words", *map(shown, spent)]
        bench.db.drop_corpus("c")


def main() -> None:
    """Measure, and print a table."""
    parser = options(__doc__)
    parser.add_argument("--words", type=int, nargs="+", default=[50_000, 100_000, 500_000])
    parser.add_argument("--threshold", type=float, default=0.5)
    given = parser.parse_args()
    with fresh_database() as bench:
        rows = list(measure(bench, given.words, given.threshold))
    table = [["processor s of the server", *STATEMENTS], *rows]
    publish(given.record, "long_texts", {}, {"long_texts": table})


if __name__ == "__main__":
    main()
