"""The first page, the list of clusters, and a cluster with its members, weakest links and neighbours."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from textsim_db.errors import ConfigurationError
from textsim_db.results import Pair
from textsim_db.results.rows import Inspection
from textsim_db.review import threshold_estimates
from textsim_db.review.pair_arrays import HUNDREDTHS, Largest, Pairs
from textsim_db.review.rendering import shown_threshold
from textsim_db.review.reviewed_clusters import ShownCluster
from textsim_db.review.site import ON_A_PAGE, Clusters, Site, whole_number
from textsim_db.review.threshold_estimates import suggest, verdicts_of
from textsim_db.settings.named_values import Verdict

_MOST_COUNTS = 4
"""The counts that are marked at the axis."""
_BESIDE = 3


def _round_numbers(most: int) -> list[int]:
    step = 1
    while most / step > _MOST_COUNTS:
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    return list(range(0, most + 1, step))


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
        largest = None if pairs.sampled else pairs.largest_cluster(threshold)
        return {
            "effect": pairs.effect(threshold),
            "sampled": pairs.sampled,
            "large": site.survey.suspicious(largest),
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
    unsure = sum(judgement.verdict == Verdict.UNSURE.value for judgement in judgements)
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


_MOST_MEMBERS = 50
_MOST_LINKS = 5
_MOST_EVENTS = 50


class ClusterPages:
    def __init__(self, site: Site) -> None:
        self._site = site

    def clusters(self, request: Request, pairs: Pairs) -> Response:
        threshold = self._site.threshold(request)
        start = whole_number(request.query_params.get("start"))
        clusters = self._clusters(pairs, threshold)
        stored = self._site.survey.clusters
        shown_clusters = clusters.page(start, ON_A_PAGE)
        first = [] if pairs.sampled else clusters.page(0, 1)
        largest = next((Largest(len(each.keys), each.representative) for each in first), None)
        begins = self._site.begins([each.representative for each in shown_clusters])
        return self._site.render(
            "clusters.html",
            clusters=list(zip(shown_clusters, begins, strict=True)),
            total=len(clusters),
            unjudged=None if pairs.sampled else pairs.effect(threshold).clusters,
            large=self._site.survey.suspicious(largest),
            threshold=threshold,
            start=start,
            more=start + ON_A_PAGE if start + ON_A_PAGE < len(clusters) else None,
            linkage=stored.linkage if stored else None,
        )

    def cluster(self, request: Request, pairs: Pairs) -> Response:
        """Return a cluster; with the parameter "inspect" also what holds it together."""
        threshold = self._site.threshold(request)
        key = request.query_params.get("key", "")
        clusters = self._clusters(pairs, threshold)
        cluster = clusters.cluster_of(key)
        if cluster is None:
            # A cluster that was cut is gone; its document is still there.
            self._site.texts(key)
            cluster = ShownCluster([key], key, None, ())
        first = cluster.representative
        stored = self._site.survey.clusters
        judgements = self._site.judging.all()
        members = [key for key in cluster.keys if key != first][:_MOST_MEMBERS]
        similarities = {link[:2]: link[2] for link in cluster.links if first in link[:2]}
        beside = [_pair_of(pairs, first, key, similarities) for key in members]
        links = cluster.links[:_MOST_LINKS]
        neighbours = list(islice(_neighbours(pairs, clusters, cluster), _MOST_LINKS))
        return self._site.render(
            "cluster.html",
            cluster=cluster,
            threshold=threshold,
            members=self._site.rows(beside, judgements),
            left_out=len(cluster.keys) - 1 - len(members),
            links=self._site.rows([_shown_pair(*link) for link in links], judgements),
            neighbours=self._site.rows(neighbours, judgements),
            linkage=stored.linkage if stored else None,
            events=clusters.events(cluster, _MOST_EVENTS),
            verdicts=list(Verdict),
            inspection=self._inspected(cluster) if "inspect" in request.query_params else None,
            is_inspected="inspect" in request.query_params,
        )

    def _clusters(self, pairs: Pairs, threshold: float) -> Clusters:
        return self._site.clusters(pairs, threshold, self._site.judging.all())

    def _inspected(self, cluster: ShownCluster) -> Inspection | None:
        try:
            return self._site.reviewed.inspect(cluster.keys)
        except ConfigurationError:  # all members were removed meanwhile
            return None


def _pair_of(
    pairs: Pairs, first: str, key: str, similarities: dict[tuple[str, str], float | None]
) -> Pair[str]:
    """Return a member beside the representative; the similarity of documents that are no pair is NaN."""
    names = min(first, key), max(first, key)
    number = pairs.number(*names)
    similarity = similarities.get(names) if number is None else pairs.pair(number).similarity
    return _shown_pair(first, key, similarity)


def _shown_pair(a: str, b: str, similarity: float | None) -> Pair[str]:
    return Pair(a, b, math.nan if similarity is None else similarity)


def _neighbours(pairs: Pairs, clusters: Clusters, cluster: ShownCluster) -> Iterator[Pair[str]]:
    """Yield the most similar pairs of a member and a document outside, one for each such cluster."""
    is_member = np.zeros(len(pairs.keys), np.bool_)
    numbers = [pairs.document(key) for key in cluster.keys]
    is_member[[number for number in numbers if number is not None]] = True
    chosen = np.flatnonzero(is_member[pairs.links.left] != is_member[pairs.links.right])
    order = chosen[np.argsort(-pairs.links.similarity[chosen], kind="stable")]
    seen: set[str] = set()
    for number in order.tolist():
        pair = pairs.pair(number)
        outside = pair.b if is_member[pairs.links.left[number]] else pair.a
        if outside in seen:
            continue
        other = clusters.cluster_of(outside)
        seen |= {outside, *(other.keys if other else ())}
        yield pair
