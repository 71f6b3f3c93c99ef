"""The overview: counts, the histogram of similarities, and what a threshold means."""

from __future__ import annotations

import json

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from textsim_db.review.pair_table import STEPS, Pairs
from textsim_db.review.site import Site

_BESIDE = 3


class OverviewPage:
    """The first page, and the part of it that follows the handle."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def overview(self, request: Request, pairs: Pairs) -> Response:
        """Return the first page."""
        site = self._site
        bars = bars_of(pairs)
        return site.render(
            "overview.html",
            documents=site.survey.documents,
            threshold=site.reviewed.threshold,
            facts=site.reviewed.facts,
            bars=bars,
            most=max((number for _, number in bars), default=1) or 1,
            in_use=pairs.effect(round(site.reviewed.threshold * STEPS) / STEPS),
            # The script shows the numbers of a threshold without asking the server.
            effects=json.dumps([each[1:] for each in pairs.effects]),
            **self._at_threshold(request, pairs),
        )

    def effect(self, request: Request, pairs: Pairs) -> Response:
        """Return what a threshold means, without the page around it."""
        return self._site.render("effect.html", **self._at_threshold(request, pairs))

    def _at_threshold(self, request: Request, pairs: Pairs) -> dict[str, object]:
        threshold = self._site.threshold(request)
        judgements = self._site.judging.all()
        above, below = (
            self._site.rows(side, judgements) for side in pairs.beside(threshold, _BESIDE)
        )
        return {
            "effect": pairs.effect(threshold),
            "sampled": pairs.sampled,
            "above": above,
            "below": below,
        }


def bars_of(pairs: Pairs) -> list[tuple[int, int]]:
    """Return each hundredth with its pairs, from the first one with a pair."""
    places = np.flatnonzero(pairs.histogram)
    first = int(places[0]) if len(places) else STEPS
    return [(step, int(pairs.histogram[step])) for step in range(first, STEPS + 1)]
