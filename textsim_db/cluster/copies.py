"""Copies: documents with the same words. One document of each class represents the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from textsim_db.cluster.spanning_forest import Ids, Links
from textsim_db.compare.packed_pairs import is_among
from textsim_db.sketch.ragged import Ragged, joined, offsets_of
from textsim_db.text.array_types import Int64Array

PAIRS_OF_COPIES = 100_000
"""The pairs of documents that are unfolded at once, unless a single document has more."""


class CopyClasses:
    """Classes of copies. The lowest id of a class represents it."""

    def __init__(self, classes: list[Ids]) -> None:
        """Take the ids of each class, which are sorted."""
        classes = sorted(classes, key=lambda ids: int(ids[0]))
        sizes = np.array([len(ids) for ids in classes], np.int64)
        ids = np.concatenate([np.empty(0, np.int64), *classes])
        self.classes = Ragged(ids, offsets_of(sizes))
        self.representatives: Ids = np.array([ids[0] for ids in classes], np.int64)
        represented = np.repeat(self.representatives, sizes)
        self._order = np.argsort(self.classes.values)
        self._copies = self.classes.values[self._order]
        self._represented_by = represented[self._order]

    def of(self, representatives: Ids) -> Ragged:
        """Return the class of each representative; a document without copies is its own class."""
        has_copies = is_among(representatives, self.representatives)
        if not has_copies.any():
            return Ragged(representatives, np.arange(len(representatives) + 1))
        places = np.searchsorted(self.representatives, representatives[has_copies])
        singles = representatives[~has_copies]
        single_classes = Ragged(singles, np.arange(len(singles) + 1))
        order = np.argsort(~has_copies, kind="stable")
        return joined([self.classes.take(places), single_classes]).take(np.argsort(order))

    def sizes_of(self, representatives: Ids) -> Int64Array:
        """Return the number of documents that each representative stands for."""
        sizes = np.ones(len(representatives), np.int64)
        has_copies = is_among(representatives, self.representatives)
        places = np.searchsorted(self.representatives, representatives[has_copies])
        sizes[has_copies] = self.classes.sizes[places]
        return sizes

    def representatives_of(self, ids: Ids) -> Ids:
        """Return the representative of each document, or the document itself if it has no copies."""
        result = ids.copy()
        is_copy = is_among(ids, self._copies)
        places = np.searchsorted(self._copies, ids[is_copy])
        result[is_copy] = self._represented_by[places]
        return result

    def unfolded(self, links: Links) -> Iterator[Links]:
        """Yield the pairs of all documents that the two representatives of each link stand for."""
        for part in parts_of(self.sizes_of(links.left), PAIRS_OF_COPIES):
            lefts = self.of(links.left[part])
            places = part.start + lefts.owners()
            right, values = links.right[places], links.similarity[places]
            for inner in parts_of(self.sizes_of(right), PAIRS_OF_COPIES):
                rights = self.of(right[inner])
                places = inner.start + rights.owners()
                yield Links(lefts.values[places], rights.values, values[places])

    def pairs(self) -> Iterator[tuple[Ids, Ids]]:
        """Yield all pairs of copies, each once: the left and the right documents."""
        ids = self.classes.values
        ends = np.repeat(self.classes.offsets[1:], self.classes.sizes)
        starts = np.arange(1, len(ids) + 1)
        for part in parts_of(ends - starts, PAIRS_OF_COPIES):
            counts = (ends - starts)[part]
            left = np.repeat(ids[part], counts)
            before = np.repeat(np.cumsum(counts) - counts, counts)
            yield left, ids[np.arange(len(left)) - before + np.repeat(starts[part], counts)]


def parts_of(counts: Int64Array, most: int) -> Iterator[slice]:
    """Cut counts into parts whose sums are at most this, or that have a single count."""
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + most, "right")))
        yield slice(start, end)
        start = end
