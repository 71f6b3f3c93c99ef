"""The page of precision: what the judgements say of each threshold."""

from __future__ import annotations

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from textsim_db.review import estimates
from textsim_db.review.overview_page import bars_of
from textsim_db.review.pair_table import STEPS, Pairs
from textsim_db.review.site import Site
from textsim_db.settings import Verdict


class PrecisionPage:
    """Precision at each threshold, and a suggested one."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def precision(self, request: Request, pairs: Pairs) -> Response:
        """Return the page."""
        verdicts = self._verdicts(pairs)
        found = [
            estimates.precision(verdicts, pairs.histogram, step / STEPS)
            for step in range(bars_of(pairs)[0][0], STEPS + 1)
        ]
        rows = [row for row in found if row is not None]
        suggestion = estimates.suggest(verdicts, pairs.histogram)
        threshold = suggestion.threshold if suggestion else self._site.reviewed.threshold
        at = next((row for row in rows if round((row.threshold - threshold) * STEPS) == 0), None)
        return self._site.render(
            "precision.html",
            rows=[row for row in rows if round(row.threshold * STEPS) % 5 == 0 or row is at],
            suggestion=suggestion,
            at=at,
            judged=len(verdicts.is_same),
            fewest=estimates.FEWEST,
            half_width=estimates.HALF_WIDTH,
            effect=None if pairs.sampled or not suggestion else pairs.effect(threshold),
            commands=self._site.reviewed.commands(threshold) if suggestion else [],
        )

    def _verdicts(self, pairs: Pairs) -> estimates.Verdicts:
        """Return the judged pairs among the kept pairs, without those that somebody is unsure of."""
        judged = [
            (pairs.links.similarity[number], judgement.verdict == Verdict.SAME)
            for (a, b), judgement in self._site.judging.all().items()
            if judgement.verdict != Verdict.UNSURE and (number := pairs.number(a, b)) is not None
        ]
        return estimates.Verdicts(
            np.array([similarity for similarity, _ in judged], float),
            np.array([is_same for _, is_same in judged], np.bool_),
        )
