"""The distinct shingles of texts: n consecutive words, or n consecutive characters; pure.

Broder, "On the resemblance and containment of documents", 1997.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.settings import Shingle
from textsim_db.text.array_types import ByteArray, HashArray, Int32Array, Int64Array, longest
from textsim_db.text.hash_table import (
    SPREAD,
    HashTable,
    emptied,
    enter,
    find,
    find_next,
    hash_table,
    is_taken,
    number_at,
)
from textsim_db.text.hashing import hash_span
from textsim_db.text.numba_compiler import inlined_kernel, kernel
from textsim_db.text.tokens import Tokens, tokenize
from textsim_db.text.utf8 import decode, same_spans, to_bytes


class Shingles(NamedTuple):
    """The distinct shingles of several documents, in order of first appearance.

    hashes: uint64 of shape (shingles,), hashtextextended(shingle, 0). starts, ends: int32 of shape
    (shingles,), the bytes of each in the normal forms. offsets: int64 of shape (documents + 1,).
    """

    hashes: HashArray
    starts: Int32Array
    ends: Int32Array
    offsets: Int64Array

    def texts(self, tokens: Tokens) -> list[str]:
        """Return the texts of all shingles; tokens: the documents that they were found in."""
        spans = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [tokens.span(start, end) for start, end in spans]


class Spans(NamedTuple):
    """Spans of the normal forms of several documents: int32 (spans,) and int64 (documents + 1,)."""

    starts: Int32Array
    ends: Int32Array
    offsets: Int64Array


def shingles(text: str, shingle: str) -> list[str]:
    """Return the distinct shingles of a text in order of first appearance.

    shingle is "word:N" or "char:N". Raises ConfigurationError for anything else and DocumentError
    for NUL and lone surrogates.
    """
    tokens = tokenize([to_bytes(text)])
    return find_shingles(tokens, Shingle.parse(shingle)).texts(tokens)


_SpanArrays = tuple[Int32Array, Int32Array, Int64Array]


def find_shingles(tokens: Tokens, shingle: Shingle) -> Shingles:
    """Return the distinct shingles of each document.

    A document with words but fewer than n has one shingle, its whole normal form; a document with
    no words has none.
    """
    spans_of = word_spans if shingle.unit == "word" else char_spans
    return distinct_spans(tokens.normal, Spans(*spans_of(tokens, shingle.n)), SPREAD)


@kernel
def word_spans(tokens: Tokens, n: int) -> _SpanArrays:
    """Return the spans of all n-grams of words."""
    offsets = np.zeros(len(tokens.word_offsets), np.int64)
    for i in range(len(offsets) - 1):
        words = tokens.word_offsets[i + 1] - tokens.word_offsets[i]
        offsets[i + 1] = offsets[i] + (max(words - n + 1, 1) if words else 0)
    spans = Spans(np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32), offsets)
    for i in range(len(offsets) - 1):
        _write_word_spans(tokens, n, i, spans)
    return spans.starts, spans.ends, offsets


@inlined_kernel
def _write_word_spans(tokens: Tokens, n: int, document: int, out: Spans) -> None:
    first, last = tokens.word_offsets[document], tokens.word_offsets[document + 1]
    start = out.offsets[document]
    width = min(n, last - first)
    for k in range(out.offsets[document + 1] - start):
        out.starts[start + k] = tokens.starts[first + k]
        out.ends[start + k] = tokens.ends[first + k + width - 1]


@kernel
def char_spans(tokens: Tokens, n: int) -> _SpanArrays:
    """Return the spans of all n-grams of characters."""
    size = len(tokens.normal)
    offsets = np.zeros(len(tokens.normal_offsets), np.int64)
    spans = Spans(np.empty(size, np.int32), np.empty(size, np.int32), offsets)
    for i in range(len(offsets) - 1):
        _write_char_spans(tokens, n, i, spans)
    return spans.starts[: offsets[-1]], spans.ends[: offsets[-1]], offsets


@inlined_kernel
def _write_char_spans(tokens: Tokens, n: int, document: int, out: Spans) -> None:
    at, end = tokens.normal_offsets[document], tokens.normal_offsets[document + 1]
    k = out.offsets[document]
    ahead = at
    while ahead < end and n > 0:
        _, ahead = decode(tokens.normal, ahead)
        n -= 1
    if ahead > at:
        out.starts[k], out.ends[k] = at, ahead
        k += 1
    while ahead < end:
        _, at = decode(tokens.normal, at)
        _, ahead = decode(tokens.normal, ahead)
        out.starts[k], out.ends[k] = at, ahead
        k += 1
    out.offsets[document + 1] = k


def distinct_spans(data: ByteArray, spans: Spans, spread: int) -> Shingles:
    """Keep the first of equal spans of each document, moving them to the front of the arrays.

    Equality is decided on the bytes; the hash only finds the place to look. data must go on for
    PADDING bytes after the last span. spread: SPREAD.
    """
    return Shingles(*_distinct_spans(data, spans, spread))


@kernel
def _distinct_spans(
    data: ByteArray, spans: Spans, spread: int
) -> tuple[HashArray, Int32Array, Int32Array, Int64Array]:
    hashes = np.empty(len(spans.starts), np.uint64)
    kept = Shingles(hashes, spans.starts, spans.ends, np.zeros_like(spans.offsets))
    table = hash_table(kept.hashes, longest(spans.offsets), spread)
    for i in range(len(spans.offsets) - 1):
        first = kept.offsets[i]
        size = spans.offsets[i + 1] - spans.offsets[i]
        table = emptied(table, kept.hashes[first:], first, size)
        kept.offsets[i + 1] = first + _keep_distinct(data, spans, i, table, kept)
    count = kept.offsets[-1]
    return kept.hashes[:count], kept.starts[:count], kept.ends[:count], kept.offsets


@inlined_kernel
def _keep_distinct(
    data: ByteArray, spans: Spans, document: int, table: HashTable, kept: Shingles
) -> int:
    """Write the first of equal spans of a document after those kept before; return how many."""
    count = 0
    for j in range(spans.offsets[document], spans.offsets[document + 1]):
        start, end = spans.starts[j], spans.ends[j]
        span_hash = hash_span(data, start, end)
        slot = _find_span(table, data, kept, span_hash, start, end)
        if not is_taken(table, slot):
            enter(table, slot, count)
            place = table.first + count
            kept.hashes[place] = span_hash
            kept.starts[place], kept.ends[place] = start, end
            count += 1
    return count


@inlined_kernel
def _find_span(
    table: HashTable, data: ByteArray, kept: Shingles, span_hash: np.uint64, start: int, end: int
) -> np.uint64:
    """Return the slot of a span that is kept and equal, or the free slot where this one belongs."""
    slot = find(table, span_hash)
    while is_taken(table, slot):
        other = table.first + number_at(table, slot)
        if same_spans(data, start, end, data, kept.starts[other], kept.ends[other]):
            break
        slot = find_next(table, span_hash, slot)
    return slot
