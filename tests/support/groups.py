"""Random pairs, and clusters of graphs by brute force."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import combinations, pairwise
from typing import Any

import networkx as nx

from textsim_db.results import Cluster

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
    return [
        Cluster(
            tuple(sorted(keys)),
            min(
                w for _, _, w in nx.maximum_spanning_tree(graph.subgraph(keys)).edges.data("weight")
            ),
        )
        for keys in nx.connected_components(graph)
    ]


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
    links = {
        key: {(key, 1.0), *((k, each["weight"]) for k, each in graph[key].items())} for key in graph
    }
    return {
        key: min(rank[k] for k, weight in links[key] if weight == 1 and links[k] == links[key])
        for key in graph
    }
