"""Documents by id in bounded memory, each read when it is first needed, and copies as one.

The copies in crowded buckets are folded: one document of each class represents the others. So ten
thousand copies of a template cost as much as one document. Copies share all their buckets, so a copy
that is in no crowded bucket has few others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, LiteralString

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, Int32Array, Int64Array
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare.packed_pairs import Members, is_among, left_of, right_of
from textsim_db.db.binary_format import array, load_int4_array, load_int8_array
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import Connection
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import DatabaseError
from textsim_db.read import statements
from textsim_db.read.snapshot import fetch, fetch_arrays
from textsim_db.read.stored_documents import StoredDocuments, WordNumbers
from textsim_db.sketch.ragged import Signatures, begins_run, offsets_of

CACHE_BYTES = 256 * 1024 * 1024
"""The bytes of documents that are kept, and the bytes of documents that are read at once.

A larger cache reads fewer documents twice.
"""
ROW_BYTES = 300
"""The memory that a document takes besides its words."""
MOST_SHORT_BYTES = 16_700
"""The most memory that a document takes if its words are stored in its row, not apart from it."""
KEYS_AT_ONCE = 10_000

Row = tuple[Any, ...]


class DocumentCache:
    """The documents of one snapshot by id, kept up to CACHE_BYTES.

    While one thread reads documents, another thread may ask for keys and sizes.
    """

    def __init__(
        self, connection: Connection, corpus: StoredCorpus, dictionary: Dictionary
    ) -> None:
        self._connection = connection
        self._corpus = corpus
        self._vocabulary = WordNumbers(dictionary)
        self._rows: dict[int, Row] = {}
        self._bytes = 0

    def documents(self, ids: Ids) -> StoredDocuments:
        """Return documents in the order of the ids; raises DatabaseError if one is missing."""
        listed = ids.tolist()
        self._fetch(listed)
        rows = [self._rows[id_] for id_ in listed]
        return StoredDocuments(self._corpus, self._vocabulary, rows)

    def keys(self, ids: Ids) -> dict[int, str]:
        # Another thread may replace self._rows meanwhile. A dict that we hold only ever grows.
        rows = self._rows
        keys: dict[int, str] = {i: rows[i][1] for i in ids.tolist() if i in rows}
        unread = np.array([i for i in ids.tolist() if i not in keys], np.int64)
        for start in range(0, len(unread), KEYS_AT_ONCE):
            batch = unread[start : start + KEYS_AT_ONCE]
            keys |= dict(self._execute(statements.KEYS_OF_IDS, batch))
        return keys

    def signatures(self, ids: Ids) -> Signatures:
        """Return the signatures of documents that were read."""
        signatures: dict[int, bytes] = dict(self._execute(statements.SIGNATURES_OF_IDS, ids))
        rows = [(*self._rows[i][:7], signatures[i]) for i in ids.tolist()]
        documents = StoredDocuments(self._corpus, self._vocabulary, rows)
        return documents.signatures(np.arange(len(ids)))

    def fits(self, ids: Ids) -> bool:
        return self._size_of(ids.tolist()) <= CACHE_BYTES

    def batches(self, ids: Ids) -> Iterator[Ids]:
        """Cut documents into batches that can be read at once, keeping their order."""
        batches = [ids]
        while batches:
            batch = batches.pop()
            unread = [id_ for id_ in batch.tolist() if id_ not in self._rows]
            if len(batch) > 1 and self._size_of(unread) > CACHE_BYTES:
                middle = len(batch) // 2
                batches += [batch[middle:], batch[:middle]]
            else:
                yield batch

    def _fetch(self, ids: list[int]) -> None:
        missing = self._missing(ids)
        if not missing:
            return
        rows = self._execute(statements.DOCUMENTS_OF_IDS, np.array(missing, np.int64))
        self._rows.update((row[0], row) for row in rows)
        self._bytes += sum(map(_size, rows))
        if gone := set(missing) - self._rows.keys():
            raise DatabaseError(
                f"band rows name document {min(gone)}, which is not stored; run textsim check"
            )

    def _missing(self, ids: list[int]) -> list[int]:
        """Return the ids that must be read; if the cache is full, keep only these documents."""
        missing = [id_ for id_ in ids if id_ not in self._rows]
        if missing and self._bytes > CACHE_BYTES:
            self._rows = {i: self._rows[i] for i in ids if i in self._rows}
            self._bytes = sum(map(_size, self._rows.values()))
        return missing

    @cached_property
    def _has_long(self) -> bool:
        """Whether the words of any document of the corpus are stored apart from its row."""
        rows = fetch(self._connection, self._corpus, statements.HAS_LONG_DOCUMENTS)
        return rows != [(False,)]

    def _size_of(self, ids: list[int]) -> int:
        at_most = MOST_SHORT_BYTES * len(ids)
        if at_most <= CACHE_BYTES and not self._has_long:
            return at_most
        ((size,),) = self._execute(statements.SIZE_OF_DOCUMENTS, np.array(ids, np.int64))
        return ROW_BYTES * len(ids) + int(size)

    def _execute(self, statement: LiteralString, ids: Ids) -> list[Row]:
        return fetch(self._connection, self._corpus, statement, [array(ids.astype(np.int32))])


def _size(row: Row) -> int:
    return ROW_BYTES + len(row[3] or row[4])


HASHES_AT_ONCE = 50_000


class CopyFinder:
    """The copies among the documents of the buckets that were folded so far."""

    def __init__(self, connection: Connection, corpus: StoredCorpus) -> None:
        self._connection = connection
        self._corpus = corpus
        self.classes: list[Ids] = []
        """The documents of each class, sorted; the first represents the others."""
        self._compared = np.empty(0, np.int32)
        self._represented = np.empty(0, np.int32)

    def fold(self, members: Members) -> Members:
        """Find the copies among buckets, and return the buckets with one document of each class."""
        members = self.without_represented(members)
        ids = np.unique(members.ids)
        ids = ids[~is_among(ids, self._compared)]
        if not len(ids):
            return members
        self._compared = np.union1d(self._compared, ids)
        classes = [group for suspects in self._suspects(ids) for group in self._equal(suspects)]
        self.classes += classes
        others = [self._represented, *(group[1:].astype(np.int32) for group in classes)]
        self._represented = np.sort(np.concatenate(others))
        return self.without_represented(members)

    def without_represented(self, members: Members) -> Members:
        """Return the buckets without the documents that another document represents."""
        if not len(self._represented):
            return members
        return members.keep(~is_among(members.ids, self._represented))

    def has_representatives(self, pairs: Int64Array) -> BoolArray:
        """Return for each packed pair whether no other document represents either side."""
        represented = is_among(left_of(pairs), self._represented)
        return ~(represented | is_among(right_of(pairs), self._represented))

    def _suspects(self, ids: Int32Array) -> Iterator[Int32Array]:
        """Yield documents that share the hash of their words with others, whole classes together."""
        columns = [self._hashes(ids[i : i + HASHES_AT_ONCE]) for i in _starts(ids)]
        documents, hashes = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(hashes, kind="stable")
        documents, hashes = documents[order], hashes[order]
        starts = np.flatnonzero(begins_run(hashes))
        sizes = np.diff(starts, append=len(hashes))
        documents = documents[np.repeat(sizes > 1, sizes)]
        bounds = offsets_of(sizes[sizes > 1])
        suspects: list[Int32Array] = []
        count = 0
        for start, end in pairwise(bounds.tolist()):
            suspects.append(documents[start:end])
            count += end - start
            if count >= HASHES_AT_ONCE:
                yield np.concatenate(suspects)
                suspects, count = [], 0
        if suspects:
            yield np.concatenate(suspects)

    def _hashes(self, ids: Int32Array) -> tuple[Int32Array, Int64Array]:
        documents, hashes = fetch_arrays(
            self._connection, self._corpus, statements.HASHES_OF_WORDS, [array(ids)]
        )
        return load_int4_array(documents), load_int8_array(hashes)

    def _equal(self, suspects: Int32Array) -> Iterator[Ids]:
        """Compare documents word by word, and yield the classes of equal ones."""
        parameters = [array(suspects)]
        for (ids,) in fetch(self._connection, self._corpus, statements.COPIES, parameters):
            yield np.sort(load_int4_array(ids)).astype(np.int64)


def _starts(ids: Int32Array) -> range:
    return range(0, len(ids), HASHES_AT_ONCE)
