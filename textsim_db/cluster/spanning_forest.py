"""The links of a stream of verified pairs that are kept: a spanning forest, or the first few of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, FloatArray, Int64Array, inlined_kernel, kernel
from textsim_db.sketch.ragged import begins_run

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


class ChosenLinks:
    """The links of a stream that are kept. The others wait until there are enough to choose again."""

    most_waiting: int

    def __init__(self) -> None:
        self._kept = joined_links([])
        self._waiting: list[Links] = []
        self._count = 0

    def add(self, links: Links) -> None:
        self._waiting.append(links)
        self._count += len(links.left)
        if self._count > max(self.most_waiting, len(self._kept.left)):
            self.links()

    def links(self) -> Links:
        """Return the kept links of all links so far."""
        self._kept = self._chosen(joined_links([self._kept, *self._waiting]))
        self._waiting, self._count = [], 0
        return self._kept

    def _chosen(self, links: Links) -> Links:
        raise NotImplementedError


class Forest(ChosenLinks):
    """A maximum spanning forest of a stream of links; its links are sorted, the most similar first.

    The lightest link of the forest in a component is the weakest link that holds the component together.
    Only the forest is stored: a link that is not in the forest of the links so far is in no later
    forest. Kruskal, "On the shortest spanning subtree of a graph", 1956.
    """

    most_waiting = 500_000

    def components(self) -> tuple[Int64Array, Int64Array, FloatArray]:
        """Return the members, the component of each, and the weakest link of each component."""
        links = self.links()
        members, ends = np.unique(np.concatenate(links[:2]), return_inverse=True)
        left, right = ends[: len(ends) // 2], ends[len(ends) // 2 :]
        parents = np.arange(len(members))
        join(parents, left, right)
        _, labels = np.unique(roots(parents), return_inverse=True)
        weakest = np.ones(labels.max() + 1 if len(labels) else 0)
        np.minimum.at(weakest, labels[left], links.similarity)
        return members, labels, weakest

    def labels(self, ids: Ids) -> Ids:
        """Return the component of each id, or a distinct negative number if it is in none."""
        members, numbers, _ = self.components()
        if not len(members):
            return -1 - np.arange(len(ids))
        places = np.minimum(np.searchsorted(members, ids), len(members) - 1)
        return np.where(members[places] == ids, numbers[places], -1 - np.arange(len(ids)))

    def _chosen(self, links: Links) -> Links:
        links = links.take(np.argsort(-links.similarity, kind="stable"))
        members, ends = np.unique(np.concatenate(links[:2]), return_inverse=True)
        left, right = ends[: len(ends) // 2], ends[len(ends) // 2 :]
        return links.take(join(np.arange(len(members)), left, right))


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


class FewLinks(ChosenLinks):
    """Links of documents, each with few links to earlier ones; sorted by the right document.

    Texts that fill in one template may all match each other, and their links would grow with the square
    of their number. A document with more earlier links than `most` is crowded: the earliest are kept.
    """

    most_waiting = 4_000_000
    """They take 100 MB."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._crowded: Ids = np.empty(0, np.int64)

    def crowded(self) -> Ids:
        """Return the documents that have lost links, sorted."""
        self.links()
        return self._crowded

    def _chosen(self, links: Links) -> Links:
        links = links.take(np.lexsort((links.left, links.right)))
        starts = np.flatnonzero(begins_run(links.right))
        sizes = np.diff(starts, append=len(links.right))
        is_kept: BoolArray = np.arange(len(links.right)) - np.repeat(starts, sizes) < self._most
        self._crowded = np.union1d(self._crowded, links.right[~is_kept])
        return links.take(is_kept)
