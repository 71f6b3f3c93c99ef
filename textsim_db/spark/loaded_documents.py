"""The documents of a partition in memory, the host of a join; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from textsim_db.cluster.copies import CopyClasses
from textsim_db.cluster.join import PairsWithRows
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.cluster.split_large_buckets import split_large
from textsim_db.compare.document_rows import Rows, code_points, take
from textsim_db.compare.packed_pairs import ONLY_ROUND, Members, left_of, right_of
from textsim_db.compare.pair_counts import Sizes, lists
from textsim_db.errors import InputError
from textsim_db.settings import CorpusConfig, Shingle
from textsim_db.sketch.ragged import Buckets, Ragged, begins_run, offsets_of
from textsim_db.sketch.scopes import Scopes, apart, numbered
from textsim_db.sketch.sketch_texts import sketch_tokens, tokens_without
from textsim_db.text.array_types import Int64Array
from textsim_db.text.tokens import Tokens
from textsim_db.text.word_numbers import word_numbers

LOADED_BYTES = 512 * 1024 * 1024
"""The bytes of distinct texts that a task verifies. They take up to ten times as much memory."""


class LoadedDocuments:
    """Documents in memory, numbered in the order of their keys; copies are folded.

    Texts are the different texts of each scope, numbered in the order of their lowest keys.
    """

    def __init__(
        self, text_of: Int64Array, rows: Rows, buckets: Buckets, config: CorpusConfig
    ) -> None:
        """Take the text of each document, and the rows and the buckets of each text.

        Texts of different scopes share no bucket, so they are no candidates.
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
        """Yield the pairs with the rows of all texts."""
        left, right = (self._text_of[side(pairs)] for side in (left_of, right_of))
        yield PairsWithRows(pairs, self._rows, left, right)

    def rows(self, ids: Ids) -> Rows:
        """Return the rows of documents."""
        return take(self._rows, self._text_of[ids])

    def buckets(self, ids: Ids) -> Buckets:
        """Return the buckets of documents."""
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


def load(texts: Sequence[bytes], config: CorpusConfig, scopes: Scopes = None) -> LoadedDocuments:
    """Prepare documents for comparison; texts: in UTF-8, in the order of the keys.

    Documents with the same words and scope are compared once. So a million copies cost as much as one
    document. Raises InputError if the distinct texts take too much memory.
    """
    of_text, firsts = _same(texts, scopes)
    distinct = [texts[i] for i in firsts.tolist()]
    _check_size(len(texts), sum(map(len, distinct)))
    scopes = scopes and [scopes[i] for i in firsts.tolist()]
    tokens = tokens_without(distinct, config)
    spans = pairwise(tokens.normal_offsets.tolist())
    of_form, firsts = _same([tokens.normal[a:b].tobytes() for a, b in spans], scopes)
    scopes = scopes and [scopes[i] for i in firsts.tolist()]
    chosen = _take(tokens, firsts)
    sketches = sketch_tokens(chosen, config)
    rows = _rows(chosen, sketches.shingle_counts, config.shingle)
    return LoadedDocuments(of_form[of_text], rows, apart(sketches.buckets, scopes), config)


def _check_size(documents: int, size: int) -> None:
    if size > LOADED_BYTES:
        raise InputError(
            f"{documents:,} candidates with {size:,} bytes of text are in one task, because shared "
            f"buckets connect them; at most {LOADED_BYTES:,} bytes are possible: use a higher threshold "
            "or more rows a band, or leave out boilerplate that many texts share"
        )


def _same(items: Sequence[bytes], scopes: Scopes) -> tuple[Int64Array, Int64Array]:
    """Return a number for each item, the same for equal items of one scope, and the first of each."""
    owned: Sequence[Any] = items if scopes is None else list(zip(items, scopes, strict=True))
    numbers, _ = numbered(owned)
    return numbers, np.unique(numbers, return_index=True)[1]


def _take(tokens: Tokens, documents: Int64Array) -> Tokens:
    """Return some documents."""
    if len(documents) == tokens.documents:
        return tokens
    forms = Ragged(tokens.normal, tokens.normal_offsets).take(documents)
    words = Ragged(np.arange(len(tokens.hashes)), tokens.word_offsets).take(documents)
    shifts = np.repeat(forms.offsets[:-1] - tokens.normal_offsets[documents], words.sizes)
    starts, ends = (
        (column[words.values] + shifts).astype(np.int32) for column in (tokens.starts, tokens.ends)
    )
    hashes = tokens.hashes[words.values]
    return Tokens(forms.values, forms.offsets, starts, ends, words.offsets, hashes)


def _rows(tokens: Tokens, shingle_counts: Int64Array, shingle: Shingle) -> Rows:
    if shingle.unit == "word":
        return Rows(word_numbers(tokens), tokens.word_offsets, shingle_counts, shingle.n)
    points, offsets = code_points(tokens.forms())
    return Rows(points, offsets, shingle_counts, shingle.n)
