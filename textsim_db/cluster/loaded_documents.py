"""Documents in memory, as the host of a join: no database is needed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from textsim_db.base.numba_compiler import Int32Array, Int64Array
from textsim_db.cluster.join import CopyClasses, PairsWithRows
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.cluster.split_large_buckets import split_large
from textsim_db.compare.packed_pairs import (
    ONLY_ROUND,
    Members,
    Sizes,
    left_of,
    lists,
    pack,
    right_of,
)
from textsim_db.compare.pair_values import Rows, code_points, take
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.settings.named_values import Shingle
from textsim_db.sketch.ragged import Buckets, Parts, Ragged, apart, begins_run
from textsim_db.text.utf8 import Tokens

SORTED_AT_ONCE = 20_000_000
"""The buckets that are sorted at once; each takes 8 bytes, and sorting takes as much again."""

COMPARED_AT_ONCE = 1_000_000
"""The candidates from which documents are chosen at once. Of more, only those with a match are read:
of ten million documents half share a bucket by chance."""


class LoadedDocuments:
    """Documents in memory, numbered in the order of their keys; copies are folded.

    Texts are the different texts of each part, numbered in the order of their lowest keys.
    """

    def __init__(
        self,
        text_of: Int64Array,
        rows: Rows,
        buckets: Buckets,
        parts: Parts,
        config: CorpusConfig,
        only: Ids | None = None,
    ) -> None:
        """Take the text of each document, and the rows, the buckets and the part of each text.

        Texts of different parts are no candidates; for merges a part has texts of one guard. only: the
        documents to compare, sorted; by default all.
        """
        self.config = config
        self._text_of, self._rows, self._buckets, self._parts = text_of, rows, buckets, parts
        ids = np.arange(len(text_of)) if only is None else only
        order = np.argsort(text_of[ids], kind="stable")
        starts = np.flatnonzero(begins_run(text_of[ids][order]))
        documents = Ragged(ids[order], np.append(starts, len(ids)))
        representatives = documents.values[documents.offsets[:-1]]
        has_copies = documents.sizes > 1
        self.copies = CopyClasses(documents.take(np.flatnonzero(has_copies)))
        members = self._members(representatives)
        is_candidate = has_copies | np.isin(representatives, members.ids)
        candidates = np.sort(documents.take(np.flatnonzero(is_candidate)).values)
        self.all_ids: Ids | None = candidates if len(candidates) <= COMPARED_AT_ONCE else None
        self._listed, self.large = split_large(members, config.is_exact)
        self._sizes: Sizes | None = None
        if config.is_exact:
            counts = rows.shingle_counts[text_of[representatives]].astype(np.int32)
            by_id = np.argsort(representatives)
            self._sizes = Sizes(representatives[by_id].astype(np.int32), counts[by_id])

    def only(self, ids: Ids) -> LoadedDocuments:
        """Return these documents alone, with the numbers that they have."""
        return LoadedDocuments(
            self._text_of, self._rows, self._buckets, self._parts, self.config, np.sort(ids)
        )

    def lists(self) -> Iterator[Int64Array]:
        for pairs, _ in lists(self._listed, ONLY_ROUND, self._sizes, self.config.threshold):
            yield pairs[self.large.first_shared(pairs) < 0]

    def with_rows(self, pairs: Int64Array, of_shingles: bool) -> Iterator[PairsWithRows]:
        left, right = (self._text_of[side(pairs)] for side in (left_of, right_of))
        yield PairsWithRows(pairs, self._rows, left, right)

    def rows(self, ids: Ids) -> Rows:
        return take(self._rows, self._text_of[ids])

    def buckets(self, ids: Ids) -> Buckets:
        texts = self._text_of[ids]
        return apart(self._buckets.take(texts), None if self._parts is None else self._parts[texts])

    def batches(self, ids: Ids) -> Iterator[Ids]:
        yield ids

    def in_key_order(self, representatives: Ids) -> Ids:
        return np.sort(representatives)

    def _members(self, representatives: Ids) -> Members:
        """Return the buckets that several representatives share, with these."""
        texts = self._text_of[representatives]
        is_whole = len(texts) == len(self._buckets.sizes)
        buckets = self._buckets if is_whole else self._buckets.take(texts)
        rounds = 1 + len(buckets.values) // SORTED_AT_ONCE
        bounds = np.linspace(-(2**31), 2**31, rounds + 1).astype(np.int64)
        owners = representatives.astype(np.int32)
        rounds_shared = [
            _shared(_packed(buckets, owners, low, high))
            for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]
        packed = np.concatenate(rounds_shared)
        values, ids = packed >> 32, packed.astype(np.int32)
        if self._parts is not None:
            numbers = np.unique(self._parts[self._text_of[ids]], return_inverse=True)[1]
            order = np.lexsort((ids, numbers, values))
            values, numbers, ids = values[order], numbers[order], ids[order]
            starts = np.flatnonzero(begins_run(values, numbers))
        else:
            starts = np.flatnonzero(begins_run(values))
        members = Members(ids, np.append(starts, len(ids)))
        return members.take(members.sizes > 1)


def _packed(buckets: Buckets, owners: Int32Array, low: int, high: int) -> Int64Array:
    """Return the buckets from low to below high, each with its owner in the low half."""
    places = np.flatnonzero((buckets.values >= low) & (buckets.values < high))
    owners = owners[np.searchsorted(buckets.offsets, places, "right") - 1]
    return pack(buckets.values[places], owners)


def _shared(packed: Int64Array) -> Int64Array:
    """Sort entries, and return those whose bucket another entry has, too."""
    packed.sort()
    is_first = begins_run(packed >> 32)
    is_alone = is_first & np.append(is_first[1:], True)[: len(packed)]
    shared: Int64Array = packed[~is_alone]
    return shared


def rows_of(
    tokens: Tokens, word_ids: Int32Array, shingle_counts: Int64Array, shingle: Shingle
) -> Rows:
    """Return the rows to compare: word ids, or the characters of normal forms."""
    if shingle.unit == "word":
        return Rows(word_ids, tokens.word_offsets, shingle_counts, shingle.n)
    points, offsets = code_points(tokens.forms())
    return Rows(points, offsets, shingle_counts, shingle.n)
