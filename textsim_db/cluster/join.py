"""The verified pairs of many documents: one engine for a corpus in PostgreSQL and a task of Spark.

lists of candidates -> rows of their documents -> verify
large buckets       -> only the pairs that can reach the threshold -> verify
                    -> the pairs of copies

Copies are documents with the same words. One document of each class represents the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, Int64Array
from textsim_db.cluster import split_large_buckets
from textsim_db.cluster.spanning_forest import ComponentsOf, Ids, Links
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.packed_pairs import is_among, left_of, pack, right_of
from textsim_db.compare.pair_values import Rows, values_of_pairs
from textsim_db.measures.by_name import JACCARD
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.sketch.ragged import Buckets, Ragged, joined

PAIRS_OF_COPIES = 100_000
"""The pairs of documents that are unfolded at once, unless a single document has more."""


class CopyClasses:
    """Classes of copies. The lowest id of a class represents it."""

    def __init__(self, classes: Ragged) -> None:
        """Take the ids of each class, which are sorted; the classes have any order."""
        firsts = classes.values[classes.offsets[:-1]]
        self.classes = classes.take(np.argsort(firsts))
        self.representatives: Ids = np.sort(firsts)
        represented = np.repeat(self.representatives, self.classes.sizes)
        self._order = np.argsort(self.classes.values)
        self._copies = self.classes.values[self._order]
        self._represented_by = represented[self._order]

    def of(self, representatives: Ids) -> Ragged:
        has_copies = is_among(representatives, self.representatives)
        if not has_copies.any():
            return Ragged(representatives, np.arange(len(representatives) + 1))
        places = np.searchsorted(self.representatives, representatives[has_copies])
        singles = representatives[~has_copies]
        single_classes = Ragged(singles, np.arange(len(singles) + 1))
        order = np.argsort(~has_copies, kind="stable")
        return joined([self.classes.take(places), single_classes]).take(np.argsort(order))

    def sizes_of(self, representatives: Ids) -> Int64Array:
        sizes = np.ones(len(representatives), np.int64)
        has_copies = is_among(representatives, self.representatives)
        places = np.searchsorted(self.representatives, representatives[has_copies])
        sizes[has_copies] = self.classes.sizes[places]
        return sizes

    def representatives_of(self, ids: Ids) -> Ids:
        result = ids.copy()
        is_copy = is_among(ids, self._copies)
        places = np.searchsorted(self._copies, ids[is_copy])
        result[is_copy] = self._represented_by[places]
        return result

    def links(self) -> Links:
        """Return a link from each copy to the document that represents it, and from this to itself."""
        firsts = self.representatives[self.classes.owners()]
        return Links(firsts, self.classes.values, np.ones(len(firsts)))

    def unfolded(self, links: Links) -> Iterator[Links]:
        """Yield the pairs of all documents that the two representatives of each link stand for."""
        for chosen in slices_of(self.sizes_of(links.left), PAIRS_OF_COPIES):
            lefts = self.of(links.left[chosen])
            places = chosen.start + lefts.owners()
            right, values = links.right[places], links.similarity[places]
            for inner in slices_of(self.sizes_of(right), PAIRS_OF_COPIES):
                rights = self.of(right[inner])
                places = inner.start + rights.owners()
                yield Links(lefts.values[places], rights.values, values[places])

    def pairs(self) -> Iterator[tuple[Ids, Ids]]:
        """Yield all pairs of copies, each once: the left and the right documents."""
        ids = self.classes.values
        ends = np.repeat(self.classes.offsets[1:], self.classes.sizes)
        starts = np.arange(1, len(ids) + 1)
        for chosen in slices_of(ends - starts, PAIRS_OF_COPIES):
            counts = (ends - starts)[chosen]
            left = np.repeat(ids[chosen], counts)
            before = np.repeat(np.cumsum(counts) - counts, counts)
            yield left, ids[np.arange(len(left)) - before + np.repeat(starts[chosen], counts)]


def slices_of(counts: Int64Array, most: int) -> Iterator[slice]:
    """Cut counts into slices whose sums are at most this, or that have a single count."""
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + most, "right")))
        yield slice(start, end)
        start = end


class PairsWithRows(NamedTuple):
    """Pairs of documents, and the rows to compare."""

    pairs: Int64Array
    """Packed and sorted: (pairs,)."""
    rows: Rows
    """The rows of all documents of the pairs."""
    left: Int64Array
    """The places in rows of the left documents: (pairs,)."""
    right: Int64Array
    """The places in rows of the right documents: (pairs,)."""


class Host(Protocol):
    """Gives a join the buckets and the rows of its documents. Ids are numbers below 2^31.

    Copies are folded: buckets and pairs have only one document of each class.
    """

    config: CorpusConfig
    copies: CopyClasses
    large: split_large_buckets.LargeBuckets
    all_ids: Ids | None
    """All documents, if they are in memory."""

    def lists(self) -> Iterator[Int64Array]:
        """Yield sorted lists of packed pairs, each candidate once, without pairs of large buckets."""

    def with_rows(self, pairs: Int64Array, of_shingles: bool) -> Iterator[PairsWithRows]:
        """Yield sorted packed pairs in batches with rows; of_shingles: for a measure of shingles."""

    def rows(self, ids: Ids) -> Rows:
        """Return the rows of documents for a measure of shingles; ids may be repeated."""

    def buckets(self, ids: Ids) -> Buckets:
        """Return the buckets of documents whose rows were the last that were read."""

    def batches(self, ids: Ids) -> Iterator[Ids]:
        """Cut documents, in their order, into batches whose rows fit in memory."""

    def in_key_order(self, representatives: Ids) -> Ids:
        """Sort documents by the lowest key of their copies."""


class Join:
    """The pairs of a host's documents that share a bucket and pass a criterion."""

    def __init__(
        self, host: Host, criterion: Criterion, never_kept: BoolArray | None = None
    ) -> None:
        """Take the documents, of which some are removed anyway: (documents,) by id."""
        self.host = host
        self.criterion = criterion
        self.never_kept = never_kept

    def pairs(self) -> Iterator[Links]:
        """Yield all pairs, each once: first the pairs of copies, then all other pairs."""
        for left, right in self.host.copies.pairs():
            yield Links(left, right, np.full(len(left), self.criterion.of_copies))
        for links in self.links():
            yield from self.host.copies.unfolded(links)

    def links(self, components_of: ComponentsOf | None = None) -> Iterator[Links]:
        """Yield the pairs of representatives; can be called only once.

        With components_of, crowds and large buckets yield only links between different components.
        """
        for pairs in self.host.lists():
            if components_of is None or not self.host.config.is_exact:
                yield from self._verified(pairs)
            else:
                yield from split_large_buckets.joining_pairs(pairs, self._verified, components_of)
        large = self.host.large
        if self.criterion.measure is not JACCARD:
            # The short cut for large buckets needs Jaccard similarity.
            for number in range(len(large.ids)):
                for pairs in large.pairs_of(number):
                    yield from self._verified(pairs)
        elif components_of is None:
            for numbers in large.groups():
                yield from self._all_of_large_buckets(numbers)
        elif self.host.config.is_exact:
            # Similar documents are candidates, so documents of different buckets may be linked.
            for numbers in large.groups():
                yield from self._joining(large.documents_of(numbers), components_of)
        else:
            for ids in large.ids:
                yield from self._joining(ids, components_of)

    def similarities(self, pairs: Int64Array) -> Iterator[Links]:
        """Yield sorted packed pairs with their values, whether they pass the criterion or not."""
        for batch in self.host.with_rows(pairs, self.criterion.measure.of_shingles):
            values = values_of_pairs(self.criterion, batch.rows, batch.left, batch.right)
            yield Links(left_of(batch.pairs), right_of(batch.pairs), values)

    def _verified(self, pairs: Int64Array) -> Iterator[Links]:
        for links in self.similarities(pairs):
            yield links.take(self.criterion.accepted(links.similarity))

    def _all_of_large_buckets(self, numbers: list[int]) -> Iterator[Links]:
        """Yield the verified pairs whose first common large bucket is among these."""
        ids = self.host.large.documents_of(numbers)
        rows = self.host.rows(ids)
        for a, b, values in split_large_buckets.all_links(rows, self.criterion):
            links = Links(ids[np.minimum(a, b)], ids[np.maximum(a, b)], values)
            first = self.host.large.first_shared(pack(links.left, links.right))
            yield links.take(np.isin(first, numbers))

    def _joining(self, ids: Ids, components_of: ComponentsOf) -> Iterator[Links]:
        components = components_of(ids)
        if (components == components[0]).all():
            return
        rows = self.host.rows(ids)
        for left, right, values in split_large_buckets.joining_links(
            rows, components, self.criterion
        ):
            yield Links(ids[left], ids[right], values)
