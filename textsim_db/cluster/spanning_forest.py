"""The links of a stream of verified pairs that are kept: a spanning forest, or the first few of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, FloatArray, Int64Array, inlined_kernel, kernel
from textsim_db.sketch.ragged import begins_run

MERGE_LINKS = 500_000
"""Links that wait until they are merged into the forest. More take more memory."""

Ids = Int64Array
ComponentsOf = Callable[[Ids], Ids]
"""Returns the component of each document in the graph of the links so far."""


class Links(NamedTuple):
    """Verified pairs of document ids, with their similarities; all arrays have the shape (pairs,)."""

    left: Ids
    right: Ids
    similarity: FloatArray

    def take(self, chosen: BoolArray | Int64Array) -> Links:
        """Return the chosen links; chosen: (pairs,), or places in any order."""
        return Links(self.left[chosen], self.right[chosen], self.similarity[chosen])


def joined_links(several: Iterable[Links]) -> Links:
    empty = Links(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return Links(*(np.concatenate(column) for column in zip(empty, *several, strict=True)))


class Forest:
    """A maximum spanning forest of a stream of links.

    The lightest link of the forest in a component is the weakest link that holds the component together.
    Only the forest is stored: a link that is not in the forest of the links so far is in no later
    forest. Kruskal, "On the shortest spanning subtree of a graph", 1956.
    """

    def __init__(self) -> None:
        self._kept = joined_links([])
        self._waiting: list[Links] = []
        self._count = 0

    def add(self, links: Links) -> None:
        self._waiting.append(links)
        self._count += len(links.left)
        if self._count > max(MERGE_LINKS, len(self._kept.left)):
            self._merge()

    def components(self) -> tuple[Int64Array, Int64Array, FloatArray]:
        """Return the members, the component of each, and the weakest link of each component."""
        self._merge()
        members, ends = np.unique(np.concatenate(self._kept[:2]), return_inverse=True)
        left, right = ends[: len(ends) // 2], ends[len(ends) // 2 :]
        parents = np.arange(len(members))
        join(parents, left, right)
        _, labels = np.unique(roots(parents), return_inverse=True)
        weakest = np.ones(labels.max() + 1 if len(labels) else 0)
        np.minimum.at(weakest, labels[left], self._kept.similarity)
        return members, labels, weakest

    def links(self) -> Links:
        """Return the links of the forest, the most similar first."""
        self._merge()
        return self._kept

    def labels(self, ids: Ids) -> Ids:
        """Return the component of each id, or a distinct negative number if it is in none."""
        members, numbers, _ = self.components()
        if not len(members):
            return -1 - np.arange(len(ids))
        places = np.minimum(np.searchsorted(members, ids), len(members) - 1)
        return np.where(members[places] == ids, numbers[places], -1 - np.arange(len(ids)))

    def _merge(self) -> None:
        left, right, weight = joined_links([self._kept, *self._waiting])
        order = np.argsort(-weight, kind="stable")
        left, right, weight = left[order], right[order], weight[order]
        members, ends = np.unique(np.concatenate((left, right)), return_inverse=True)
        joining = join(np.arange(len(members)), ends[: len(left)], ends[len(left) :])
        self._kept = Links(left[joining], right[joining], weight[joining])
        self._waiting, self._count = [], 0


@inlined_kernel
def _root(parents: Int64Array, node: int) -> int:
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@kernel
def join(parents: Int64Array, left: Int64Array, right: Int64Array) -> BoolArray:
    """Join the ends of each link in turn, and say which links joined two components.

    Union-find with path halving: the lower root becomes the root, which is as fast as union by size
    on shuffled input. Tarjan and van Leeuwen, "Worst-case analysis of set union algorithms", 1984.
    """
    joining = np.zeros(len(left), np.bool_)
    for i in range(len(left)):
        a, b = _root(parents, left[i]), _root(parents, right[i])
        if a != b:
            parents[max(a, b)] = min(a, b)
            joining[i] = True
    return joining


@kernel
def roots(parents: Int64Array) -> Int64Array:
    result = np.empty_like(parents)
    for node in range(len(parents)):
        result[node] = _root(parents, node)
    return result


MOST_WAITING = 4_000_000
"""The links that wait until the links of crowded documents are removed; they take 100 MB."""


class FewLinks:
    """Links of documents, each with few links to earlier ones.

    Texts that fill in one template may all match each other, and their links would grow with the square
    of their number. A document with more earlier links than `most` is crowded: the earliest are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = joined_links([])
        self._waiting: list[Links] = []
        self._count = 0
        self._crowded: Ids = np.empty(0, np.int64)

    def add(self, links: Links) -> None:
        self._waiting.append(links)
        self._count += len(links.left)
        if self._count > max(MOST_WAITING, len(self._kept.left)):
            self._merge()

    def links(self) -> Links:
        """Return the kept links, sorted by their right document, then by their left one."""
        self._merge()
        return self._kept

    def crowded(self) -> Ids:
        """Return the documents that have lost links, sorted."""
        self._merge()
        return self._crowded

    def _merge(self) -> None:
        links = joined_links([self._kept, *self._waiting])
        order = np.lexsort((links.left, links.right))
        links = links.take(order)
        starts = np.flatnonzero(begins_run(links.right))
        places = np.arange(len(links.right)) - np.repeat(
            starts, np.diff(starts, append=len(links.right))
        )
        is_kept: BoolArray = places < self._most
        self._crowded = np.union1d(self._crowded, links.right[~is_kept])
        self._kept = links.take(is_kept)
        self._waiting, self._count = [], 0
