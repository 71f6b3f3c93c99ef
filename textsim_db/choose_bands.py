"""The choice of bands and rows: they follow from the threshold, the recall and the number of hashes."""

from __future__ import annotations

import math
from typing import NamedTuple

from textsim_db.errors import ConfigurationError

MIN_ROWS = 2
"""The fewest rows of a band. A single value of 16 bits gives too many candidates.

Among 1,000,000 documents, some 2,000 share a band of one row by chance.
"""
_NEARLY_1 = math.nextafter(1, 0)


class Bands(NamedTuple):
    """How a signature is divided: `bands` buckets of `rows` values each."""

    bands: int
    rows: int

    def probability(self, similarity: float) -> float:
        """Return the probability that a pair of this similarity shares a bucket.

        It is 1 - (1 - s^rows)^bands, and 1 only for similarity 1. Leskovec, Rajaraman and Ullman,
        "Mining of Massive Datasets", section 3.4.2.

            >>> round(Bands(18, 7).probability(0.8), 3)
            0.986
        """
        probability = float(1 - (1 - similarity**self.rows) ** self.bands)
        if similarity == 1:
            return probability
        return min(probability, _NEARLY_1)  # rounding may give 1


def probability_of(banding: Bands | None, threshold: float, similarity: float) -> float:
    """Return the probability that a pair of this similarity becomes a candidate.

    Without a banding, in an exact corpus, it is 1 from the threshold on; pairs below it may become
    candidates too, for which 0 stands.
    """
    return float(similarity >= threshold) if banding is None else banding.probability(similarity)


def choose_bands(threshold: float, recall: float, num_hashes: int) -> Bands:
    """Return the most selective banding that keeps the recall at the threshold.

    It is the largest r from 2 on with 1 - (1 - threshold^r)^b >= recall and b = num_hashes div r.
    Raises ConfigurationError if even two rows a band do not reach the recall.
    """
    for rows in range(num_hashes, MIN_ROWS - 1, -1):
        banding = Bands(num_hashes // rows, rows)
        if banding.probability(threshold) >= recall:
            return banding
    best = Bands(num_hashes // MIN_ROWS, MIN_ROWS).probability(threshold)
    raise ConfigurationError(
        f"no bands of {num_hashes} hashes reach recall {recall} at threshold {threshold}; the best is "
        f"{best:.6f}, with {MIN_ROWS} rows a band: use recall 1, which makes an exact corpus, more "
        "hashes, a lower recall or a higher threshold"
    )
