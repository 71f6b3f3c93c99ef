"""A judge with known truth, who judges as the pages of the review suggest."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import BoolArray
from textsim_db.results import Judgement
from textsim_db.review.pair_arrays import Pairs
from textsim_db.review.threshold_estimates import precision, settling_order, suggest, verdicts_of

JUDGED, FAIR = 50, 30


class Outcome(NamedTuple):
    """The result of fifty judgements."""

    is_near: bool
    """Whether the suggested threshold is within 0.05 of a best one."""
    is_covered: bool
    """Whether the interval of the precision has the truth."""


def judge(pairs: Pairs, same: BoolArray) -> Outcome:
    """Judge a fair sample, and then in turn where it settles the precision, and around the threshold.

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
    return Outcome(is_near, is_covered)


def judgements_of(pairs: Pairs, same: BoolArray, numbers: Iterable[int]) -> list[Judgement]:
    """Return the judgements of pairs, as somebody with known truth makes them."""
    verdicts = np.where(same, "same", "different").tolist()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    listed = [(pairs.pair(number), verdicts[number]) for number in numbers]
    return [Judgement(pair.a, pair.b, verdict, "judge", at, None) for pair, verdict in listed]
