"""The page of precision: what the judgements say of each threshold."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from textsim_db.review import threshold_estimates
from textsim_db.review.overview_page import bars_of
from textsim_db.review.pair_arrays import HUNDREDTHS, Pairs
from textsim_db.review.site import Site
from textsim_db.settings import Verdict

_FAIR = 30
"""The judged pairs of a fair sample with which a review begins."""
_STEP = 0.1
"""If all verdicts are equal, the next threshold to try is so far away."""


def precision_page(site: Site, request: Request, pairs: Pairs) -> Response:
    """Return precision at each threshold, and a suggested one."""
    judgements = site.judging.all().values()
    verdicts = threshold_estimates.verdicts_of(pairs, judgements)
    at_each_threshold = [
        threshold_estimates.precision(verdicts, pairs.histogram, step / HUNDREDTHS)
        for step in range(bars_of(pairs)[0][0], HUNDREDTHS + 1)
    ]
    rows = [row for row in at_each_threshold if row is not None]
    in_use = site.reviewed.threshold
    suggestion = threshold_estimates.suggest(verdicts, pairs.histogram)
    threshold = suggestion.threshold if suggestion else in_use
    at = next((row for row in rows if round((row.threshold - threshold) * HUNDREDTHS) == 0), None)
    at = at or threshold_estimates.precision(verdicts, pairs.histogram, threshold)
    strata = threshold_estimates.Strata.of(verdicts, pairs.histogram, threshold)
    missing = strata.missing() if at is None or at.missing else 0 * strata.judged
    all_same = _common_verdict(verdicts)
    next_threshold = threshold
    if all_same is not None:
        next_threshold = min(max(in_use - _STEP if all_same else in_use + _STEP, _STEP), 1.0)
    unsure = sum(judgement.verdict == Verdict.UNSURE for judgement in judgements)
    return site.render(
        "precision.html",
        rows=[row for row in rows if round(row.threshold * HUNDREDTHS) % 5 == 0 or row is at],
        in_use=in_use,
        threshold=threshold,
        sampled=pairs.sampled,
        suggestion=suggestion,
        all_same=all_same,
        at=at,
        judged=len(judgements),
        used=len(verdicts.is_same),
        unsure=unsure,
        fair=_FAIR,
        fewest=threshold_estimates.FEWEST,
        strata=zip(*(column.tolist() for column in (*strata, missing)), strict=True),
        half_width=threshold_estimates.HALF_WIDTH,
        effect=None if pairs.sampled or not suggestion else pairs.effect(threshold),
        commands=(
            []
            if suggestion is None and all_same is None
            else site.reviewed.commands(next_threshold)
        ),
    )


def _common_verdict(verdicts: threshold_estimates.Verdicts) -> bool | None:
    """Return whether all judged pairs are the same; None if they differ in it, or are few."""
    kinds = set(verdicts.is_same.tolist())
    is_enough = len(verdicts.is_same) >= threshold_estimates.FEWEST
    return kinds.pop() if is_enough and len(kinds) == 1 else None
