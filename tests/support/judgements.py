"""Random judgements, and the clusters that obey them, by the plain definition."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import networkx as nx

from tests.support.groups import complete_clusters, single_clusters
from textsim_db.results import Cluster

Pair = tuple[str, str]
Judgements = Mapping[Pair, str]
VERDICTS = ("same", "different", "unsure")


def ordered(a: str, b: str) -> Pair:
    return min(a, b), max(a, b)


def random_judgements(
    rng: random.Random, keys: Sequence[str], pairs: Iterable[Pair], count: int
) -> dict[Pair, str]:
    """Return judgements of some of the pairs, of random keys, and of keys without a document."""
    near = list(pairs)
    others = [*keys, "gone 1", "gone 2"]
    judgements = {}
    for _ in range(count):
        pair = rng.choice(near) if near and rng.random() < 0.6 else rng.sample(others, 2)
        judgements[ordered(*pair)] = rng.choices(VERDICTS, (3, 2, 1))[0]
    return judgements


def judged_groups(judgements: Judgements) -> tuple[list[set[str]], list[Pair]]:
    """Return the groups that are joined, and the pairs that contradict a group."""
    graph: nx.Graph[str] = nx.Graph(pair for pair, v in judgements.items() if v == "same")
    different = [pair for pair, verdict in judgements.items() if verdict == "different"]
    joined, contradictions = [], []
    for group in nx.connected_components(graph):
        inside = [pair for pair in different if group.issuperset(pair)]
        contradictions += inside
        if not inside:
            joined.append(group)
    return joined, sorted(contradictions)


def expected_clusters_of_pairs(
    pairs: Iterable[tuple[Any, Any, float]], linkage: str, order: Sequence[Any] | None = None
) -> list[Cluster[Any]]:
    """Return the clusters of pairs, some of which come again; the keys are in this order, or sorted."""
    matches: dict[Any, float] = {}
    for a, b, value in pairs:
        matches[ordered(a, b)] = max(value, matches.get(ordered(a, b), 0))
    keys = {key: None for pair in matches for key in pair}
    return expected_clusters(keys, matches, {}, linkage, order or sorted(keys))


def expected_clusters(
    scopes: Mapping[str, str | None],
    pairs: Mapping[Pair, float],
    judgements: Judgements,
    linkage: str,
    order: Sequence[str],
) -> list[Cluster[str]]:
    """Return the clusters.

    scopes: of each document. pairs: the matches. order: the documents, the one that comes first first.
    """
    groups = [
        {key for key in group if key in scopes and scopes[key] == scope}
        for group in judged_groups(judgements)[0]
        for scope in {scopes[key] for key in group if key in scopes}
    ]
    groups = [group for group in groups if len(group) > 1]
    different = {pair for pair, verdict in judgements.items() if verdict == "different"}
    matches = {pair: value for pair, value in pairs.items() if pair not in different}
    rank = {key: place for place, key in enumerate(order)}
    if linkage == "kept":
        clusters = _kept(matches, groups, {p for p in different if set(p) <= set(scopes)}, order)
    else:
        graph: nx.Graph[Any] = nx.Graph()
        graph.add_weighted_edges_from((a, b, value) for (a, b), value in matches.items())
        for group in groups:
            weight = 2 if linkage == "complete" else 1
            graph.add_weighted_edges_from((a, b, weight) for a, b in combinations(group, 2))
        clusters = (
            single_clusters(graph)
            if linkage == "single"
            else complete_clusters(graph, rank, groups)
        )
    return sorted(clusters, key=lambda cluster: (-len(cluster.keys), cluster.keys))


def _kept(
    matches: Mapping[Pair, float],
    groups: list[set[str]],
    different: set[Pair],
    order: Sequence[str],
) -> list[Cluster[str]]:
    group_of = {key: group for group in groups for key in group}
    members: dict[str, dict[str, float]] = {}  # the links of each kept document
    kept_of: dict[str, str] = {}

    def are_apart(key: str, kept: str) -> bool:
        mine = group_of.get(key, {key})
        theirs = set().union(*(group_of.get(k, {k}) for k in (kept, *members[kept])))
        return any(ordered(a, b) in different for a in mine for b in theirs if a != b)

    for place, key in enumerate(order):
        before = [other for other in order[:place] if other in group_of.get(key, ())]
        options = [
            (-matches[ordered(key, kept)], order.index(kept), kept)
            for kept in members
            if ordered(key, kept) in matches and not are_apart(key, kept)
        ]
        if before:
            kept_of[key] = kept_of[before[0]]
            members[kept_of[key]][key] = 1.0
        elif options:
            value, _, kept_of[key] = min(options)
            members[kept_of[key]][key] = -value
        else:
            kept_of[key] = key
            members[key] = {}
    return [
        Cluster(tuple(sorted([kept, *links])), min(links.values()), kept)
        for kept, links in members.items()
        if links
    ]
