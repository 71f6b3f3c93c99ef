"""Documents in memory, as the host of a join: no database is needed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from textsim_db.cluster.join import CopyClasses, PairsWithRows
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.cluster.split_large_buckets import split_large
from textsim_db.compare.jaccard import Rows, code_points, take
from textsim_db.compare.packed_pairs import ONLY_ROUND, Members, left_of, right_of
from textsim_db.compare.pair_counts import Sizes, lists
from textsim_db.settings.corpus_settings import CorpusConfig, Shingle
from textsim_db.sketch.ragged import Buckets, Ragged, begins_run, offsets_of
from textsim_db.text.numba_compiler import Int32Array, Int64Array
from textsim_db.text.tokens import Tokens


class LoadedDocuments:
    """Documents in memory, numbered in the order of their keys; copies are folded.

    Texts are the different texts of each part, numbered in the order of their lowest keys.
    """

    def __init__(
        self, text_of: Int64Array, rows: Rows, buckets: Buckets, config: CorpusConfig
    ) -> None:
        """Take the text of each document, and the rows and the buckets of each text.

        Texts of different parts, or for merges of different guards, share no bucket, so they are no
        candidates.
        """
        self.config = config
        self.all_ids: Ids | None = np.arange(len(text_of))
        self._text_of, self._rows, self._buckets = text_of, rows, buckets
        order = np.argsort(text_of, kind="stable")
        documents = Ragged(
            order, np.searchsorted(text_of[order], np.arange(len(buckets.sizes) + 1))
        )
        self._representatives: Ids = documents.values[documents.offsets[:-1]]
        """The document with the lowest key of each text."""
        has_copies = np.flatnonzero(documents.sizes > 1).tolist()
        self.copies = CopyClasses([documents.of(text) for text in has_copies])
        self._listed, self.large = split_large(self._members(), config.is_exact)

    def lists(self) -> Iterator[Int64Array]:
        """Yield sorted lists of packed pairs, each candidate once, without pairs of large buckets."""
        sizes = None
        if self.config.is_exact:
            counts = self._rows.shingle_counts.astype(np.int32)
            sizes = Sizes(self._representatives.astype(np.int32), counts)
        for pairs, _ in lists(self._listed, ONLY_ROUND, sizes, self.config.threshold):
            yield pairs[self.large.first_shared(pairs) < 0]

    def with_rows(self, pairs: Int64Array, of_shingles: bool) -> Iterator[PairsWithRows]:
        left, right = (self._text_of[side(pairs)] for side in (left_of, right_of))
        yield PairsWithRows(pairs, self._rows, left, right)

    def rows(self, ids: Ids) -> Rows:
        return take(self._rows, self._text_of[ids])

    def buckets(self, ids: Ids) -> Buckets:
        return self._buckets.take(self._text_of[ids])

    def parts(self, ids: Ids) -> Iterator[Ids]:
        """Yield all documents at once."""
        yield ids

    def in_key_order(self, representatives: Ids) -> Ids:
        """Sort documents by the lowest key of their copies."""
        return np.sort(representatives)

    def _members(self) -> Members:
        """Return the representatives in each bucket."""
        owners = self._representatives[self._buckets.owners()].astype(np.int32)
        order = np.argsort(self._buckets.values, kind="stable")
        values = self._buckets.values[order]
        starts = np.flatnonzero(begins_run(values))
        return Members(owners[order], offsets_of(np.diff(starts, append=len(values))))


def rows_of(
    tokens: Tokens, word_ids: Int32Array, shingle_counts: Int64Array, shingle: Shingle
) -> Rows:
    """Return the rows to compare: word ids, or the characters of normal forms."""
    if shingle.unit == "word":
        return Rows(word_ids, tokens.word_offsets, shingle_counts, shingle.n)
    points, offsets = code_points(tokens.forms())
    return Rows(points, offsets, shingle_counts, shingle.n)
