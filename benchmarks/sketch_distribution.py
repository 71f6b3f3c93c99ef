"""The signatures of random pairs of sets: bias, variance, and the share of candidates.

    python -m benchmarks.sketch_distribution [--pairs 200000] [--classic-pairs 20000]

For each number of shingles and each similarity s, random pairs of sets with this similarity are made.
The first table shows the bias of the estimate, and its variance divided by the variance with independent
functions, s (1 - s) / hashes. The second table shows the probability of becoming a candidate by the
formula, 1 - (1 - s^rows)^bands, and the difference of the measured share in percentage points. Both
tables also show classic MinHash. Sets of one shingle are left out: they are equal or share nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.harness import Table, options, publish
from textsim_db.choose_bands import Bands
from textsim_db.measures import classic_minhash
from textsim_db.sketch import fast_similarity

HASHES = 128
SIZES = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
SIMILARITIES = (0.3, 0.5, 0.7, 0.8, 0.9)
BANDINGS = (Bands(18, 7), Bands(10, 12), Bands(42, 3))
_VALUES_AT_ONCE = 4_000_000

Signatures = npt.NDArray[np.int16] | npt.NDArray[np.int32]
Sketch = Callable[[npt.NDArray[np.uint64], npt.NDArray[np.int64], int], Signatures]


def fast(values: npt.NDArray[np.uint64], offsets: npt.NDArray[np.int64], seed: int) -> Signatures:
    """Return the signatures that a corpus computes."""
    return fast_similarity.signatures(values, offsets, seed, HASHES)


def classic(
    values: npt.NDArray[np.uint64], offsets: npt.NDArray[np.int64], seed: int
) -> Signatures:
    """Return classic MinHash signatures."""
    return classic_minhash.signatures(values, offsets, *classic_minhash.coefficients(seed, HASHES))


class Case(NamedTuple):
    """Pairs of sets of a size that share some shingles."""

    size: int
    shared: int

    @property
    def similarity(self) -> float:
        """The Jaccard similarity of each pair."""
        return self.shared / (2 * self.size - self.shared)


@dataclass
class Outcome:
    """Sums over the pairs of one case."""

    pairs: int = 0
    estimates: float = 0.0
    squares: float = 0.0
    candidates: dict[Bands, int] = field(default_factory=lambda: dict.fromkeys(BANDINGS, 0))

    def add(self, equal: npt.NDArray[np.bool_]) -> None:
        """Count pairs. equal: bool of shape (pairs, hashes), true if the values of a pair are equal."""
        shares = equal.mean(axis=1)
        self.pairs += len(equal)
        self.estimates += float(shares.sum())
        self.squares += float((shares**2).sum())
        for bands, rows in BANDINGS:
            by_band = equal[:, : bands * rows].reshape(len(equal), bands, rows)
            shares_bucket = np.any(np.all(by_band, axis=2), axis=1)
            self.candidates[Bands(bands, rows)] += int(shares_bucket.sum())

    @property
    def mean(self) -> float:
        """The mean estimate."""
        return self.estimates / self.pairs

    @property
    def variance(self) -> float:
        """The variance of the estimates."""
        return self.squares / self.pairs - self.mean**2


def cases() -> Iterator[Case]:
    """Yield each case once; between small sets only few similarities are possible."""
    for size in SIZES:
        shared = [round(2 * size * s / (1 + s)) for s in SIMILARITIES]
        for number in dict.fromkeys(shared):
            if 0 < number < size:
                yield Case(size, number)


def measure(case: Case, sketch: Sketch, pairs: int, seed: int) -> Outcome:
    """Return the outcome of random pairs; each piece of them has its own seed of the hashes."""
    rng = np.random.default_rng([seed, *case])
    outcome = Outcome()
    at_once = min(5000, _VALUES_AT_ONCE // (2 * case.size))
    while outcome.pairs < pairs:
        count = min(at_once, pairs - outcome.pairs)
        drawn = rng.integers(0, 2**64, (count, 2 * case.size), np.uint64, endpoint=False)
        drawn[:, case.size : case.size + case.shared] = drawn[:, : case.shared]
        offsets = np.arange(0, drawn.size + 1, case.size)
        made = sketch(drawn.ravel(), offsets, int(rng.integers(2**62)))
        outcome.add(made[0::2] == made[1::2])
    return outcome


def variance_table(measured: list[tuple[Case, Outcome, Outcome]]) -> Table:
    """Return bias and variance of the estimates."""
    rows = [["shingles", "similarity", "bias", "variance", "of classic MinHash"]]
    for case, ours, other in measured:
        s = case.similarity
        independent = s * (1 - s) / HASHES
        variances = (f"{outcome.variance / independent:.2f}" for outcome in (ours, other))
        rows.append([f"{case.size:,}", f"{s:.3f}", f"{ours.mean - s:+.5f}", *variances])
    return rows


def candidates_table(measured: list[tuple[Case, Outcome, Outcome]]) -> Table:
    """Return the probability of becoming a candidate, and by how much the shares differ from it."""
    rows = [["shingles", "similarity"]]
    for bands, rows_of_band in BANDINGS:
        rows[0] += [f"{bands} x {rows_of_band}: formula", "here", "classic"]
    for case, *outcomes in measured:
        cells = [f"{case.size:,}", f"{case.similarity:.3f}"]
        for banding in BANDINGS:
            promised = banding.probability(case.similarity)
            shares = [outcome.candidates[banding] / outcome.pairs for outcome in outcomes]
            cells += [f"{100 * promised:.2f} %"]
            cells += [f"{100 * (share - promised):+.2f}" for share in shares]
        rows.append(cells)
    return rows


def main() -> None:
    """Measure each case, and print two tables."""
    given = options(__doc__, pairs=200_000, classic_pairs=20_000, seed=1).parse_args()
    measured = [
        (
            case,
            measure(case, fast, given.pairs, given.seed),
            measure(case, classic, given.classic_pairs, given.seed),
        )
        for case in cases()
    ]
    tables = {
        "sketch_variance": variance_table(measured),
        "sketch_candidates": candidates_table(measured),
    }
    publish(given.record, "sketch_distribution", {}, tables)


if __name__ == "__main__":
    main()
