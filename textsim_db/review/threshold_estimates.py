"""The precision of thresholds, and the best of them, from the pairs that a person judged.

The judged pairs need not be a fair sample. Each of them stands for the pairs of about its similarity, as
the histogram of all pairs counts them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from textsim_db.results import Judgement
from textsim_db.review.pair_arrays import HUNDREDTHS, Pairs, bins_of
from textsim_db.settings import Verdict
from textsim_db.sketch.cost_of_bands import Z, wilson
from textsim_db.text.array_types import BoolArray, FloatArray, Int64Array

FEWEST = 10
"""The judged pairs that a suggestion needs."""
MOST_UNSEEN = 0.2
"""A suggestion needs judged pairs near to all other pairs but this share."""
_REACH = 5
"""A judged pair says something of pairs whose similarity differs by up to this many hundredths."""
AS_GOOD = 0.02
"""A threshold is about as good as the suggested one if its F1 is lower by at most this."""
HALF_WIDTH = 0.05
"""A threshold is settled when the interval of its precision is at most this far from its middle."""


class Verdicts(NamedTuple):
    """Pairs that were judged same or different; both arrays have the shape (pairs,)."""

    similarity: FloatArray
    is_same: BoolArray


class Precision(NamedTuple):
    """The share of the pairs from a threshold on that are the same."""

    threshold: float
    judged: int
    """The judged pairs from the threshold on."""
    share: float
    interval: tuple[float, float]
    """The 95 % confidence interval of the share."""
    missing: int
    """About how many more judgements make the interval narrow enough."""
    unseen: float
    """The share of the pairs that no judged pair is near to; the interval allows them any verdict."""


class Suggestion(NamedTuple):
    """The threshold with the best F1 among the pairs that were read."""

    threshold: float
    f1: float
    f1_by_hundredth: FloatArray
    """The F1 of each threshold: (HUNDREDTHS + 1,)."""

    def is_as_good(self, threshold: float) -> bool:
        """Return whether a threshold has about the best F1, too."""
        place = int(bins_of(np.array([threshold]))[0])
        return bool(self.f1_by_hundredth[place] >= self.f1 - AS_GOOD)


def verdicts_of(pairs: Pairs, judgements: Iterable[Judgement]) -> Verdicts:
    """Return the judged pairs among the kept pairs, without the pairs that somebody is unsure of."""
    judged = [
        (pairs.links.similarity[number], judgement.verdict == Verdict.SAME)
        for judgement in judgements
        if judgement.verdict != Verdict.UNSURE
        and (number := pairs.number(judgement.a, judgement.b)) is not None
    ]
    return Verdicts(
        np.array([similarity for similarity, _ in judged], float),
        np.array([is_same for _, is_same in judged], np.bool_),
    )


def precision(verdicts: Verdicts, histogram: Int64Array, threshold: float) -> Precision | None:
    """Return the precision at a threshold in hundredths, or None if no pair from there on is judged.

    histogram: the pairs by hundredths (HUNDREDTHS + 1,). The interval is Wilson's, with the effective
    number of judged pairs: Wilson, "Probable inference", 1927; Kish, "Survey Sampling", 1965.
    """
    first = int(bins_of(np.array([threshold]))[0])
    places = bins_of(verdicts.similarity)
    chosen = places >= first
    judged = int(np.count_nonzero(chosen))
    if not judged:
        return None
    weights = _weights(places[chosen], histogram, first)
    share = float(weights @ verdicts.is_same[chosen])
    effective = 1 / float(weights @ weights)
    low, high = wilson(share, effective)
    unseen = _unseen(places[chosen], histogram, first)
    interval = low * (1 - unseen), high * (1 - unseen) + unseen
    missing = _missing(interval, effective, judged, int(histogram[first:].sum()))
    return Precision(threshold, judged, share, interval, missing, unseen)


def suggest(verdicts: Verdicts, histogram: Int64Array) -> Suggestion | None:
    """Return the best threshold; None without enough verdicts of both kinds.

    A logistic curve through the verdicts says which share of the pairs of a similarity is the same. F1
    counts the pairs that were read only: nobody knows how many of the same pairs are below them.
    """
    same = np.count_nonzero(verdicts.is_same)
    if len(verdicts.is_same) < FEWEST or not 0 < same < len(verdicts.is_same):
        return None
    if _unseen(bins_of(verdicts.similarity), histogram, 0) > MOST_UNSEEN:
        return None
    middles = np.minimum((np.arange(HUNDREDTHS + 1) + 0.5) / HUNDREDTHS, 1)
    pair_counts = np.cumsum(histogram[::-1])[::-1]
    hits = np.cumsum((histogram * _fitted(verdicts, middles))[::-1])[::-1]
    f1 = 2 * hits / np.maximum(pair_counts + hits[0], 1e-9)
    # Without pairs in between, the highest threshold with the same pairs says most.
    best = int(np.flatnonzero(f1 >= f1.max() - 1e-9)[-1])
    return Suggestion(best / HUNDREDTHS, float(f1[best]), f1)


def _weights(places: Int64Array, histogram: Int64Array, first: int) -> FloatArray:
    """Return the share of the pairs from a hundredth on for which each judged pair stands.

    The pairs of a hundredth without a judged pair count for the nearest hundredth with one.
    """
    own, counts = np.unique(places, return_counts=True)
    hundredths = np.arange(first, HUNDREDTHS + 1)
    nearest = np.abs(hundredths[:, None] - own).argmin(axis=1)
    mass = np.bincount(nearest, histogram[first:], len(own))
    weights = (mass / counts)[np.searchsorted(own, places)]
    return np.asarray(weights / max(weights.sum(), 1e-9))


def _unseen(places: Int64Array, histogram: Int64Array, first: int) -> float:
    """Return the share of the pairs from a hundredth on that no judged pair is near to."""
    hundredths = np.arange(first, HUNDREDTHS + 1)
    distances = np.abs(hundredths[:, None] - np.unique(places)).min(axis=1)
    mass = histogram[first:]
    return float(mass[distances > _REACH].sum() / max(mass.sum(), 1))


def _missing(interval: tuple[float, float], effective: float, judged: int, pairs: int) -> int:
    low, high = interval
    if high - low <= 2 * HALF_WIDTH or judged >= pairs:
        return 0
    likely = (low + high) / 2
    needed = Z**2 * likely * (1 - likely) / HALF_WIDTH**2
    # A judgement counts as much as those so far.
    return max(1, min(math.ceil((needed - effective) * judged / effective), pairs - judged))


def _fitted(verdicts: Verdicts, at: FloatArray) -> FloatArray:
    """Return the share of same pairs at similarities, by logistic regression with a weak prior."""

    def inputs(similarity: FloatArray) -> FloatArray:
        scaled = (similarity - verdicts.similarity.mean()) * 10
        return np.stack([np.ones_like(scaled), scaled], axis=1)

    x, y = inputs(verdicts.similarity), verdicts.is_same.astype(float)
    slope = np.zeros(2)
    prior = np.diag([0.01, 0.1])
    for _ in range(50):
        p = _logistic(x @ slope)
        information = (x * (p * (1 - p))[:, None]).T @ x + prior
        step = np.linalg.solve(information, x.T @ (y - p) - prior @ slope)
        # Far from the best curve, a step of Newton's is too long.
        slope = slope + step / max(1.0, float(np.abs(step).max()))
    return _logistic(inputs(at) @ slope)


def _logistic(values: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))))
