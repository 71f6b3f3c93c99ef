"""Random pairs and judgements, and the clusters that follow from them by the plain definition."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import networkx as nx

from textsim_db.results import Cluster
from textsim_db.settings.named_values import Verdict, VerdictName

Pair = tuple[str, str]
Judgements = Mapping[Pair, str]
VERDICTS = tuple(Verdict)


def ordered(a: str, b: str) -> Pair:
    return min(a, b), max(a, b)


def random_judgements(
    rng: random.Random, keys: Sequence[str], pairs: Iterable[Pair], count: int
) -> dict[Pair, VerdictName]:
    """Return judgements of some of the pairs, of random keys, and of keys without a document."""
    near = list(pairs)
    others = [*keys, "gone 1", "gone 2"]
    judgements: dict[Pair, VerdictName] = {}
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
        is_single = linkage == "single"
        clusters = single_clusters(graph) if is_single else complete_clusters(graph, rank, groups)
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
    of = {kept: links for kept, links in members.items() if links}
    return [Cluster(tuple(sorted([kept, *of[kept]])), min(of[kept].values()), kept) for kept in of]


GivenPair = tuple[Any, Any, float]


def random_pairs(rng: random.Random) -> list[GivenPair]:
    """Return pairs of integers in chains, cliques and at random; many have equal similarities."""
    values = (1.0, 0.9, 0.8, 0.7)
    keys = rng.sample(range(100), 30)
    ends = [*pairwise(keys[:8]), *combinations(keys[8:13], 2)]
    ends += ((a, b) for a, b in (rng.sample(keys[10:], 2) for _ in range(rng.randrange(40))))
    ends += ((b, a) for a, b in rng.sample(ends, 3))
    return [(a, b, rng.choice(values)) for a, b in ends]


def single_clusters(graph: nx.Graph[Any]) -> list[Cluster[Any]]:
    """Return the connected components of a graph, with their weakest links."""
    clusters = []
    for keys in nx.connected_components(graph):
        tree = nx.maximum_spanning_tree(graph.subgraph(keys))
        weakest = min(weight for _, _, weight in tree.edges.data("weight"))
        clusters.append(Cluster(tuple(sorted(keys)), weakest))
    return clusters


def complete_clusters(
    graph: nx.Graph[Any], rank: dict[Any, int], groups: Iterable[set[Any]] = ()
) -> list[Cluster[Any]]:
    """Merge the two clusters whose least similar pair is the most similar, again and again.

    groups: the clusters to begin with, and the copies; every other key begins as a cluster of its own.
    """
    all_groups = list(groups)
    clusters = []
    for keys in nx.connected_components(graph):
        own = [group for group in all_groups if group <= keys]
        clusters += _complete_clusters(graph.subgraph(keys), rank, own)
    return clusters


def _complete_clusters(
    graph: nx.Graph[Any], rank: dict[Any, int], groups: list[set[Any]]
) -> list[Cluster[Any]]:
    lowest = _lowest_copies(graph, rank)

    def place(a: Any, b: Any) -> tuple[Any, ...]:
        sets = sorted((lowest[a], lowest[b]))
        return (-graph.edges[a, b]["weight"], *sets, *sorted((rank[a], rank[b])))

    copies = [{key for key in graph if lowest[key] == first} for first in set(lowest.values())]
    grouped = set().union(*groups)
    clusters = [(frozenset(group), 1.0) for group in groups]
    clusters += [(frozenset(keys), 1.0) for keys in copies if not keys & grouped]
    while True:
        possible = [
            (max(place(a, b) for a in x[0] for b in y[0]), x, y)
            for x, y in combinations(clusters, 2)
            if all(graph.has_edge(a, b) for a in x[0] for b in y[0])
        ]
        if not possible:
            return [Cluster(tuple(sorted(keys)), w) for keys, w in clusters if len(keys) > 1]
        last, x, y = min(possible, key=lambda each: each[0])
        clusters = [c for c in clusters if c not in (x, y)] + [(x[0] | y[0], -last[0])]


def _lowest_copies(graph: nx.Graph[Any], rank: dict[Any, int]) -> dict[Any, int]:
    """Return for each key the least rank of its copies: they have similarity 1, and the same links."""
    weights = {key: [(k, each["weight"]) for k, each in graph[key].items()] for key in graph}
    links = {key: {(key, 1.0), *weights[key]} for key in graph}
    return {
        key: min(rank[k] for k, weight in links[key] if weight == 1 and links[k] == links[key])
        for key in graph
    }
