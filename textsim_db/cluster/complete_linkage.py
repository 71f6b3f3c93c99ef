"""Complete-linkage clusters of verified pairs."""

from __future__ import annotations

import numpy as np

from textsim_db.cluster.spanning_forest import Ids, Links


def complete(links: Links) -> list[tuple[Ids, float]]:
    """Return clusters in which every two members are linked, with their weakest link.

    Links are added from the most similar pair downwards. Two clusters merge when all pairs of their
    members are linked. Defays, "An efficient algorithm for a complete link method", 1977.
    """
    order = np.lexsort((links.right, links.left, -links.similarity))
    clusters = _Clusters()
    for a, b, similarity in zip(*(column[order].tolist() for column in links), strict=True):
        clusters.link(a, b, similarity)
    return clusters.of_several()


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
        x, y = self._find(a), self._find(b)
        if x == y:
            return
        links = self._links[x].get(y, 0) + 1
        if links == len(self._members[x]) * len(self._members[y]):
            self._merge(x, y, similarity)
        else:
            self._links[x][y] = self._links[y][x] = links

    def of_several(self) -> list[tuple[Ids, float]]:
        """Return the clusters of two members or more, with their weakest links."""
        return [
            (np.sort(np.array(members, np.int64)), self._weakest[x])
            for x, members in self._members.items()
            if len(members) > 1
        ]

    def _find(self, node: int) -> int:
        if node not in self._cluster_of:
            self._cluster_of[node] = node
            self._members[node], self._links[node] = [node], {}
        return self._cluster_of[node]

    def _merge(self, x: int, y: int, similarity: float) -> None:
        """Merge the smaller of two clusters into the larger."""
        if self._size(x) < self._size(y):
            x, y = y, x
        for node in self._members[y]:
            self._cluster_of[node] = x
        self._members[x] += self._members.pop(y)
        self._weakest[x] = similarity
        self._links[x].pop(y, None)
        for other, links in self._links.pop(y).items():
            if other != x:
                del self._links[other][y]
                total = self._links[x].get(other, 0) + links
                self._links[x][other] = self._links[other][x] = total

    def _size(self, x: int) -> int:
        return len(self._members[x]) + len(self._links[x])
