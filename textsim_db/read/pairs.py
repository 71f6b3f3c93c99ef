"""All verified pairs of a corpus.

fold copies -> pairs of all buckets, each once -> documents, in order of the left one -> verify
            -> links of large buckets
            -> unfold copies
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import combinations
from typing import NamedTuple

import numpy as np

from textsim_db.cluster import large_buckets
from textsim_db.cluster.spanning_forest import ComponentsOf, Ids, Links
from textsim_db.compare.packed_pairs import documents_of, left_of, pack, right_of
from textsim_db.compare.verify import Criterion, values_of_pairs
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.measures.by_name import JACCARD
from textsim_db.read.bucket_pairs import CandidatePairs
from textsim_db.read.document_cache import DocumentCache
from textsim_db.read.missed_matches import warn_of_misses
from textsim_db.read.snapshot import snapshot
from textsim_db.read.stored_documents import StoredDocuments
from textsim_db.results import Pair
from textsim_db.text.array_types import Int64Array
from textsim_db.text.streams import ahead

PAIRS_AT_ONCE = 8_000
"""The pairs that are verified at once, while the documents of the next pairs are read."""


def pairs(store: Store, criterion: Criterion) -> Generator[Pair, None, None]:
    """Yield every candidate pair that passes the criterion, each once, in one snapshot.

    Memory is bounded. The band rows of one round, at most 100 million, take 2 GB at most. If a corpus
    is exact, a document takes 8 bytes more.
    Documents are read in chunks, which take at most 1 GB together with the cached documents. A
    document in a crowded bucket takes 4 bytes for each such bucket, or 16 bytes if it is a copy.
    Two kinds of documents are read together however long they are: those of one pair, and those of
    large buckets with mostly the same documents.
    """
    with snapshot(store.engine) as connection:
        finder = PairFinder(connection, store, criterion)
        yield from _pairs_of_copies(finder, criterion.of_copies)
        for links in finder.links():
            yield from _unfolded(finder, links)


class _Chunk(NamedTuple):
    """Sorted packed pairs, with their documents in order of the ids."""

    pairs: Int64Array
    ids: Ids
    documents: StoredDocuments


class PairFinder:
    """The verified pairs among the representatives of a corpus, in one snapshot."""

    def __init__(self, connection: Connection, store: Store, criterion: Criterion) -> None:
        warn_of_misses(store.corpus, criterion)
        self.config = store.corpus.config
        self.criterion = criterion
        self.cache = DocumentCache(connection, store.corpus, store.dictionary)
        self._candidates = CandidatePairs(connection, store, criterion.language)
        self.copies = self._candidates.copies

    def links(self, components_of: ComponentsOf | None = None) -> Iterator[Links]:
        """Yield the verified pairs, a chunk at a time; can be called only once.

        With components_of, crowds and large buckets yield only links between different components.
        """
        for pairs in self._candidates.lists():
            if components_of is None or not self.config.is_exact:
                yield from self._verified(pairs)
            else:
                yield from large_buckets.joining_pairs(pairs, self._verified, components_of)
        large = self._candidates.large
        if self.criterion.measure is not JACCARD:
            # The short cut of cluster.large_buckets needs Jaccard similarity.
            for number in range(len(large)):
                for pairs in self._candidates.of_large_bucket(number):
                    yield from self._verified(pairs)
        elif components_of is None:
            for numbers in large_buckets.groups_of(large):
                yield from self._all_of_large_buckets(numbers)
        elif self.config.is_exact:
            # Similar documents are candidates, so documents of different buckets may be linked.
            for numbers in large_buckets.groups_of(large):
                yield from self._joining(self._documents_of(numbers), components_of)
        else:
            for ids in large:
                yield from self._joining(ids, components_of)

    def _verified(self, pairs: Int64Array) -> Iterator[Links]:
        """Yield the verified pairs in order; while pairs are verified, the next ones are read."""
        with closing(ahead(self._cut(pairs), self._read)) as chunks:
            for chunk in chunks:
                yield self._links_of(chunk)

    def _cut(self, pairs: Int64Array) -> Iterator[Int64Array]:
        """Cut pairs into parts; a part whose documents take too much memory is halved."""
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            parts = [pairs[start : start + PAIRS_AT_ONCE]]
            while parts:
                part = parts.pop()
                middle = len(part) // 2
                if middle and not self.cache.fits(documents_of(part)):
                    parts += [part[middle:], part[:middle]]
                else:
                    yield part

    def _read(self, pairs: Int64Array) -> _Chunk:
        ids = documents_of(pairs)
        return _Chunk(pairs, ids, self.cache.documents(ids))

    def _links_of(self, chunk: _Chunk) -> Links:
        left, right = left_of(chunk.pairs), right_of(chunk.pairs)
        rows = chunk.documents.rows(self.criterion.measure.of_shingles)
        places = (np.searchsorted(chunk.ids, side) for side in (left, right))
        values = values_of_pairs(self.criterion, rows, *places)
        accepted = self.criterion.accepted(values)
        return Links(left[accepted], right[accepted], values[accepted])

    def _documents_of(self, numbers: list[int]) -> Ids:
        """Return the documents of several large buckets."""
        return np.unique(np.concatenate([self._candidates.large[number] for number in numbers]))

    def _all_of_large_buckets(self, numbers: list[int]) -> Iterator[Links]:
        """Yield the verified pairs whose first common large bucket is among these."""
        ids = self._documents_of(numbers)
        rows = self.cache.documents(ids).rows()
        for left, right, values in large_buckets.all_links(rows, self.criterion.threshold):
            pairs = pack(ids[left], ids[right])
            first = np.isin(self._candidates.in_large.least_shared(pairs), numbers)
            yield Links(ids[left[first]], ids[right[first]], values[first])

    def _joining(self, ids: Ids, components_of: ComponentsOf) -> Iterator[Links]:
        components = components_of(ids)
        if (components == components[0]).all():
            return
        rows = self.cache.documents(ids).rows()
        threshold = self.criterion.threshold
        for left, right, values in large_buckets.joining_links(rows, components, threshold):
            yield Links(ids[left], ids[right], values)


def _pairs_of_copies(finder: PairFinder, similarity: float) -> Iterator[Pair]:
    for ids in finder.copies.classes:
        keys = finder.cache.keys(ids)
        for a, b in combinations(sorted(keys.values()), 2):
            yield Pair(a, b, similarity)


def _unfolded(finder: PairFinder, links: Links) -> Iterator[Pair]:
    """Yield the pairs of all documents that the two documents of each link represent."""
    copies = finder.copies
    representatives = np.unique(np.concatenate((links.left, links.right)))
    members = [copies.class_of(number) for number in representatives.tolist()]
    keys = finder.cache.keys(np.concatenate([np.empty(0, np.int64), *members]))
    for x, y, value in zip(*(column.tolist() for column in links), strict=True):
        for i in copies.class_of(x).tolist():
            for j in copies.class_of(y).tolist():
                a, b = keys[i], keys[j]
                yield Pair(min(a, b), max(a, b), value)
