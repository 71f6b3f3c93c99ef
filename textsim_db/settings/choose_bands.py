"""The numbers that follow from others: bands and rows, and the window of a passage; no NumPy."""

from __future__ import annotations

import math
from typing import NamedTuple

from textsim_db.errors import ConfigurationError
from textsim_db.settings.check_values import check_count

MIN_ROWS = 2
"""The fewest rows of a band. A single value of 16 bits gives too many candidates.

Among 1,000,000 documents, some 2,000 share a band of one row by chance.
"""
MAX_HASHES = 4096
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


class Window(NamedTuple):
    """The shingles of which a fingerprint is chosen."""

    n: int
    """The units in a shingle."""
    width: int
    """The shingles in a window."""


def window_of(length: int) -> Window:
    """Return the window of a passage of this many units.

    Longer shingles are in fewer documents by chance, and shorter ones make fewer fingerprints.
    """
    n = max(3, length // 2)
    return Window(n, length - n + 1)


def expected_fingerprints(units: float, length: int) -> float:
    """Return about how many fingerprints a text has, if no shingle comes twice.

    A window chooses another shingle than the window before with the probability 2 / (width + 1):
    Schleimer, Wilkerson and Aiken, "Winnowing", SIGMOD 2003, section 4.
    """
    width = window_of(length).width
    windows = units - length + 1
    return 0.0 if windows < 1 else 1 + (windows - 1) * 2 / (width + 1)


def banding_and_recall(
    bands: int | None, rows: int | None, threshold: float, recall: float, num_hashes: int
) -> tuple[Bands | None, float]:
    """Return the bands and rows of a corpus, None if it is exact, and the recall that they give."""
    if bands is None and rows is None:
        if recall == 1:
            return None, 1.0
        return choose_bands(threshold, recall, num_hashes), recall
    if bands is None or rows is None:
        raise ConfigurationError("bands and rows go together; set both, or neither")
    bands = check_count(bands, "bands", 1, MAX_HASHES)
    rows = check_count(rows, "rows", 1, MAX_HASHES)
    if bands * rows > num_hashes:
        raise ConfigurationError(
            f"{bands} bands of {rows} rows need {bands * rows} hashes; num_hashes is "
            f"{num_hashes}: use fewer bands, fewer rows or more hashes"
        )
    if rows < MIN_ROWS:
        raise ConfigurationError(
            f"rows is {rows}; expected {MIN_ROWS} or more: "
            "one value of 16 bits gives too many candidates"
        )
    reached = Bands(bands, rows).probability(threshold)
    if reached == 0:
        raise ConfigurationError(
            f"{bands} bands of {rows} rows find nothing at threshold {threshold}; "
            "use fewer rows or a higher threshold"
        )
    return Bands(bands, rows), reached
