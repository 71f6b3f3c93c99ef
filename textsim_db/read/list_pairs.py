"""All verified pairs of a corpus: the join engine of textsim_db.cluster.join over PostgreSQL."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.base.run_ahead import ahead
from textsim_db.cluster.join import Join, PairsWithRows
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.packed_pairs import documents_of, left_of, right_of
from textsim_db.compare.pair_values import Rows
from textsim_db.db.dictionary import dictionary_of
from textsim_db.db.engine import Connection, autocommit
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.files.arrow_frames import ResultColumns, rows_of
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import statements
from textsim_db.read.bucket_pairs import CandidatePairs
from textsim_db.read.document_cache import DocumentCache
from textsim_db.read.find_candidates import warn_of_misses
from textsim_db.read.snapshot import snapshot
from textsim_db.read.stored_documents import StoredDocuments
from textsim_db.results import Pair
from textsim_db.sketch.ragged import Buckets, apart, merge_parts
from textsim_db.sketch.sketch_texts import buckets_of

VERIFIED_AT_ONCE = 8_000
"""The pairs that are verified at once, while the documents of the next pairs are read."""
DOCUMENTS_OF_A_BATCH = 10_000
"""The documents that are compared with kept documents at once."""


def pairs(store: Store, criterion: Criterion) -> Generator[ResultColumns, None, None]:
    """Yield the columns of every candidate pair that passes the criterion, each once, in one snapshot.

    Memory is bounded. The band rows of one round, at most 100 million, take 2 GB at most. If a corpus
    is exact, a document takes 8 bytes more.
    Documents are read in chunks, which take at most 1 GB together with the cached documents. A
    document in a crowded bucket takes 4 bytes for each such bucket, or 16 bytes if it is a copy.
    However long they are, the two documents of a pair are read together, and so are the documents of
    large buckets with mostly the same documents.
    """
    with snapshot(store.engine) as connection:
        corpus = StoredHost(connection, store, criterion)
        for links in Join(corpus, criterion).pairs():
            keys = corpus.cache.keys(np.unique(np.concatenate((links.left, links.right))))
            one, other = ([keys[each] for each in side.tolist()] for side in links[:2])
            yield list(map(min, one, other)), list(map(max, one, other)), links.similarity.tolist()


class StoredHost(CandidatePairs):
    """The documents of a corpus, in one snapshot, as a join reads them."""

    def __init__(
        self, connection: Connection, store: Store, criterion: Criterion, only: Ids | None = None
    ) -> None:
        if only is None:
            warn_of_misses(store.corpus, criterion)
        self.config = store.corpus.config
        self.cache = DocumentCache(connection, store.corpus, dictionary_of(store))
        self.all_ids: Ids | None = None
        self._for_merges = criterion.for_merges
        super().__init__(connection, store, criterion, only)

    def with_rows(self, pairs: Int64Array, of_shingles: bool) -> Iterator[PairsWithRows]:
        """Yield pairs in batches with rows; while pairs are verified, the next documents are read."""
        with closing(ahead(self._cut(pairs), self._read)) as chunks:
            for batch, ids, documents in chunks:
                left, right = (np.searchsorted(ids, side(batch)) for side in (left_of, right_of))
                yield PairsWithRows(batch, documents.rows(of_shingles), left, right)

    def rows(self, ids: Ids) -> Rows:
        return self.cache.documents(ids).rows()

    def buckets(self, ids: Ids) -> Buckets:
        """Return the buckets of documents that were the last that were read."""
        buckets = buckets_of(self.cache.signatures(ids), self.config)
        if not self.config.scoped and not self.config.guards:
            return buckets
        documents = self.cache.documents(ids)
        guards = documents.guards if self._for_merges else None
        return apart(buckets, merge_parts(documents.parts, guards))

    def batches(self, ids: Ids) -> Iterator[Ids]:
        for start in range(0, len(ids), DOCUMENTS_OF_A_BATCH):
            yield from self.cache.batches(ids[start : start + DOCUMENTS_OF_A_BATCH])

    def in_key_order(self, representatives: Ids) -> Ids:
        """Sort documents by the lowest key of their copies; ids change with a rebuild."""
        classes = self.copies.of(representatives)
        keys = self.cache.keys(classes.values)
        lowest = [
            min(keys[id_] for id_ in classes.of(place).tolist())
            for place in range(len(representatives))
        ]
        return representatives[sorted(range(len(lowest)), key=lowest.__getitem__)]

    def _cut(self, pairs: Int64Array) -> Iterator[Int64Array]:
        """Cut pairs into batches; a batch whose documents take too much memory is halved."""
        for start in range(0, len(pairs), VERIFIED_AT_ONCE):
            batches = [pairs[start : start + VERIFIED_AT_ONCE]]
            while batches:
                batch = batches.pop()
                middle = len(batch) // 2
                if middle and not self.cache.fits(documents_of(batch)):
                    batches += [batch[middle:], batch[:middle]]
                else:
                    yield batch

    def _read(self, pairs: Int64Array) -> tuple[Int64Array, Ids, StoredDocuments]:
        ids = documents_of(pairs)
        return pairs, ids, self.cache.documents(ids)


KeyPairs = set[tuple[str, str]]
"""Pairs of keys, each with the lower key first."""


class Exceptions(NamedTuple):
    """The matches of a unique corpus that are no twins."""

    forced: set[str]
    """The keys of the documents that were forced or rejected."""
    different: KeyPairs

    @classmethod
    def read(cls, connection: Connection, corpus: StoredCorpus) -> Exceptions:
        rows = connection.execute(corpus.statement(statements.FORCED_KEYS)).fetchall()
        different = connection.execute(statements.DIFFERENT_KEYS, [corpus.origin]).fetchall()
        return cls({key for (key,) in rows}, set(different))

    def include(self, a: str, b: str) -> bool:
        """Return whether two matching documents may stand side by side; a < b."""
        return a in self.forced or b in self.forced or (a, b) in self.different


def twins(store: Store) -> Iterator[Pair[str]]:
    """Yield each pair of documents of a unique corpus that match and should not stand side by side."""
    # pairs() opens a connection of its own, and the pool may have only one.
    with autocommit(store.engine) as connection:
        exceptions = Exceptions.read(connection, store.corpus)
    criterion = Criterion(JACCARD, store.corpus.config.twins_from, for_merges=True)
    for pair in rows_of(Pair, partial(pairs, store, criterion)):
        if not exceptions.include(pair.a, pair.b):
            yield pair
