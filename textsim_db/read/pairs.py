"""All verified pairs of a corpus.

copies folded -> pairs of each bucket -> each pair once -> documents -> verify -> copies unfolded
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from textsim_db.cluster import large_buckets
from textsim_db.cluster.spanning_forest import Ids, Links
from textsim_db.compare import jaccard
from textsim_db.compare.verify import Criterion, values_of_pairs
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.measures.by_name import JACCARD
from textsim_db.read.bucket_pairs import (
    BucketPairs,
    LargeBucket,
    candidate_pairs,
    pairs_of_large_bucket,
)
from textsim_db.read.document_cache import DocumentCache
from textsim_db.read.exact_copies import Copies
from textsim_db.read.snapshot import snapshot
from textsim_db.results import Pair
from textsim_db.sketch import band_buckets

ComponentsOf = Callable[[Ids], Ids]
"""Returns the number of the component that each document is in by the links before."""


def pairs(store: Store, criterion: Criterion) -> Generator[Pair, None, None]:
    """Yield every candidate pair that passes the criterion, each once.

    All of it is read in one snapshot. Memory is bounded: pairs are verified in chunks, whose
    documents and those kept between chunks take at most 1 GB as they are read, and folded copies
    16 bytes each. Only the documents of one pair, and of one large bucket, are read together
    however long they are.
    """
    with snapshot(store.engine) as connection:
        finder = PairFinder(connection, store, criterion)
        yield from _pairs_of_copies(finder, criterion.of_copies)
        for links in finder.links():
            yield from _unfolded(finder, links)


class PairFinder:
    """The verified pairs among the representatives of a corpus, in one snapshot."""

    def __init__(self, connection: Connection, store: Store, criterion: Criterion) -> None:
        self.config = store.corpus.config
        self.criterion = criterion
        self.cache = DocumentCache(connection, store.corpus, store.dictionary)
        parameters = {"language": criterion.language}
        self.copies = Copies.read(connection, store.corpus, parameters)
        self._candidates = candidate_pairs(connection, store.corpus, self.copies, parameters)

    def links(self, components_of: ComponentsOf | None = None) -> Iterator[Links]:
        """Yield the verified pairs, a chunk at a time; to be called once.

        With components_of, links of large buckets that join no two components are left out.
        """
        for candidates in self._candidates:
            if isinstance(candidates, BucketPairs):
                yield from self._verified(candidates)
            elif self.criterion.measure is not JACCARD:
                # No short cut is known for other measures.
                for chunk in pairs_of_large_bucket(candidates):
                    yield from self._verified(chunk)
            elif components_of is None:
                yield from self._all_of_large_bucket(candidates)
            else:
                yield from self._joining_of_large_bucket(candidates.ids, components_of)

    def _verified(self, chunk: BucketPairs) -> Iterator[Links]:
        """Yield the verified pairs of a chunk, in halves where its documents are too long."""
        chunks = [chunk]
        while chunks:
            part = chunks.pop()
            ids = np.unique(np.concatenate((part.left, part.right)))
            middle = len(part.left) // 2
            if middle and not self.cache.has_room(ids):
                halves = (slice(middle, None), slice(middle))
                chunks += [BucketPairs(*(column[half] for column in part)) for half in halves]
            else:
                yield self._links_of(part, ids)

    def _links_of(self, chunk: BucketPairs, ids: Ids) -> Links:
        documents = self.cache.documents(ids)
        left, right = np.searchsorted(ids, chunk.left), np.searchsorted(ids, chunk.right)
        signatures = documents.signatures(np.arange(len(ids)), self.config.num_hashes)
        first = self._is_first_meeting(signatures, left, right, chunk.buckets)
        left, right = left[first], right[first]
        order = np.argsort(left, kind="stable")
        left, right = left[order], right[order]
        rows = documents.rows(self.criterion.measure.of_shingles)
        values = values_of_pairs(self.criterion, rows, left, right)
        accepted = self.criterion.accepted(values)
        return Links(ids[left[accepted]], ids[right[accepted]], values[accepted])

    def _all_of_large_bucket(self, large: LargeBucket) -> Iterator[Links]:
        ids = large.ids
        documents = self.cache.documents(ids)
        signatures = documents.signatures(np.arange(len(ids)), self.config.num_hashes)
        rows = documents.rows()
        for left, right, values in large_buckets.all_links(rows, self.criterion.threshold):
            buckets = np.full(len(left), large.bucket)
            first = self._is_first_meeting(signatures, left, right, buckets)
            yield Links(ids[left[first]], ids[right[first]], values[first])

    def _joining_of_large_bucket(self, ids: Ids, components_of: ComponentsOf) -> Iterator[Links]:
        components = components_of(ids)
        if (components == components[0]).all():
            return
        rows = self.cache.documents(ids).rows()
        threshold = self.criterion.threshold
        for left, right, values in large_buckets.joining_links(rows, components, threshold):
            yield Links(ids[left], ids[right], values)

    def _is_first_meeting(
        self, signatures: npt.NDArray[np.int32], left: Ids, right: Ids, buckets: Ids
    ) -> npt.NDArray[np.bool_]:
        """Say which pairs share no bucket in a band before that of the bucket given."""
        banding = self.config.banding
        buckets_of_left = band_buckets.buckets(signatures, banding)[left]
        bands = np.argmax(buckets_of_left == buckets[:, np.newaxis], axis=1).astype(np.int16)
        return ~jaccard.shares_earlier_band(signatures, left, right, bands, banding.rows)


def _pairs_of_copies(finder: PairFinder, similarity: float) -> Iterator[Pair]:
    for ids in finder.copies.classes:
        keys = finder.cache.keys(ids)
        for a, b in combinations(sorted(keys.values()), 2):
            yield Pair(a, b, similarity)


def _unfolded(finder: PairFinder, links: Links) -> Iterator[Pair]:
    """Yield the pairs of all documents that the two of each link stand for."""
    copies = finder.copies
    representatives = np.unique(np.concatenate((links.left, links.right)))
    members = [copies.class_of(number) for number in representatives.tolist()]
    keys = finder.cache.keys(np.concatenate([np.empty(0, np.int64), *members]))
    for x, y, value in zip(*(column.tolist() for column in links), strict=True):
        for i in copies.class_of(x).tolist():
            for j in copies.class_of(y).tolist():
                a, b = keys[i], keys[j]
                yield Pair(min(a, b), max(a, b), value)
