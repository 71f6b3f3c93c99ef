"""The precision of thresholds, and the best of them, from the pairs that a person judged.

The judged pairs need not be a fair sample. The pairs from a threshold on are cut into strata by
similarity. The judged pairs of a stratum stand for all its pairs, as the histogram counts them. The next
pair to judge is of the stratum in which one more judgement lowers the variance of the precision most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, FloatArray, Int64Array
from textsim_db.compare.match_rule import Criterion
from textsim_db.measures.by_name import JACCARD
from textsim_db.results import Judgement
from textsim_db.review.pair_arrays import HUNDREDTHS, Pairs, bins_of
from textsim_db.settings.named_values import Verdict
from textsim_db.sketch.plan_options import Z, wilson

FEWEST = 10
"""The judged pairs that a suggestion needs."""
MOST_UNSEEN = 0.2
"""The share of the pairs that may be in strata without a judged pair, if a threshold is suggested."""
STRATUM = 5
"""The hundredths of a stratum. Similarity 1 is a stratum of its own, because many pairs may have it."""
AS_GOOD = 0.02
"""A threshold is about as good as the suggested one if its F1 is lower by at most this."""
HALF_WIDTH = 0.05
"""A precision is settled when its interval is at most this far from its middle."""
_CURVES = 200
"""The likely curves of F1; more of them take longer."""
_CERTAIN = 0.95
"""A statement of a threshold is settled if it is true of this share of the likely curves."""


class Verdicts(NamedTuple):
    """Pairs that were judged same or different; both arrays have the shape (pairs,)."""

    similarity: FloatArray
    is_same: BoolArray


class Strata(NamedTuple):
    """The pairs from a threshold on, by ranges of similarity; all arrays have the shape (strata,)."""

    lows: Int64Array
    """The least hundredth of each stratum."""
    pairs: Int64Array
    judged: Int64Array
    same: Int64Array
    """The judged pairs that are the same."""

    @classmethod
    def of(cls, verdicts: Verdicts, histogram: Int64Array, threshold: float) -> Strata:
        """Return the strata; histogram: the pairs by hundredths (HUNDREDTHS + 1,)."""
        first = int(bins_of(np.array([threshold]))[0])
        lows = np.array([*range(first, HUNDREDTHS, STRATUM), HUNDREDTHS])
        pairs = np.add.reduceat(histogram[first:], lows - first)
        strata = _strata_of(lows, verdicts.similarity)
        counts = (
            np.bincount(strata[(strata >= 0) & chosen], minlength=len(lows))
            for chosen in (np.ones_like(verdicts.is_same), verdicts.is_same)
        )
        return cls(lows, pairs, *counts)

    @property
    def weights(self) -> FloatArray:
        return np.asarray(self.pairs / max(self.pairs.sum(), 1))

    @property
    def deviations(self) -> FloatArray:
        """The standard deviation of a verdict in each stratum.

        As if two more pairs were judged, one of them the same: a few equal verdicts are not certain.
        """
        likely = (self.same + 1) / (self.judged + 2)
        return np.asarray(np.sqrt(likely * (1 - likely)))

    def variance(self, judged: FloatArray) -> float:
        """Return the variance of the precision; judged: how many pairs of each stratum are judged.

        Cochran, "Sampling Techniques", 1977, theorem 5.3. A stratum whose pairs are all judged adds 0.
        """
        unknown = 1 - judged / np.maximum(self.pairs, judged).clip(1)
        variances = (self.weights * self.deviations) ** 2 * unknown / judged.clip(1)
        return float(variances.sum())

    def missing(self) -> Int64Array:
        """Return about how many more pairs of each stratum make the interval narrow.

        The allocation of Neyman, "On the two different aspects of the representative method", 1934: as
        many pairs of a stratum as its share of the pairs and its standard deviation say.
        """
        wanted = (HALF_WIDTH / Z) ** 2
        few, many = 0.0, float(self.pairs.sum()) + 1
        for _ in range(50):
            middle = (few + many) / 2
            is_enough = self.variance(self._allocated(middle)) <= wanted
            few, many = (few, middle) if is_enough else (middle, many)
        return np.rint(self._allocated(many) - self.judged).astype(np.int64)

    def _allocated(self, scale: float) -> FloatArray:
        """Return the judged pairs of each stratum if the scale is so much larger."""
        needed = scale * self.weights * self.deviations
        return np.asarray(np.maximum(np.minimum(needed, self.pairs), self.judged), float)


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
    """The share of the pairs in strata without a judged pair; the interval allows them any verdict."""


class Suggestion(NamedTuple):
    """The threshold with the best F1 among the pairs that were read."""

    threshold: float
    f1: float
    curves: FloatArray
    """The F1 of each hundredth, by the likeliest curve and by _CURVES others: (curves, hundredths)."""

    def is_as_good(self, threshold: float) -> bool:
        return bool(self._are_as_good(threshold)[0])

    def is_settled(self, threshold: float) -> bool:
        """Return whether nearly all likely curves say the same of a threshold."""
        first, *others = self._are_as_good(threshold).tolist()
        return int(others.count(first)) >= _CERTAIN * len(others)

    def _are_as_good(self, threshold: float) -> BoolArray:
        place = int(bins_of(np.array([threshold]))[0])
        return np.asarray(self.curves[:, place] >= self.curves.max(axis=1) - AS_GOOD)


def verdicts_of(pairs: Pairs, judgements: Iterable[Judgement]) -> Verdicts:
    """Return the judged pairs among the kept pairs, without the pairs that somebody is unsure of."""
    judged = [
        (pairs.links.similarity[number], judgement.verdict == Verdict.SAME.value)
        for judgement in judgements
        if judgement.verdict != Verdict.UNSURE.value
        and not judgement.is_stale
        and (number := pairs.number(judgement.a, judgement.b)) is not None
    ]
    return Verdicts(
        np.array([similarity for similarity, _ in judged], float),
        np.array([is_same for _, is_same in judged], np.bool_),
    )


def precision(verdicts: Verdicts, histogram: Int64Array, threshold: float) -> Precision | None:
    """Return the precision at a threshold in hundredths, or None if no pair from there on is judged.

    histogram: the pairs by hundredths (HUNDREDTHS + 1,). The interval is Wilson's, with the number of
    pairs of a plain sample that has the same variance: Wilson, "Probable inference", 1927; Kish, "Survey
    Sampling", 1965.
    """
    strata = Strata.of(verdicts, histogram, threshold)
    is_seen = (strata.judged > 0) & (strata.pairs > 0)
    if not is_seen.any():
        return None
    seen = Strata(*(column[is_seen] for column in strata))
    unseen = float(strata.weights[~is_seen].sum())
    share = float(seen.weights @ (seen.same / seen.judged))
    likely = float(seen.weights @ ((seen.same + 1) / (seen.judged + 2)))
    plain = float(((seen.weights * seen.deviations) ** 2 / seen.judged).sum())
    # Strata of few judged pairs are not known well enough to count for more pairs than were judged.
    effective = min(likely * (1 - likely) / plain, float(seen.judged.sum()))
    variance = seen.variance(seen.judged.astype(float))
    effective = effective * plain / variance if variance else math.inf
    low, high = wilson(share, effective)
    interval = low * (1 - unseen), high * (1 - unseen) + unseen
    is_narrow = interval[1] - interval[0] <= 2 * HALF_WIDTH
    missing = 0 if is_narrow else max(int(strata.missing().sum()), 1)
    return Precision(threshold, int(seen.judged.sum()), share, interval, missing, unseen)


def settling_order(pairs: Pairs, judgements: Iterable[Judgement], threshold: float) -> Int64Array:
    """Return the numbers of the kept pairs from a threshold on: the judged ones, then the next ones.

    The next pair is of the stratum in which one more judgement lowers the variance of the precision
    most: Bennett and Carvalho, "Online stratified sampling", 2010. Within a stratum it is random.
    """
    listed = list(judgements)
    strata = Strata.of(verdicts_of(pairs, listed), pairs.histogram, threshold)
    is_judged = np.zeros(len(pairs.links.left), np.bool_)
    is_judged[pairs.numbers_of(judgement[:2] for judgement in listed)] = True
    numbers = np.random.default_rng(1).permutation(len(is_judged))
    numbers = numbers[Criterion(JACCARD, threshold).accepted(pairs.links.similarity[numbers])]
    numbers = numbers[np.argsort(~is_judged[numbers], kind="stable")]
    judged, rest = np.split(numbers, [np.count_nonzero(is_judged[numbers])])
    stratum = _strata_of(strata.lows, pairs.links.similarity[rest])
    by_stratum = np.argsort(stratum, kind="stable")
    rest, stratum = rest[by_stratum], stratum[by_stratum]
    before = np.arange(len(rest)) - np.searchsorted(stratum, stratum)
    count = before + strata.judged[stratum] + 2
    gain = (strata.weights * strata.deviations)[stratum] ** 2 / (count * (count + 1))
    return np.concatenate((judged, rest[np.argsort(-gain, kind="stable")]))


def suggest(verdicts: Verdicts, histogram: Int64Array) -> Suggestion | None:
    """Return the best threshold; None without enough verdicts of both kinds.

    A logistic curve through the verdicts says which share of the pairs of a similarity is the same. F1
    counts the pairs that were read only: nobody knows how many of the same pairs are below them.
    """
    same = np.count_nonzero(verdicts.is_same)
    if len(verdicts.is_same) < FEWEST or not 0 < same < len(verdicts.is_same):
        return None
    strata = Strata.of(verdicts, histogram, 0)
    if strata.weights[strata.judged == 0].sum() > MOST_UNSEEN:
        return None
    middles = np.minimum((np.arange(HUNDREDTHS + 1) + 0.5) / HUNDREDTHS, 1)
    pair_counts = np.cumsum(histogram[::-1])[::-1]
    hits = np.cumsum((histogram * _fitted(verdicts, middles))[:, ::-1], axis=1)[:, ::-1]
    curves = 2 * hits / np.maximum(pair_counts + hits[:, :1], 1e-9)
    # Without pairs in between, the highest threshold with the same pairs says most.
    best = int(np.flatnonzero(curves[0] >= curves[0].max() - 1e-9)[-1])
    return Suggestion(best / HUNDREDTHS, float(curves[0, best]), curves)


def _strata_of(lows: Int64Array, similarity: FloatArray) -> Int64Array:
    """Return the number of the stratum of each similarity; -1 below the first."""
    return np.searchsorted(lows, bins_of(similarity), side="right") - 1


def _fitted(verdicts: Verdicts, at: FloatArray) -> FloatArray:
    """Return the share of same pairs at similarities, by logistic regression with a weak prior.

    The first row is the likeliest curve; the others are drawn around it: (1 + _CURVES, similarities).
    """

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
    drawn = np.random.default_rng(1).multivariate_normal(slope, np.linalg.inv(information), _CURVES)
    return _logistic(np.vstack([slope, drawn]) @ inputs(at).T)


def _logistic(values: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))))
