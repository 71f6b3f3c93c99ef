"""Documents that share a 32-bit bucket by chance: the law, a simulation, and a measured corpus.

    python -m benchmarks.chance [--documents 200000] [--record]

A document has a bucket in each band, and all bands share one space of 2^32 buckets. So two unrelated
documents share bands^2 / 2^32 buckets on average. The measured corpora have random words, so their
documents are not similar. All sizes of the table up to the given one are measured. 10,000,000 documents
take some 25 GB on the disk.
"""

from __future__ import annotations

import numpy as np

from benchmarks.generate import documents
from benchmarks.harness import Figures, fresh_database, options, publish, recorded, shown

BUCKETS = 2**32
MOST_ROWS = 20_000_000
"""The rows that a simulation draws; of a larger corpus, it draws the rows of a share of the buckets."""
SIZES = (200_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
WORDS = 30
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


def measured_pairs(count: int) -> tuple[int, int]:
    """Load documents of random words; return the pairs of rows with one bucket, and the bands."""
    with fresh_database() as bench:
        bench.db.create_corpus("chance").add_many(documents(count, WORDS, planted=0))
        pairs = bench.number(PAIRS_OF_ROWS.format(bench.relation("band", "chance")))
        return int(pairs), int(
            bench.number("SELECT bands FROM textsim.corpus WHERE name = 'chance'")
        )


def seconds_of_all_pairs(scale: Figures) -> tuple[float, float]:
    """Return the seconds of all pairs for a document, and for a pair by chance, of two measured sizes.

    The time is a * documents + b * documents^2.
    """
    (n, small), (m, large) = (
        (count, scale[f"d{count}"]["all_pairs_warm_s"]) for count in (1_000_000, 10_000_000)
    )
    square = (large / m - small / n) / (m - n)
    return small / n - square * n, square


def main() -> None:
    """Print the law beside the simulation and the measurement."""
    given = options(__doc__, documents=200_000).parse_args()
    measured = {}
    for count in SIZES:
        if count <= given.documents:
            measured[count], bands = measured_pairs(count)
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
    for count in SIZES:
        simulated = simulated_pairs(count, bands, rng)
        table.append(
            [
                f"{count:,}",
                shown(candidates_by_chance(count, bands)),
                shown(pairs_by_chance(count, bands)),
                shown(simulated),
                shown(measured[count]) if count in measured else "",
                shown(linear * count),
                shown(square * count * count),
            ]
        )
    figures = {
        "measured": {f"d{count}": pairs for count, pairs in measured.items()},
        "us_of_a_chance_pair": square * 2 * BUCKETS / bands**2 * 1e6,
    }
    publish(given.record, "chance", figures, {"chance": table})


if __name__ == "__main__":
    main()
