"""Complete-linkage clusters of verified pairs."""

from __future__ import annotations

import numpy as np

from textsim_db.cluster.spanning_forest import Ids, Links, join, roots
from textsim_db.text.array_types import Int64Array

_WEIGHT_OF_ONE = np.float64(1).view(np.uint64) | np.uint64(1)


def complete(links: Links) -> list[tuple[Ids, float]]:
    """Return clusters in which every two members are linked, with their weakest link.

    Links are added from the most similar pair downwards; ties go to the lowest numbers. Two clusters
    merge when all pairs of their members are linked. Copies merge before all others, and links between
    the same two sets of copies are added together, so the result does not depend on how many copies a
    document has. Defays, "An efficient algorithm for a complete link method", 1977.
    """
    ids, ends = np.unique(np.concatenate(links[:2]), return_inverse=True)
    left, right = np.sort(ends.reshape(2, -1), axis=0)
    sorted_links = Links(left, right, links.similarity)
    sets = np.sort(_lowest_copies(len(ids), sorted_links)[np.stack((left, right))], axis=0)
    order = np.lexsort((right, left, sets[1], sets[0], -links.similarity, sets[0] != sets[1]))
    clusters = _Clusters()
    columns = (column[order].tolist() for column in (left, right, links.similarity))
    for a, b, similarity in zip(*columns, strict=True):
        clusters.link(a, b, similarity)
    return [(ids[np.sort(members)], weakest) for members, weakest in clusters.all()]


def _lowest_copies(count: int, links: Links) -> Int64Array:
    """Return for each document the lowest of its copies: similarity is 1, and the other links are equal.

    A judgement can cut a link between documents with similarity 1, so they need not be copies.
    """
    weights = np.random.default_rng(0).integers(2**63, size=count, dtype=np.uint64)
    # Each document is linked to itself with 1. Other links with an equal sum have a chance of 1 in 2^63.
    sums = weights * _WEIGHT_OF_ONE
    of_links = links.similarity.view(np.uint64) | np.uint64(1)
    np.add.at(sums, links.left, weights[links.right] * of_links)
    np.add.at(sums, links.right, weights[links.left] * of_links)
    parents = np.arange(count)
    is_equal = (links.similarity == 1) & (sums[links.left] == sums[links.right])
    join(parents, links.left[is_equal], links.right[is_equal])
    return roots(parents)


class _Clusters:
    """Clusters that grow with each link; the number of a cluster is the number of one member."""

    def __init__(self) -> None:
        self._cluster_of: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}
        self._weakest: dict[int, float] = {}
        self._links: dict[int, dict[int, int]] = {}
        """The number of links between two clusters, by the number of each."""

    def link(self, a: int, b: int, similarity: float) -> None:
        """Add a link that is at most as similar as the links before it."""
        x, y = self._add(a), self._add(b)
        if x == y:
            return
        links = self._links[x].get(y, 0) + 1
        if links == len(self._members[x]) * len(self._members[y]):
            self._merge(x, y, similarity)
        else:
            self._links[x][y] = self._links[y][x] = links

    def _add(self, node: int) -> int:
        """Add a node, if it is new, as a cluster of its own, and return its cluster."""
        if node not in self._cluster_of:
            self._cluster_of[node] = node
            self._members[node], self._links[node] = [node], {}
        return self._cluster_of[node]

    def all(self) -> list[tuple[Ids, float]]:
        """Return the members of each cluster of two or more, and its weakest link."""
        return [(np.array(self._members[x]), weakest) for x, weakest in self._weakest.items()]

    def _merge(self, x: int, y: int, similarity: float) -> None:
        """Merge the smaller of two clusters into the larger."""
        if self._size(x) < self._size(y):
            x, y = y, x
        for node in self._members[y]:
            self._cluster_of[node] = x
        self._members[x] += self._members.pop(y)
        self._weakest.pop(y, None)
        self._weakest[x] = similarity
        self._links[x].pop(y, None)
        for other, links in self._links.pop(y).items():
            if other != x:
                del self._links[other][y]
                total = self._links[x].get(other, 0) + links
                self._links[x][other] = self._links[other][x] = total

    def _size(self, x: int) -> int:
        return len(self._members[x]) + len(self._links[x])
