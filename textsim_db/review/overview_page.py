"""The overview: counts, the histogram of similarities, and what a threshold means."""

from __future__ import annotations

import json

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from textsim_db.review.histogram import histogram_of
from textsim_db.review.pair_arrays import HUNDREDTHS, Pairs
from textsim_db.review.render import shown_threshold
from textsim_db.review.site import Site
from textsim_db.review.threshold_estimates import suggest, verdicts_of

_BESIDE = 3


class OverviewPage:
    """The first page, and the part of it that follows the handle."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def overview(self, request: Request, pairs: Pairs) -> Response:
        """Return the first page."""
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
            histogram=histogram_of(bars, thresholds),
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
