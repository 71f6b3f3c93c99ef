"""Documents in memory, with copies folded: what verifies the candidates of a partition; pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from textsim_db.compare.document_rows import Rows, code_points
from textsim_db.errors import InputError
from textsim_db.settings import CorpusConfig, Shingle
from textsim_db.sketch.ragged import Buckets, Ragged
from textsim_db.sketch.sketches import sketch_tokens, tokens_without
from textsim_db.text.array_types import Int64Array
from textsim_db.text.tokens import Tokens
from textsim_db.text.word_numbers import word_numbers

MOST_BYTES = 512 * 1024 * 1024
"""The bytes of distinct texts that a task verifies. They take up to ten times as much memory."""


class LoadedDocuments(NamedTuple):
    """Documents in the order of their keys, and the distinct texts among them.

    forms: (documents,), the number of each document's text; documents with the same words have one
    number, and texts are numbered in the order of the lowest keys. members: the documents of each text,
    in order. rows, buckets: of each text.
    """

    forms: Int64Array
    members: Ragged
    rows: Rows
    buckets: Buckets

    @property
    def firsts(self) -> Int64Array:
        """The document with the lowest key of each text."""
        firsts: Int64Array = self.members.values[self.members.offsets[:-1]]
        return firsts


def load(texts: Sequence[bytes], config: CorpusConfig) -> LoadedDocuments:
    """Prepare documents for comparison; texts: in UTF-8, in the order of the keys.

    Documents with the same words are compared once. So a million copies cost as much as one document.
    Raises InputError if the distinct texts take too much memory.
    """
    places: dict[bytes, int] = {}
    of_text = np.array([places.setdefault(text, len(places)) for text in texts], np.int64)
    _check_size(len(texts), sum(map(len, places)))
    tokens = tokens_without(list(places), config)
    of_tokens, first_tokens = _same_words(tokens)
    forms = of_tokens[of_text]
    chosen = _take(tokens, first_tokens)
    sketches = sketch_tokens(chosen, config)
    members = Ragged(
        np.argsort(forms, kind="stable"),
        np.searchsorted(np.sort(forms), np.arange(len(first_tokens) + 1)),
    )
    rows = _rows(chosen, sketches.shingle_counts, config.shingle)
    return LoadedDocuments(forms, members, rows, sketches.buckets)


def _check_size(documents: int, size: int) -> None:
    if size > MOST_BYTES:
        raise InputError(
            f"{documents:,} candidates with {size:,} bytes of text are in one task, because shared "
            f"buckets connect them; at most {MOST_BYTES:,} bytes are possible: use a higher threshold "
            "or more rows a band, or leave out boilerplate that many texts share"
        )


def _same_words(tokens: Tokens) -> tuple[Int64Array, Int64Array]:
    """Return a number for each document, the same for the same words, and the first of each number."""
    places: dict[bytes, int] = {}
    firsts: list[int] = []
    numbers = np.empty(tokens.documents, np.int64)
    for document, (start, end) in enumerate(pairwise(tokens.normal_offsets.tolist())):
        form = tokens.normal[start:end].tobytes()
        number = places.setdefault(form, len(places))
        if number == len(firsts):
            firsts.append(document)
        numbers[document] = number
    return numbers, np.array(firsts, np.int64)


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
    spans = pairwise(tokens.normal_offsets.tolist())
    points, offsets = code_points([tokens.span(start, end) for start, end in spans])
    return Rows(points, offsets, shingle_counts, shingle.n)


def take_rows(rows: Rows, documents: Int64Array) -> Rows:
    """Return the rows of some documents, which may be repeated."""
    taken = Ragged(rows.tokens, rows.offsets).take(documents)
    return Rows(taken.values, taken.offsets, rows.shingle_counts[documents], rows.n)
