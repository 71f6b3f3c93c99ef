"""All verified pairs of a corpus, and the clusters that they form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import Engine

from textsim_db import similarity
from textsim_db.db.binary import Array
from textsim_db.db.corpora import StoredCorpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import Connection, transaction
from textsim_db.documents import Documents
from textsim_db.results import Cluster, Pair

CHUNK_PAIRS = 200_000
CACHE_BYTES = 256 * 1024 * 1024

_SHARED_BUCKETS = """
SELECT band, array_agg(document_id) FROM {band} GROUP BY band, bucket HAVING count(*) > 1
"""
_DOCUMENTS = """
SELECT id, key, shingle_count, array_send(word_ids), array_send(signature)
FROM {document} WHERE id = ANY (%s::bigint[])
"""

Row = tuple[Any, ...]
Ids = npt.NDArray[np.int64]


class Candidates(NamedTuple):
    """Candidate pairs of document ids, left < right, and the band of the bucket they share."""

    left: Ids
    right: Ids
    bands: npt.NDArray[np.int16]


def pairs(
    engine: Engine, dictionary: Dictionary, corpus: StoredCorpus, threshold: float
) -> Iterator[Pair]:
    """Yield every candidate pair whose exact similarity reaches the threshold, each once.

    All of it is read in one snapshot. Memory is bounded: pairs are verified in chunks, and the
    documents kept between chunks take at most 256 MB.
    """
    with transaction(engine) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        store = _DocumentStore(connection, corpus)
        for chunk in _candidate_chunks(connection, corpus):
            yield from _verified(store, dictionary, corpus, chunk, threshold)


def clusters(found: Iterable[Pair]) -> Iterator[Cluster]:
    """Yield the connected components of verified pairs, the largest first.

    Kruskal's maximum spanning forest: pairs are joined in falling order of similarity, so the last
    one that joins two parts of a cluster is its weakest link.
    """
    forest = _Forest()
    for pair in sorted(found, key=lambda pair: -pair.similarity):
        forest.join(pair.a, pair.b, pair.similarity)
    made = [Cluster(tuple(sorted(keys)), weakest) for keys, weakest in forest.trees()]
    yield from sorted(made, key=lambda cluster: (-len(cluster.keys), cluster.keys))


class _Forest:
    """Disjoint sets of keys, united by size, each with the similarity of its last union."""

    def __init__(self) -> None:
        self._root: dict[str, str] = {}
        self._members: dict[str, list[str]] = {}
        self._weakest: dict[str, float] = {}

    def _members_of(self, key: str) -> str:
        root = self._root.setdefault(key, key)
        if root == key and key not in self._members:
            self._members[key] = [key]
        return root

    def join(self, a: str, b: str, link: float) -> None:
        larger, smaller = self._members_of(a), self._members_of(b)
        if larger == smaller:
            return
        if len(self._members[larger]) < len(self._members[smaller]):
            larger, smaller = smaller, larger
        for key in self._members[smaller]:
            self._root[key] = larger
        self._members[larger] += self._members.pop(smaller)
        self._weakest[larger] = link

    def trees(self) -> Iterator[tuple[list[str], float]]:
        for root, keys in self._members.items():
            yield keys, self._weakest[root]


class _DocumentStore:
    """Documents by id, read as they are needed and kept up to a number of bytes."""

    def __init__(self, connection: Connection, corpus: StoredCorpus) -> None:
        self._connection = connection
        self._statement = corpus.statement(_DOCUMENTS)
        self._rows: dict[int, Row] = {}
        self._bytes = 0

    def rows(self, ids: list[int]) -> list[Row]:
        missing = [i for i in ids if i not in self._rows]
        fetched: list[Row] = []
        if missing:
            if self._bytes > CACHE_BYTES:
                kept = {i: self._rows[i] for i in ids if i in self._rows}
                self._rows, self._bytes = kept, sum(map(_size, kept.values()))
            cursor = self._connection.cursor(binary=True)
            cursor.execute(self._statement, [Array(np.array(missing, np.int64))])
            fetched = cursor.fetchall()
            self._rows.update((row[0], row) for row in fetched)
            self._bytes += sum(map(_size, fetched))
        return [self._rows[i] for i in ids]


def _size(row: Row) -> int:
    return 300 + len(row[3]) + len(row[4])


def _candidate_chunks(connection: Connection, corpus: StoredCorpus) -> Iterator[Candidates]:
    """Yield the pairs of every shared bucket, some CHUNK_PAIRS at a time."""
    parts: list[Candidates] = []
    count = 0
    with connection.cursor("textsim_shared_buckets", binary=True) as cursor:
        cursor.itersize = 10_000
        for band, members in cursor.execute(corpus.statement(_SHARED_BUCKETS)):
            for part in _pairs_within(band, np.sort(np.array(members, np.int64))):
                parts.append(part)
                count += len(part.left)
                if count >= CHUNK_PAIRS:
                    yield _joined(parts)
                    parts, count = [], 0
    if parts:
        yield _joined(parts)


def _pairs_within(band: int, members: Ids) -> Iterator[Candidates]:
    """Yield all pairs of a bucket's members, in blocks of rows that keep memory bounded."""
    step = max(1, CHUNK_PAIRS // len(members))
    for start in range(0, len(members) - 1, step):
        end = min(start + step, len(members) - 1)
        left = np.repeat(members[start:end], len(members) - 1 - np.arange(start, end))
        right = np.concatenate([members[i + 1 :] for i in range(start, end)])
        yield Candidates(left, right, np.full(len(left), band, np.int16))


def _joined(parts: list[Candidates]) -> Candidates:
    return Candidates(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _verified(
    store: _DocumentStore,
    dictionary: Dictionary,
    corpus: StoredCorpus,
    chunk: Candidates,
    threshold: float,
) -> Iterator[Pair]:
    ids = np.unique(np.concatenate((chunk.left, chunk.right)))
    documents = Documents(corpus, dictionary, store.rows(ids.tolist()))
    left, right = np.searchsorted(ids, chunk.left), np.searchsorted(ids, chunk.right)
    # A pair is looked at in the first band that it shares, and passed over in the others.
    signatures = documents.signatures(np.arange(len(ids)), corpus.config.num_hashes)
    first = ~similarity.shares_earlier_band(
        signatures, left, right, chunk.bands, corpus.config.rows
    )
    left, right = left[first], right[first]
    order = np.argsort(left, kind="stable")
    left, right = left[order], right[order]
    similarities = similarity.jaccard_pairs(
        documents.tokens,
        documents.offsets,
        documents.shingle_counts,
        left,
        right,
        corpus.config.shingle.n,
    )
    for i in np.flatnonzero(similarities >= threshold).tolist():
        a, b = documents.keys[left[i]], documents.keys[right[i]]
        yield Pair(min(a, b), max(a, b), float(similarities[i]))
