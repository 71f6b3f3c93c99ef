"""The pairs of a corpus, read once in the background; their counts at every threshold."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

from textsim_db.cluster.spanning_forest import Forest, Links, join, joined_links, roots
from textsim_db.corpus import Corpus
from textsim_db.errors import TextsimError
from textsim_db.results import Pair
from textsim_db.text.array_types import FloatArray, Int64Array

STEPS = 100
"""The thresholds that the pages offer are hundredths."""
MOST_PAIRS = 1_000_000
"""The pairs that are kept to look at; a pair takes 40 bytes."""
_PART = 50_000
_PATIENCE = 5
"""Seconds; a large corpus yields its first pair after minutes."""
_EDGES = np.arange(STEPS + 1) / STEPS


class Effect(NamedTuple):
    """The result of a threshold."""

    threshold: float
    pairs: int
    clusters: int
    """The groups of documents that chains of pairs connect."""
    removals: int
    """The documents to remove so that each of these groups keeps one."""


class ChainCluster(NamedTuple):
    """Documents that a chain of pairs connects."""

    keys: list[str]
    """The keys in order."""
    links: list[Pair]
    """The links of a spanning tree of the most similar pairs, the weakest first."""


@dataclass
class Pairs:
    """The pairs of a corpus from a threshold on.

    Memory grows with the documents that have a pair; of the pairs those nearest the threshold of the
    corpus are kept.
    """

    keys: list[str]
    links: Links
    """The kept pairs; left and right are numbers of keys."""
    forest: Links
    """A maximum spanning forest of all pairs, the most similar link first."""
    histogram: Int64Array
    """All pairs by hundredths of similarity; similarity 1 is last: (STEPS + 1,)."""
    near: Int64Array
    """The numbers of the kept pairs, the nearest to the threshold first."""

    _packed: tuple[Int64Array, Int64Array] = field(init=False)
    """The numbers of both keys of each pair as one, sorted, with the numbers of the pairs."""
    _numbers: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        packed = self.links.left << 32 | self.links.right
        order = np.argsort(packed)
        self._packed = packed[order], order
        self._numbers = {key: i for i, key in enumerate(self.keys)}

    def __len__(self) -> int:
        return int(self.histogram.sum())

    def pair(self, number: int) -> Pair:
        """Return a kept pair."""
        left, right, similarity = (column[number] for column in self.links)
        return Pair(self.keys[left], self.keys[right], float(similarity))

    def number(self, a: str, b: str) -> int | None:
        """Return the number of a kept pair, or None."""
        packed, order = self._packed
        left, right = self._numbers.get(a), self._numbers.get(b)
        if left is None or right is None:
            return None
        place = int(np.searchsorted(packed, left << 32 | right))
        if place == len(packed) or packed[place] != left << 32 | right:
            return None
        return int(order[place])

    def nearest(self, similarity: float) -> Int64Array:
        """Return the numbers of the kept pairs, those nearest to a similarity first."""
        return np.argsort(np.abs(self.links.similarity - similarity), kind="stable")

    @cached_property
    def spread(self) -> Int64Array:
        """The numbers of the kept pairs so that the first of them are a fair sample.

        In turn they are spread evenly over the pairs, and evenly over the hundredths of similarity: if
        few pairs are similar, the second half finds them.
        """
        by_similarity = np.argsort(self.links.similarity, kind="stable")
        bins = bins_of(self.links.similarity[by_similarity])
        occupied, starts, number = np.unique(bins, return_index=True, return_inverse=True)
        turns = np.argsort(_bit_reversed(len(occupied)))[number]
        over_bins = np.lexsort((turns, np.arange(len(bins)) - starts[number]))
        both = np.stack((_bit_reversed(len(bins)), over_bins), axis=1).ravel()
        _, first = np.unique(both, return_index=True)
        return by_similarity[both[np.sort(first)]]

    def effect(self, threshold: float) -> Effect:
        """Return how many pairs, clusters and removals a threshold in hundredths means."""
        similarity = self.forest.similarity
        removals = int(np.count_nonzero(similarity >= threshold))
        members = np.unique(np.concatenate([side[:removals] for side in self.forest[:2]]))
        pairs = int(self.histogram[bins_of(np.array([threshold]))[0] :].sum())
        # A forest of V documents and E links has V - E trees.
        return Effect(threshold, pairs, len(members) - removals, removals)

    def beside(self, threshold: float, count: int) -> tuple[list[Pair], list[Pair]]:
        """Return the kept pairs just above and just below a threshold, the nearest first."""
        similarity = self.links.similarity
        above = np.flatnonzero(similarity >= threshold)
        below = np.flatnonzero(similarity < threshold)
        nearest = (
            above[np.argsort(similarity[above], kind="stable")[:count]],
            below[np.argsort(-similarity[below], kind="stable")[:count]],
        )
        above_it, below_it = ([self.pair(number) for number in side.tolist()] for side in nearest)
        return above_it, below_it

    def clusters(self, threshold: float) -> list[ChainCluster]:
        """Return the groups of documents that chains of pairs connect, the largest first."""
        count = int(np.count_nonzero(self.forest.similarity >= threshold))
        left, right, similarity = (column[:count].tolist() for column in self.forest)
        parents = np.arange(len(self.keys))
        join(parents, *(side[:count] for side in self.forest[:2]))
        root = roots(parents)
        links: dict[int, list[Pair]] = {}
        for a, b, value in zip(left, right, similarity, strict=True):
            low, high = sorted((self.keys[a], self.keys[b]))
            links.setdefault(int(root[a]), []).append(Pair(low, high, value))
        found = [
            ChainCluster(sorted({key for link in own for key in link[:2]}), own[::-1])
            for own in links.values()
        ]
        return sorted(found, key=lambda cluster: (-len(cluster.keys), cluster.keys))


def _bit_reversed(count: int) -> Int64Array:
    """Return the numbers below count in the order of their reversed bits, which spreads them.

    Van der Corput, "Verteilungsfunktionen", 1935.
    """
    bits = max(count - 1, 1).bit_length()
    numbers = np.arange(2**bits)
    reverse = np.zeros_like(numbers)
    for bit in range(bits):
        reverse |= (numbers >> bit & 1) << (bits - 1 - bit)
    return reverse[reverse < count]


def bins_of(similarity: FloatArray) -> Int64Array:
    """Return the hundredths of similarities; a similarity of exactly 0.29 is in number 29."""
    return np.searchsorted(_EDGES, similarity, side="right") - 1


def read_pairs(pairs: Iterable[Pair], threshold: float) -> Iterator[int | Pairs]:
    """Yield how many pairs were read so far, and at the end the pairs."""
    numbers: dict[str, int] = {}
    forest = Forest()
    histogram = np.zeros(STEPS + 1, np.int64)
    kept, waiting, count = joined_links([]), list[Links](), 0
    rest = iter(pairs)
    while part := list(islice(rest, _PART)):
        links = Links(
            np.array([numbers.setdefault(pair.a, len(numbers)) for pair in part], np.int64),
            np.array([numbers.setdefault(pair.b, len(numbers)) for pair in part], np.int64),
            np.array([pair.similarity for pair in part]),
        )
        forest.add(links)
        np.add.at(histogram, bins_of(links.similarity), 1)
        waiting.append(links)
        count += len(part)
        yield count
        if len(waiting) * _PART >= MOST_PAIRS:
            kept, waiting = _nearest(joined_links([kept, *waiting]), threshold), []
    kept = _nearest(joined_links([kept, *waiting]), threshold)
    near = np.argsort(np.abs(kept.similarity - threshold), kind="stable")
    yield Pairs(list(numbers), kept, forest.links(), histogram, near)


def _nearest(links: Links, threshold: float) -> Links:
    if len(links.left) <= MOST_PAIRS:
        return links
    distances = np.abs(links.similarity - threshold)
    chosen = np.zeros(len(distances), np.bool_)
    chosen[np.argpartition(distances, MOST_PAIRS)[:MOST_PAIRS]] = True
    return links.take(chosen)


class Survey:
    """Reads the pairs of a corpus in a thread, while the first pages are shown."""

    def __init__(self, corpus: Corpus, threshold: float | None) -> None:
        self._corpus = corpus
        self._found = corpus.pairs(threshold)
        self._threshold = corpus.config.threshold
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._is_stopped = threading.Event()
        self.count = 0
        """The pairs that were read so far."""
        self.pairs: Pairs | None = None
        """All pairs, when they were read."""
        self.error: TextsimError | None = None
        """The error that ended the reading."""

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def wait(self) -> None:
        """Wait until all pairs were read."""
        self._thread.join()

    def stop(self) -> None:
        """End the reading, and wait a little for its end."""
        self._is_stopped.set()
        self._thread.join(_PATIENCE)

    def _read(self) -> None:
        try:
            with closing(self._found) as found, closing(self._until_stopped(found)) as pairs:
                for state in read_pairs(pairs, self._threshold):
                    if isinstance(state, Pairs):
                        self.pairs = state
                    else:
                        self.count = state
        except TextsimError as error:
            self.error = error

    def _until_stopped(self, found: Iterable[Pair]) -> Generator[Pair, None, None]:
        for pair in found:
            if self._is_stopped.is_set():
                return
            yield pair
