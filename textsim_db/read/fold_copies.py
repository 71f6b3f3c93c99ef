"""Finds copies in crowded buckets, and folds them: one document of each class represents the others.

So ten thousand copies of a template cost as much as one document. Copies share all their buckets, so
a copy that is in no crowded bucket has few others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare.packed_pairs import Members, is_among, left_of, right_of
from textsim_db.db.binary_format import Array, load_int4_array, load_int8_array
from textsim_db.db.engine import Connection
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.read.snapshot import fetch, fetch_arrays
from textsim_db.sketch.ragged import begins_run, offsets_of
from textsim_db.text.array_types import BoolArray, Int32Array, Int64Array

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
        """Find the copies among buckets, and return the buckets with one document of each class.

        All copies of a document are in the same buckets, so a bucket has whole classes.
        """
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
            self._connection, self._corpus, statements.HASHES_OF_WORDS, [Array(ids)]
        )
        return load_int4_array(documents), load_int8_array(hashes)

    def _equal(self, suspects: Int32Array) -> Iterator[Ids]:
        """Compare documents word by word, and yield the classes of equal ones."""
        parameters = [Array(suspects)]
        for (ids,) in fetch(self._connection, self._corpus, statements.COPIES, parameters):
            yield np.sort(load_int4_array(ids)).astype(np.int64)


def _starts(ids: Int32Array) -> range:
    return range(0, len(ids), HASHES_AT_ONCE)
