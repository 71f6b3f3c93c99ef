"""All verified pairs of a corpus: candidates bucket by bucket, each pair looked at once.

Documents with the same words are folded first: of each class of them one stands for all, so that
ten thousand copies of a template cost what one does, and are unfolded again for the result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import Engine

from textsim_db.cluster import large_buckets
from textsim_db.cluster.spanning_forest import Ids, Links
from textsim_db.compare import jaccard
from textsim_db.compare.prefix_filter import Rows
from textsim_db.compare.verify import Criterion, values_of_pairs
from textsim_db.db.binary_format import Array
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import Connection, transaction
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import DatabaseError
from textsim_db.read.stored_documents import Documents, Vocabulary
from textsim_db.results import Pair
from textsim_db.sketch import band_buckets

CHUNK_PAIRS = 200_000
CHUNK_KEYS = 10_000
CROWD = 256
"""The pairs of a bucket with more documents than that, copies folded, are not all listed."""
CACHE_BYTES = 256 * 1024 * 1024
"""Documents that are kept from one chunk to the next."""
CHUNK_BYTES = 4 * CACHE_BYTES
"""With those of a chunk; where they are too long for that, it is verified in parts."""
ROW_BYTES = 300
"""What a document takes besides its words and its signature."""

# Equal words give equal buckets in every band, so band 0 is enough to find them.
_COPIES = """
/* textsim-db: pairs of corpus {id}: copies */
SELECT pg_catalog.array_agg(d.id ORDER BY d.id)
FROM (
    SELECT bucket FROM {band} WHERE band = 0 GROUP BY bucket HAVING count(*) > 1
) s
JOIN {band} b ON b.bucket = s.bucket
JOIN {document} d ON d.id = b.document_id
WHERE %(language)s::text IS NULL OR d.language = %(language)s
GROUP BY b.bucket, d.word_ids, d.normal_form
HAVING count(*) > 1
"""
_SHARED_BUCKETS = """
SELECT bucket, pg_catalog.array_agg(document_id) FROM {band} GROUP BY bucket HAVING count(*) > 1
"""
_SHARED_BUCKETS_OF_LANGUAGE = """
SELECT b.bucket, pg_catalog.array_agg(b.document_id)
FROM {band} b JOIN {document} d ON d.id = b.document_id
WHERE d.language = %(language)s
GROUP BY b.bucket HAVING count(*) > 1
"""
_DOCUMENTS = """
/* textsim-db: pairs of corpus {id}: documents */
SELECT id, key, shingle_count,
    pg_catalog.array_send(word_ids), pg_catalog.array_send(signature),
    normal_form
FROM {document} WHERE id = ANY (%s::bigint[])
"""
# Arrays that are stored apart are not read for this. array_send gives eight bytes for a value of four.
_SIZE = """
/* textsim-db: pairs of corpus {id}: sizes */
SELECT coalesce(2 * sum(pg_catalog.pg_column_size(signature)
    + coalesce(pg_catalog.pg_column_size(word_ids), pg_catalog.octet_length(normal_form))), 0)
FROM {document} WHERE id = ANY (%s::bigint[])
"""
_KEYS = """
/* textsim-db: pairs of corpus {id}: keys */
SELECT id, key FROM {document} WHERE id = ANY (%s::bigint[])
"""

Row = tuple[Any, ...]


class _Candidates(NamedTuple):
    left: Ids
    right: Ids
    buckets: Ids


class _Crowd(NamedTuple):
    ids: Ids
    bucket: int


def pairs(store: Store, criterion: Criterion) -> Generator[Pair, None, None]:
    """Yield every candidate pair that passes the criterion, each once.

    All of it is read in one snapshot. Memory is bounded: pairs are verified in chunks, whose
    documents and those kept between chunks take at most 1 GB as they are read, and folded copies
    16 bytes each. Only the documents of one pair, and of one crowded bucket, are read together
    however long they are.
    """
    with snapshot(store.engine) as connection:
        finder = PairFinder(connection, store.dictionary, store.corpus, criterion)
        for ids in finder.copies.classes:
            keys = finder.keys(ids)
            for a, b in combinations(sorted(keys[i] for i in ids.tolist()), 2):
                yield Pair(a, b, criterion.of_copies)
        for links in finder.links():
            yield from _unfolded(finder, links)


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Lend a connection in a transaction that sees one state and writes nothing."""
    with transaction(engine) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield connection


class Copies:
    """Classes of documents with the same words: of each, the lowest id stands for the others."""

    def __init__(self, classes: list[Ids]) -> None:
        self.classes = classes
        self.of = {int(ids[0]): ids for ids in classes}
        self._others = np.sort(np.concatenate([np.empty(0, np.int64), *(i[1:] for i in classes)]))

    def without(self, ids: Ids) -> Ids:
        """Return the ids that stand for themselves or for their class."""
        if not len(self._others):
            return ids
        places = np.minimum(np.searchsorted(self._others, ids), len(self._others) - 1)
        kept: Ids = ids[self._others[places] != ids]
        return kept

    def class_of(self, number: int) -> Ids:
        """Return all documents that one stands for, itself first."""
        found = self.of.get(number)
        return np.array([number], np.int64) if found is None else found


