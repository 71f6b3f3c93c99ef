"""A judge with known truth, who judges as the pages of the review suggest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.review.pair_arrays import Pairs
from textsim_db.review.threshold_estimates import Verdicts, precision, suggest
from textsim_db.text.array_types import BoolArray

JUDGED, FAIR = 50, 30


class Outcome(NamedTuple):
    """The result of fifty judgements."""

    is_near: bool
    """Whether the suggested threshold is within 0.05 of a best one."""
    is_covered: bool
    """Whether the interval of the precision has the truth."""


def judge(pairs: Pairs, same: BoolArray) -> Outcome:
    """Judge a fair sample, and then around the suggested threshold, as the page says.

    same: whether each pair is the same. Without pairs of both kinds there is no suggestion, and the fair
    sample goes on.
    """
    similarity = pairs.links.similarity
    judged = pairs.spread[:FAIR].tolist()
    while True:
        verdicts = Verdicts(similarity[judged], same[judged])
        suggestion = suggest(verdicts, pairs.histogram)
        if len(judged) == JUDGED:
            break
        order = pairs.spread if suggestion is None else pairs.nearest(suggestion.threshold)
        judged.append(next(number for number in order.tolist() if number not in judged))
    assert suggestion is not None
    found = precision(verdicts, pairs.histogram, suggestion.threshold)
    assert found is not None
    at = [similarity >= step / 100 for step in range(101)]
    f1 = np.array([2 * same[each].sum() / (each.sum() + same.sum()) for each in at])
    best = np.flatnonzero(f1 >= f1.max() - 1e-9) / 100
    is_near = bool(np.abs(best - suggestion.threshold).min() <= 0.0501)
    truth = same[similarity >= suggestion.threshold].mean()
    is_covered = bool(found.interval[0] <= truth <= found.interval[1])
    return Outcome(is_near, is_covered)
