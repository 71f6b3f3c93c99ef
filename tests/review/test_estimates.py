"""Precision and suggested thresholds, by simulated judges with known truth."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import numpy as np
import pytest

from tests.support.sampling import sample
from textsim_db.base.numba_compiler import BoolArray
from textsim_db.results import Judgement, Pair
from textsim_db.review.pair_arrays import Pairs, bins_of
from textsim_db.review.survey import read_pairs
from textsim_db.review.threshold_estimates import (
    STRATUM,
    Strata,
    Verdicts,
    precision,
    settling_order,
    suggest,
    verdicts_of,
)
from textsim_db.sketch.plan_options import wilson

RUNS = 10

JUDGED, FAIR = 50, 30


def judge(pairs: Pairs, same: BoolArray) -> tuple[bool, bool]:
    """Judge a fair sample, and then in turn where it settles the precision, and around the threshold.

    Return whether the suggested threshold is within 0.05 of a best one, and whether the interval of the
    precision has the truth.

    same: whether each pair is the same. Without pairs of both kinds there is no suggestion, and the fair
    sample goes on.
    """
    judged = pairs.spread[:FAIR].tolist()
    while True:
        verdicts = verdicts_of(pairs, judgements_of(pairs, same, judged))
        suggestion = suggest(verdicts, pairs.histogram)
        if len(judged) == JUDGED:
            break
        order = pairs.spread
        if suggestion is not None and len(judged) % 2:
            judgements = judgements_of(pairs, same, judged)
            settling = settling_order(pairs, judgements, suggestion.threshold)
            order = np.concatenate((settling, pairs.nearest(suggestion.threshold)))
        elif suggestion is not None:
            order = pairs.nearest(suggestion.threshold)
        judged.append(next(number for number in order.tolist() if number not in judged))
    assert suggestion is not None
    found = precision(verdicts, pairs.histogram, suggestion.threshold)
    assert found is not None
    similarity = pairs.links.similarity
    at = [similarity >= step / 100 for step in range(101)]
    f1 = np.array([2 * same[each].sum() / (each.sum() + same.sum()) for each in at])
    best = np.flatnonzero(f1 >= f1.max() - 1e-9) / 100
    is_near = bool(np.abs(best - suggestion.threshold).min() <= 0.0501)
    truth = same[similarity >= suggestion.threshold].mean()
    is_covered = bool(found.interval[0] <= truth <= found.interval[1])
    return is_near, is_covered


def judgements_of(pairs: Pairs, same: BoolArray, numbers: Iterable[int]) -> list[Judgement]:
    """Return the judgements of pairs, as somebody with known truth makes them."""
    verdicts = np.where(same, "same", "different").tolist()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    listed = [(pairs.pair(number), verdicts[number]) for number in numbers]
    return [Judgement(pair.a, pair.b, verdict, "judge", at, None) for pair, verdict in listed]


def simulated(
    rng: random.Random, turn: float, steepness: float, count: int = 4_000
) -> tuple[Pairs, BoolArray]:
    """Return pairs, of which about half are the same at the similarity turn, and whether each is."""
    pairs, same = [], []
    for i in range(count):
        similarity = 0.3 + 0.7 * min(rng.random(), rng.random())
        pairs.append(Pair(f"a{i}", f"b{i}", similarity))
        same.append(rng.random() < 1 / (1 + math.exp(-steepness * (similarity - turn))))
    *_, found = read_pairs(pairs, 0.3)
    assert isinstance(found, Pairs)
    return found, np.array(same)


@pytest.mark.parametrize(
    ("turn", "steepness"), sample([(0.6, 30), (0.5, 60), (0.7, 60)], 3, "more")
)
def test_fifty_judgements_show_the_best(rng: random.Random, turn: float, steepness: float) -> None:
    near, covered = zip(
        *(judge(*simulated(rng, turn, steepness)) for _ in range(RUNS)), strict=True
    )
    assert sum(near) >= RUNS - 3
    # An interval misses the truth in one of twenty runs: more than four of ten in one test of 16,000.
    assert sum(covered) >= RUNS - 4


def test_the_next_judgement_lowers_the_variance_most(rng: random.Random) -> None:
    pairs, same = simulated(rng, 0.7, 20, 400)
    judged = pairs.spread[:FAIR].tolist()
    judgements = judgements_of(pairs, same, judged)
    order = settling_order(pairs, judgements, 0.5).tolist()
    above = np.flatnonzero(pairs.links.similarity >= 0.5).tolist()
    assert sorted(order) == above
    assert set(order[: len(set(judged) & set(above))]) == set(judged) & set(above)
    strata = Strata.of(verdicts_of(pairs, judgements), pairs.histogram, 0.5)

    def variance(extra: int) -> float:
        judged = strata.judged + (np.arange(len(strata.lows)) == extra) + 2.0
        return float(((strata.weights * strata.deviations) ** 2 / judged).sum())

    best = min(range(len(strata.lows)), key=variance)
    first = order[len(set(judged) & set(above))]
    assert 0 <= bins_of(pairs.links.similarity[[first]])[0] - strata.lows[best] < STRATUM


def test_similarities_without_a_judged_pair_widen_the_interval() -> None:
    histogram = np.zeros(101, np.int64)
    histogram[[50, 90]] = 10**9
    verdicts = Verdicts(np.full(100, 0.9), np.ones(100, np.bool_))
    low, high = wilson(1, 100)
    found = precision(verdicts, histogram, 0.5)
    assert found is not None
    assert found.unseen == 0.5
    assert found.interval == pytest.approx((low / 2, high / 2 + 0.5))
    assert found.missing > 0
    settled = precision(verdicts, histogram, 0.8)
    assert settled is not None
    assert settled.interval == pytest.approx((low, high))
    assert settled.missing == 0


def test_an_interval_is_never_narrower_than_that_of_a_plain_sample() -> None:
    histogram = np.zeros(101, np.int64)
    histogram[[60, 100]] = 5 * 10**7, 10**9
    verdicts = Verdicts(np.array([1.0] * 20 + [0.6]), np.ones(21, np.bool_))
    found = precision(verdicts, histogram, 0.5)
    assert found is not None
    assert found.interval[0] <= wilson(1, 21)[0] + 1e-6
    # Of pairs that are all judged, the share is known.
    found = precision(verdicts, np.bincount([60] + [100] * 20, minlength=101), 0.5)
    assert found is not None
    assert found.interval == (1, 1)


def test_a_judged_pair_stands_for_the_pairs_of_its_similarity() -> None:
    histogram = np.zeros(101, np.int64)
    histogram[50], histogram[90] = 300, 100
    verdicts = Verdicts(np.array([0.5] * 10 + [0.9] * 90), np.array([False] * 10 + [True] * 90))
    found = precision(verdicts, histogram, 0.5)
    assert found is not None
    assert found.share == pytest.approx(0.25)
    assert precision(verdicts, histogram, 0.95) is None


@pytest.mark.parametrize("is_same", [lambda i: True, lambda i: False, lambda i: i < 4])
def test_too_few_verdicts_suggest_nothing(is_same: Callable[[int], bool]) -> None:
    histogram = np.full(101, 10)
    count = 9 if is_same(0) and not is_same(5) else 40
    same = np.array([is_same(i) for i in range(count)], np.bool_)
    assert suggest(Verdicts(np.linspace(0, 1, count), same), histogram) is None


def test_wilson_intervals_are_known() -> None:
    # Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I, method 3.
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15 / 148, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0, 0.1611), abs=5e-5)
    assert wilson(1 / 29, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)