class PairFinder:
    """The verified pairs among the representatives of a corpus, in one snapshot."""

    def __init__(
        self,
        connection: Connection,
        dictionary: Dictionary,
        corpus: StoredCorpus,
        criterion: Criterion,
    ) -> None:
        self._connection = connection
        self._vocabulary = Vocabulary(dictionary)
        self.corpus = corpus
        self._criterion = criterion
        self.threshold = criterion.threshold
        self._store = _DocumentStore(connection, corpus)
        self._parameters = {"language": criterion.language}
        cursor = connection.cursor(binary=True)
        rows = cursor.execute(corpus.statement(_COPIES), self._parameters)
        self.copies = Copies([np.array(row[0], np.int64) for row in rows])

    def links(self, joined: Callable[[Ids], Ids] | None = None) -> Iterator[Links]:
        """Yield the verified pairs, a chunk at a time.

        With joined, which says in which component documents are by the links so far, those links
        of crowded buckets are left out that join nothing.
        """
        for found in self._candidates():
            if isinstance(found, _Candidates):
                yield from self._verified(found)
            else:
                yield from self._verified_crowd(found, joined)

    def documents(self, ids: Ids) -> Documents:
        """Return some documents, in the order of the ids."""
        return Documents(self.corpus, self._vocabulary, self._store.rows(ids.tolist()))

    def parts(self, ids: Ids) -> Iterator[Ids]:
        """Cut some documents where reading them would take too much memory."""
        if len(ids) > 1 and self._store.unread(ids.tolist()) > CACHE_BYTES:
            middle = len(ids) // 2
            yield from self.parts(ids[:middle])
            yield from self.parts(ids[middle:])
        else:
            yield ids

    def keys(self, ids: Ids) -> dict[int, str]:
        """Return the keys of some documents by id."""
        found: dict[int, str] = {}
        for start in range(0, len(ids), CHUNK_KEYS):
            some = [Array(ids[start : start + CHUNK_KEYS])]
            cursor = self._connection.cursor(binary=True)
            found |= dict(cursor.execute(self.corpus.statement(_KEYS), some).fetchall())
        return found

    def _candidates(self) -> Iterator[_Candidates | _Crowd]:
        """Yield the pairs of the shared buckets, some CHUNK_PAIRS at a time, and crowded buckets."""
        parts: list[_Candidates] = []
        count = 0
        limited = self._criterion.language is not None
        statement = _SHARED_BUCKETS_OF_LANGUAGE if limited else _SHARED_BUCKETS
        with self._connection.cursor(self.corpus.label("pairs"), binary=True) as cursor:
            cursor.itersize = 10_000
            cursor.execute(self.corpus.statement(statement), self._parameters)
            for bucket, members in cursor:
                ids = self.copies.without(np.sort(np.array(members, np.int64)))
                if len(ids) > CROWD and self._criterion.measure.name == "jaccard":
                    yield _Crowd(ids, bucket)
                elif len(ids) > CROWD:
                    # No short cut is known for other measures.
                    yield from _slices(bucket, ids)
                elif len(ids) > 1:
                    parts.append(_pairs_within(bucket, ids))
                    count += len(parts[-1].left)
                if count >= CHUNK_PAIRS:
                    yield _joined(parts)
                    parts, count = [], 0
        if parts:
            yield _joined(parts)

    def _verified_crowd(
        self, crowd: _Crowd, joined: Callable[[Ids], Ids] | None
    ) -> Iterator[Links]:
        ids = crowd.ids
        groups = None if joined is None else joined(ids)
        if groups is not None and (groups == groups[0]).all():
            return
        config = self.corpus.config
        documents = self.documents(ids)
        rows = Rows(documents.tokens, documents.offsets, documents.shingle_counts, config.shingle.n)
        if groups is not None:
            for left, right, value in large_buckets.joining_links(rows, groups, self.threshold):
                yield Links(ids[left], ids[right], value)
            return
        signatures = documents.signatures(np.arange(len(ids)), config.num_hashes)
        for left, right, value in large_buckets.all_links(rows, self.threshold):
            buckets = np.full(len(left), crowd.bucket)
            new = self._first_time(signatures, left, right, buckets)
            yield Links(ids[left[new]], ids[right[new]], value[new])

    def _first_time(
        self, signatures: npt.NDArray[np.int32], left: Ids, right: Ids, buckets: Ids
    ) -> npt.NDArray[np.bool_]:
        """Say which pairs meet in these buckets in the first of the bands that they share."""
        config = self.corpus.config
        of_left = band_buckets.buckets(signatures, config.banding)[left]
        bands = np.argmax(of_left == buckets[:, np.newaxis], axis=1).astype(np.int16)
        return ~jaccard.shares_earlier_band(signatures, left, right, bands, config.rows)

    def _verified(self, chunk: _Candidates) -> Iterator[Links]:
        ids = np.unique(np.concatenate((chunk.left, chunk.right)))
        middle = len(chunk.left) // 2
        if middle and not self._store.has_room(ids.tolist()):
            for part in (slice(middle), slice(middle, None)):
                yield from self._verified(_Candidates(*(column[part] for column in chunk)))
            return
        documents = self.documents(ids)
        config = self.corpus.config
        left, right = np.searchsorted(ids, chunk.left), np.searchsorted(ids, chunk.right)
        signatures = documents.signatures(np.arange(len(ids)), config.num_hashes)
        first = self._first_time(signatures, left, right, chunk.buckets)
        left, right = left[first], right[first]
        order = np.argsort(left, kind="stable")
        left, right = left[order], right[order]
        values = values_of_pairs(
            self._criterion,
            *documents.rows(self._criterion.measure.of_shingles),
            documents.shingle_counts,
            left,
            right,
            config.shingle.n,
        )
        reached = self._criterion.accepted(values)
        yield Links(ids[left[reached]], ids[right[reached]], values[reached])


