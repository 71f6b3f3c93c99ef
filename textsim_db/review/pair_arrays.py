"""Pairs: the pairs that were read, as arrays; their counts at every threshold, and their orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import FloatArray, Int64Array
from textsim_db.cluster.spanning_forest import Links, join, roots
from textsim_db.compare.match_rule import Criterion
from textsim_db.measures.by_name import JACCARD
from textsim_db.results import Pair

HUNDREDTHS = 100
"""The thresholds that the pages offer are hundredths."""
_EDGES = np.arange(HUNDREDTHS + 1) / HUNDREDTHS


class Effect(NamedTuple):
    threshold: float
    pairs: int
    clusters: int
    """The groups of documents that chains of pairs connect."""
    removals: int
    """The documents to remove so that each of these groups keeps one."""


class Largest(NamedTuple):
    documents: int
    key: str
    """The key of a member."""


class Column(NamedTuple):
    """A property of each document, such as its language."""

    names: list[str]
    """The values that occur, in order."""
    places: Int64Array
    """The place of the value of each document among the names, or -1: (documents,)."""

    @classmethod
    def of(cls, values: Iterable[str | None]) -> Column:
        listed = list(values)
        names = sorted({value for value in listed if value is not None})
        place_of = {name: place for place, name in enumerate(names)}
        return cls(
            names, np.array([-1 if each is None else place_of[each] for each in listed], np.int64)
        )


@dataclass
class Pairs:
    """The pairs of the reviewed documents from a threshold on.

    Memory grows with the documents that have a pair; of the pairs those nearest the threshold in use
    are kept.
    """

    keys: list[str]
    links: Links
    """The kept pairs; left and right are numbers of keys."""
    forest: Links
    """A maximum spanning forest of all pairs, the most similar link first."""
    histogram: Int64Array
    """All pairs by hundredths of similarity; similarity 1 is last: (HUNDREDTHS + 1,)."""
    near: Int64Array
    """The numbers of the kept pairs, the nearest to the threshold first."""
    sampled: int | None = None
    """The number of random documents whose pairs these are; then the histogram is an estimate."""
    languages: Column = field(default_factory=lambda: Column([], np.empty(0, np.int64)))
    scopes: Column = field(default_factory=lambda: Column([], np.empty(0, np.int64)))
    warned: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    """The numbers of pairs whose different words are all of known kinds, the nearest first."""

    _packed: tuple[Int64Array, Int64Array] = field(init=False)
    """The numbers of both keys of each pair as one, sorted, with the numbers of the pairs."""
    _numbers: dict[str, int] = field(init=False)
    _largest: dict[float, Largest | None] = field(init=False, default_factory=dict)
    """The largest clusters by threshold: in a large corpus each takes a tenth of a second."""

    def __post_init__(self) -> None:
        packed = self.links.left << 32 | self.links.right
        order = np.argsort(packed)
        self._packed = packed[order], order
        self._numbers = {key: i for i, key in enumerate(self.keys)}

    def __len__(self) -> int:
        return int(self.histogram.sum())

    def pair(self, number: int) -> Pair[str]:
        left, right, similarity = (column[number] for column in self.links)
        return Pair(self.keys[left], self.keys[right], float(similarity))

    def document(self, key: str) -> int | None:
        return self._numbers.get(key)

    def number(self, a: str, b: str) -> int | None:
        packed, order = self._packed
        left, right = self._numbers.get(a), self._numbers.get(b)
        if left is None or right is None:
            return None
        place = int(np.searchsorted(packed, left << 32 | right))
        if place == len(packed) or packed[place] != left << 32 | right:
            return None
        return int(order[place])

    def numbers_of(self, pairs: Iterable[tuple[str, str]]) -> Int64Array:
        numbers = (self.number(a, b) for a, b in pairs)
        return np.array([number for number in numbers if number is not None], np.int64)

    def nearest(self, similarity: float) -> Int64Array:
        """Return the numbers of the kept pairs, those nearest to a similarity first."""
        return np.argsort(np.abs(self.links.similarity - similarity), kind="stable")

    @cached_property
    def key_ranks(self) -> Int64Array:
        """The place of each key in the order of keys: (keys,)."""
        return ranks_of(self.keys)

    @cached_property
    def all_links(self) -> Links:
        """The links that connect documents at any threshold, the most similar first."""
        links = [self.links] if len(self) == len(self.links.left) else [self.forest, self.links]
        left, right, similarity = (np.concatenate(columns) for columns in zip(*links, strict=True))
        order = np.argsort(-similarity, kind="stable")
        return Links(left[order], right[order], similarity[order])

    @cached_property
    def spread(self) -> Int64Array:
        """The numbers of the kept pairs so that the first of them are a fair sample.

        In turn they are random pairs, and a random pair of each hundredth of similarity, the hundredths
        in random order: if few pairs are similar, the second half finds them.
        """
        rng = np.random.default_rng(1)
        numbers = rng.permutation(len(self.links.similarity))
        bins = rng.permutation(HUNDREDTHS + 1)[bins_of(self.links.similarity[numbers])]
        order = np.argsort(bins, kind="stable")
        starts = np.searchsorted(bins[order], bins[order])
        over_bins = order[np.argsort(np.arange(len(order)) - starts, kind="stable")]
        return numbers[_in_turn(np.arange(len(numbers)), over_bins)]

    @cached_property
    def teaching(self) -> Int64Array:
        """The numbers of the kept pairs: in turn the nearest, and the nearest warned."""
        return _in_turn(self.near, self.warned)

    @cached_property
    def effects(self) -> list[Effect]:
        similarity = self.forest.similarity
        pairs = np.cumsum(self.histogram[::-1])[::-1].tolist()
        removals = [int(np.count_nonzero(similarity >= edge)) for edge in _EDGES]
        # A document is in a cluster from the similarity of its most similar link downwards.
        best = np.zeros(len(self.keys))
        for side in self.forest[:2]:
            np.maximum.at(best, side, similarity)
        members = [int(np.count_nonzero(best >= edge)) for edge in _EDGES]
        # A forest of V documents and E links has V - E trees.
        return [
            Effect(float(edge), pairs[i], members[i] - removals[i], removals[i])
            for i, edge in enumerate(_EDGES.tolist())
        ]

    def effect(self, threshold: float) -> Effect:
        return self.effects[int(bins_of(np.array([threshold]))[0])]

    def largest_cluster(self, threshold: float) -> Largest | None:
        """Return the largest group of documents that chains of pairs connect; None without a pair."""
        if threshold not in self._largest:
            self._largest[threshold] = self._find_largest(threshold)
        return self._largest[threshold]

    def _find_largest(self, threshold: float) -> Largest | None:
        accepted = Criterion(JACCARD, threshold).accepted(self.forest.similarity)
        links = self.forest.take(accepted)
        if not len(links.left):
            return None
        parents = np.arange(len(self.keys))
        join(parents, links.left, links.right)
        sizes = np.bincount(roots(parents))
        root = int(np.argmax(sizes))
        return Largest(int(sizes[root]), self.keys[root])

    def beside(self, threshold: float, count: int) -> tuple[list[Pair[str]], list[Pair[str]]]:
        """Return the kept pairs just above and just below a threshold, the nearest first."""
        similarity = self.links.similarity
        above = np.flatnonzero(similarity >= threshold)
        below = np.flatnonzero(similarity < threshold)
        nearest = (
            _lowest(above, similarity[above], count),
            _lowest(below, -similarity[below], count),
        )
        above_it, below_it = ([self.pair(number) for number in side.tolist()] for side in nearest)
        return above_it, below_it


def bins_of(similarity: FloatArray) -> Int64Array:
    """Return the hundredths of similarities; a similarity of exactly 0.29 is in number 29."""
    return np.searchsorted(_EDGES, similarity, side="right") - 1


def _lowest(numbers: Int64Array, values: FloatArray, count: int) -> Int64Array:
    if len(numbers) > count:
        chosen = values <= np.partition(values, count - 1)[count - 1]
        numbers, values = numbers[chosen], values[chosen]
    return numbers[np.argsort(values, kind="stable")[:count]]


def _in_turn(one: Int64Array, other: Int64Array) -> Int64Array:
    """Return the values of both arrays in turn, each value once; values are below len(one)."""
    count = min(len(one), len(other))
    both = np.concatenate((np.stack((one[:count], other[:count]), axis=1).ravel(), one[count:]))
    first = np.full(len(one), len(both))
    np.minimum.at(first, both, np.arange(len(both)))
    return np.asarray(both[np.sort(first)])


def ranks_of(keys: list[str]) -> Int64Array:
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks
