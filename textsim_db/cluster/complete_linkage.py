"""Complete-linkage clusters of verified pairs; pure, with no database."""

from __future__ import annotations

import numpy as np

from textsim_db.cluster.spanning_forest import Ids, Links


def complete(links: Links) -> list[tuple[Ids, float]]:
    """Return clusters in which every two members are linked, with their weakest link.

    From the most similar pair downwards, two clusters become one when all their pairs are linked.
    Defays, "An efficient algorithm for a complete link method", 1977.
    """
    order = np.lexsort((links.right, links.left, -links.similarity))
    cluster_of: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    weakest: dict[int, float] = {}
    shared: dict[int, dict[int, int]] = {}  # links between two clusters
    for a, b, value in zip(*(column[order].tolist() for column in links), strict=True):
        for node in (a, b):
            if node not in cluster_of:
                cluster_of[node] = node
                members[node], shared[node] = [node], {}
        x, y = cluster_of[a], cluster_of[b]
        if x == y:
            continue
        count = shared[x].get(y, 0) + 1
        if count < len(members[x]) * len(members[y]):
            shared[x][y] = shared[y][x] = count
            continue
        if len(members[x]) + len(shared[x]) < len(members[y]) + len(shared[y]):
            x, y = y, x
        for node in members[y]:
            cluster_of[node] = x
        members[x] += members.pop(y)
        weakest[x] = value
        shared[x].pop(y, None)
        for other, number in shared.pop(y).items():
            if other != x:
                del shared[other][y]
                shared[x][other] = shared[other][x] = shared[x].get(other, 0) + number
    return [
        (np.sort(np.array(nodes, np.int64)), weakest[x])
        for x, nodes in members.items()
        if len(nodes) > 1
    ]