class _DocumentStore:
    """Documents by id, read as they are needed and kept up to a number of bytes."""

    def __init__(self, connection: Connection, corpus: StoredCorpus) -> None:
        self._connection = connection
        self._statement = corpus.statement(_DOCUMENTS)
        self._size = corpus.statement(_SIZE)
        self._rows: dict[int, Row] = {}
        self._bytes = 0

    def has_room(self, ids: list[int]) -> bool:
        """Say whether some documents can be read beside those that are kept."""
        missing = self._missing(ids)
        return not missing or self._bytes + self._size_of(missing) <= CHUNK_BYTES

    def unread(self, ids: list[int]) -> int:
        """Return how many bytes those of some documents take that have to be read."""
        return self._size_of([i for i in ids if i not in self._rows])

    def _size_of(self, ids: list[int]) -> int:
        cursor = self._connection.cursor(binary=True)
        row = cursor.execute(self._size, [Array(np.array(ids, np.int64))]).fetchone()
        assert row is not None
        return ROW_BYTES * len(ids) + int(row[0])

    def _missing(self, ids: list[int]) -> list[int]:
        """Return those that have to be read; where too much is kept, let the others go."""
        missing = [i for i in ids if i not in self._rows]
        if missing and self._bytes > CACHE_BYTES:
            kept = {i: self._rows[i] for i in ids if i in self._rows}
            self._rows, self._bytes = kept, sum(map(_size, kept.values()))
        return missing

    def rows(self, ids: list[int]) -> list[Row]:
        """Return the rows of some documents, in the order of the ids."""
        missing = self._missing(ids)
        if missing:
            cursor = self._connection.cursor(binary=True)
            cursor.execute(self._statement, [Array(np.array(missing, np.int64))])
            fetched = cursor.fetchall()
            self._rows.update((row[0], row) for row in fetched)
            self._bytes += sum(map(_size, fetched))
            if gone := set(missing) - self._rows.keys():
                raise DatabaseError(
                    f"document {min(gone)} has band rows, but is not there: run textsim check"
                )
        return [self._rows[i] for i in ids]


def _size(row: Row) -> int:
    return ROW_BYTES + len(row[3] or row[5]) + len(row[4])


def _pairs_within(bucket: int, members: Ids) -> _Candidates:
    """Return all pairs of a bucket's members."""
    left, right = np.triu_indices(len(members), 1)
    return _Candidates(members[left], members[right], np.full(len(left), bucket))


def _slices(bucket: int, members: Ids) -> Iterator[_Candidates]:
    """Yield all pairs of a crowded bucket's members, some CHUNK_PAIRS at a time."""
    rows = max(1, CHUNK_PAIRS // len(members))
    for start in range(0, len(members), rows):
        some = np.arange(start, min(start + rows, len(members)))
        left, right = np.nonzero(some[:, np.newaxis] < np.arange(len(members)))
        yield _Candidates(members[some[left]], members[right], np.full(len(left), bucket))


def _joined(parts: list[_Candidates]) -> _Candidates:
    return _Candidates(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _unfolded(finder: PairFinder, links: Links) -> Iterator[Pair]:
    """Yield the pairs of all documents that the two of each link stand for."""
    copies = finder.copies
    stand_ins = np.unique(np.concatenate((links.left, links.right)))
    members = [copies.class_of(i) for i in stand_ins.tolist()]
    keys = finder.keys(np.concatenate([np.empty(0, np.int64), *members]))
    for x, y, value in zip(*(column.tolist() for column in links), strict=True):
        for i in copies.class_of(x).tolist():
            for j in copies.class_of(y).tolist():
                a, b = keys[i], keys[j]
                yield Pair(min(a, b), max(a, b), value)
