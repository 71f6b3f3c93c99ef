"""Documents that share a 32-bit bucket by chance: the law, a simulation, and a measured corpus.

    python -m benchmarks.chance [--documents 200000] [--record]

A document has a bucket in each band, and all bands share one space of 2^32 buckets. So two unrelated
documents share bands^2 / 2^32 buckets on average. The measured corpus has random words, so its documents
are not similar.
"""

from __future__ import annotations

import numpy as np

from benchmarks.generate import documents
from benchmarks.harness import Bench, Figures, fresh_database, options, publish, recorded, shown

BUCKETS = 2**32
MOST_ROWS = 20_000_000
"""The rows that a simulation draws; of a larger corpus, it draws the rows of a share of the buckets."""
SIZES = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
WORDS = 200
PAIRS_OF_ROWS = """
SELECT sum(b.rows * (b.rows - 1) / 2)
FROM (SELECT count(*) AS rows FROM {} GROUP BY bucket HAVING count(*) > 1) b
"""


def candidates_by_chance(count: int, bands: int) -> float:
    """Return the mean number of documents that share a bucket with a query by chance."""
    return bands * bands * count / BUCKETS


def pairs_by_chance(count: int, bands: int) -> float:
    """Return the mean number of pairs of documents that share a bucket by chance."""
    return candidates_by_chance(count - 1, bands) * count / 2


def simulated_pairs(count: int, bands: int, rng: np.random.Generator) -> int:
    """Return the pairs of rows with one bucket, if buckets are random numbers."""
    share = 1
    while count * bands > MOST_ROWS * share:
        share *= 2
    rows = rng.binomial(count * bands, 1 / share)
    buckets = np.sort(rng.integers(0, BUCKETS // share, rows))
    sizes = np.diff(np.flatnonzero(np.diff(buckets, prepend=-1, append=BUCKETS)))
    return int((sizes * (sizes - 1) // 2).sum()) * share


def measured_pairs(bench: Bench, count: int) -> tuple[int, int]:
    """Load documents of random words; return the pairs of rows with one bucket, and the bands."""
    corpus = bench.db.create_corpus("chance")
    corpus.add_many(documents(count, WORDS, planted=0))
    pairs = bench.number(PAIRS_OF_ROWS.format(bench.relation("band", "chance")))
    return int(pairs), int(bench.number("SELECT bands FROM textsim.corpus WHERE name = 'chance'"))


def seconds_of_all_pairs(scale: Figures) -> tuple[float, float]:
    """Return the seconds of all pairs for a document, and for a pair by chance, of two measured sizes.

    The time is a * documents + b * documents^2.
    """
    (n, small), (m, large) = (
        (count, scale[f"d{count}"]["all_pairs_warm_s"]) for count in SIZES[:2]
    )
    square = (large / m - small / n) / (m - n)
    return small / n - square * n, square


def main() -> None:
    """Print the law beside the simulation and the measurement."""
    given = options(__doc__, documents=200_000).parse_args()
    with fresh_database() as bench:
        measured, bands = measured_pairs(bench, given.documents)
    rng = np.random.default_rng(1)
    linear, square = seconds_of_all_pairs(recorded("scale"))
    table = [
        [
            *(
                "documents",
                "of a query, by chance",
                "pairs by chance, law",
                "simulated",
                "measured",
            ),
            *("all pairs, linear part, s", "part by chance, s"),
        ]
    ]
    for count in (given.documents, *SIZES):
        simulated = simulated_pairs(count, bands, rng)
        table.append(
            [
                f"{count:,}",
                shown(candidates_by_chance(count, bands)),
                shown(pairs_by_chance(count, bands)),
                shown(simulated),
                shown(measured) if count == given.documents else "",
                shown(linear * count),
                shown(square * count * count),
            ]
        )
    law = pairs_by_chance(given.documents, bands)
    figures = {
        "documents": given.documents,
        "measured": measured,
        "law": law,
        "us_of_a_chance_pair": square * 2 * BUCKETS / bands**2 * 1e6,
    }
    publish(given.record, "chance", figures, {"chance": table})


if __name__ == "__main__":
    main()
