"""The overview (counts, the histogram of similarities, the effect of a threshold), and the precision."""

from __future__ import annotations

import json

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from textsim_db.review import threshold_estimates
from textsim_db.review.pair_arrays import HUNDREDTHS, Pairs
from textsim_db.review.site import Site, shown_threshold
from textsim_db.review.threshold_estimates import suggest, verdicts_of
from textsim_db.settings.corpus_settings import Verdict

_MOST_COUNTS = 4
"""The counts that are marked at the axis."""


def _round_numbers(most: int) -> list[int]:
    step = 1
    while most / step > _MOST_COUNTS:
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    return list(range(0, most + 1, step))


_BESIDE = 3


class OverviewPage:
    """The first page, and the part of it that follows the handle."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def overview(self, request: Request, pairs: Pairs) -> Response:
        site = self._site
        in_use = site.reviewed.threshold
        judgements = site.judging.all().values()
        suggestion = suggest(verdicts_of(pairs, judgements), pairs.histogram)
        thresholds = {f"in use: {shown_threshold(in_use)}": in_use}
        if suggestion is not None:
            thresholds[f"suggested: {shown_threshold(suggestion.threshold)}"] = suggestion.threshold
        bars = bars_of(pairs, int(min(thresholds.values()) * HUNDREDTHS))
        return site.render(
            "overview.html",
            threshold=in_use,
            facts=site.reviewed.facts,
            bars=bars,
            counts=_round_numbers(max(number for _, number in bars)),
            thresholds=thresholds,
            in_use=pairs.effect(round(in_use * HUNDREDTHS) / HUNDREDTHS),
            # The script shows the numbers of a threshold without asking the server.
            effects=json.dumps([each[1:] for each in pairs.effects]),
            **self._at_threshold(request, pairs),
        )

    def effect(self, request: Request, pairs: Pairs) -> Response:
        """Return what a threshold means, without the page around it."""
        return self._site.render("effect.html", **self._at_threshold(request, pairs))

    def _at_threshold(self, request: Request, pairs: Pairs) -> dict[str, object]:
        site = self._site
        threshold = site.threshold(request)
        judgements = site.judging.all()
        above, below = (site.rows(side, judgements) for side in pairs.beside(threshold, _BESIDE))
        return {
            "effect": pairs.effect(threshold),
            "sampled": pairs.sampled,
            "large": None if pairs.sampled else site.too_large(pairs.largest_cluster(threshold)),
            "above": above,
            "below": below,
        }


def bars_of(pairs: Pairs, lowest: int = HUNDREDTHS) -> list[tuple[int, int]]:
    """Return each hundredth with its pairs, from the first one with a pair, or from a lower one."""
    places = np.flatnonzero(pairs.histogram).tolist()
    first = min([lowest, HUNDREDTHS - 1, *places[:1]])
    return [(step, int(pairs.histogram[step])) for step in range(first, HUNDREDTHS + 1)]


_FAIR = 30
"""The judged pairs of a fair sample with which a review begins."""
_STEP = 0.1
"""If all verdicts are equal, the next threshold to try is so far away."""


def precision_page(site: Site, request: Request, pairs: Pairs) -> Response:
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
