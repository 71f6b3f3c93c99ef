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
from textsim_db.text.hashing import fold, hash_folded, hash_span, seeded
from textsim_db.text.numba_compiler import inlined_kernel, kernel
from textsim_db.text.tokens import Tokens, tokenize
from textsim_db.text.utf8 import decode, same_spans, to_bytes


class Shingles(NamedTuple):
    """The shingles of several documents, in order of appearance.

    hashes: uint64 of shape (shingles,), the value of each. That of consecutive words is
    hash_array_extended(their hashes, 0), or the hash itself of a single word under "word:1"; that of
    consecutive characters is hashtextextended(shingle, 0). Two different shingles may have one value.
    starts, ends: int32 of shape (shingles,), the bytes of each in the normal forms. offsets: int64
    of shape (documents + 1,).
    """

    hashes: HashArray
    starts: Int32Array
    ends: Int32Array
    offsets: Int64Array

    def texts(self, tokens: Tokens) -> list[str]:
        """Return the texts of all shingles; tokens: the documents that they were found in."""
        spans = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [tokens.span(start, end) for start, end in spans]


def shingles(text: str, shingle: str) -> list[str]:
    """Return the distinct shingles of a text in order of first appearance.

    shingle is "word:N" or "char:N". Raises ConfigurationError for anything else and DocumentError
    for NUL and lone surrogates.
    """
    tokens = tokenize([to_bytes(text)])
    return find_shingles(tokens, Shingle.parse(shingle)).texts(tokens)


_ShingleArrays = tuple[HashArray, Int32Array, Int32Array, Int64Array]


def find_shingles(tokens: Tokens, shingle: Shingle) -> Shingles:
    """Return the distinct shingles of each document.

    A document with words but fewer than n has one shingle, its whole normal form; a document with
    no words has none.
    """
    all_shingles = _word_shingles if shingle.unit == "word" else _char_shingles
    return distinct_shingles(tokens.normal, Shingles(*all_shingles(tokens, shingle.n)), SPREAD)


@kernel
def _word_shingles(tokens: Tokens, n: int) -> _ShingleArrays:
    """Return all n-grams of words."""
    offsets = np.zeros(len(tokens.word_offsets), np.int64)
    for i in range(len(offsets) - 1):
        words = tokens.word_offsets[i + 1] - tokens.word_offsets[i]
        offsets[i + 1] = offsets[i] + (max(words - n + 1, 1) if words else 0)
    out = _room_for_shingles(offsets[-1], offsets)
    elements = _array_elements(tokens.hashes)
    for i in range(len(offsets) - 1):
        _write_word_shingles(tokens, elements, n, i, out)
    return out.hashes, out.starts, out.ends, offsets


@kernel
def _room_for_shingles(count: int, offsets: Int64Array) -> Shingles:
    return Shingles(
        np.empty(count, np.uint64), np.empty(count, np.int32), np.empty(count, np.int32), offsets
    )


@kernel
def _array_elements(word_hashes: Int64Array) -> HashArray:
    """Return what each word's hash adds to that of an array: hashint8extended(hash, 0)."""
    a, b, c = seeded(0)
    elements = np.empty(len(word_hashes), np.uint64)
    for i in range(len(word_hashes)):
        high, low = hash_folded(a, b, c, fold(word_hashes[i]))
        elements[i] = (np.uint64(high) << np.uint64(32)) | np.uint64(low)
    return elements


@inlined_kernel
def _write_word_shingles(
    tokens: Tokens, elements: HashArray, n: int, document: int, out: Shingles
) -> None:
    first, last = tokens.word_offsets[document], tokens.word_offsets[document + 1]
    start = out.offsets[document]
    width = min(n, last - first)
    for k in range(out.offsets[document + 1] - start):
        out.starts[start + k] = tokens.starts[first + k]
        out.ends[start + k] = tokens.ends[first + k + width - 1]
        out.hashes[start + k] = np.uint64(tokens.hashes[first + k])
    if n > 1 and width > 0:
        _hash_arrays(elements, first, last, width, out.hashes, start)


@inlined_kernel
def _hash_arrays(
    elements: HashArray, first: int, last: int, width: int, out: HashArray, at: int
) -> None:
    """Write hash_array_extended of each width consecutive words, from one to the next in one step.

    It is 31^width + the sum of element * 31^(elements after it), modulo 2^64.
    """
    power, total = np.uint64(1), np.uint64(0)
    for k in range(first, first + width):
        power *= np.uint64(31)
        total = total * np.uint64(31) + elements[k]
    out[at] = power + total
    for k in range(first + width, last):
        total = total * np.uint64(31) + elements[k] - power * elements[k - width]
        at += 1
        out[at] = power + total


@kernel
def _char_shingles(tokens: Tokens, n: int) -> _ShingleArrays:
    """Return all n-grams of characters."""
    out = _room_for_shingles(len(tokens.normal), np.zeros(len(tokens.normal_offsets), np.int64))
    for i in range(len(out.offsets) - 1):
        _write_char_shingles(tokens, n, i, out)
    count = out.offsets[-1]
    return out.hashes[:count], out.starts[:count], out.ends[:count], out.offsets


@inlined_kernel
def _write_char_shingles(tokens: Tokens, n: int, document: int, out: Shingles) -> None:
    at, end = tokens.normal_offsets[document], tokens.normal_offsets[document + 1]
    k = out.offsets[document]
    ahead = at
    while ahead < end and n > 0:
        _, ahead = decode(tokens.normal, ahead)
        n -= 1
    if ahead > at:
        _write_span(tokens.normal, at, ahead, out, k)
        k += 1
    while ahead < end:
        _, at = decode(tokens.normal, at)
        _, ahead = decode(tokens.normal, ahead)
        _write_span(tokens.normal, at, ahead, out, k)
        k += 1
    out.offsets[document + 1] = k


@inlined_kernel
def _write_span(data: ByteArray, start: int, end: int, out: Shingles, k: int) -> None:
    out.starts[k], out.ends[k] = start, end
    out.hashes[k] = hash_span(data, start, end)


def distinct_shingles(data: ByteArray, shingles: Shingles, spread: int) -> Shingles:
    """Keep the first of equal shingles of each document, moving them to the front of the arrays.

    Equality is decided on the bytes; the value only finds the place to look. spread: SPREAD.
    """
    return Shingles(*_distinct_shingles(data, shingles, spread))


@kernel
def _distinct_shingles(data: ByteArray, shingles: Shingles, spread: int) -> _ShingleArrays:
    kept = Shingles(
        shingles.hashes, shingles.starts, shingles.ends, np.zeros_like(shingles.offsets)
    )
    table = hash_table(kept.hashes, longest(shingles.offsets), spread)
    for i in range(len(shingles.offsets) - 1):
        first = kept.offsets[i]
        size = shingles.offsets[i + 1] - shingles.offsets[i]
        table = emptied(table, kept.hashes[first:], first, size)
        kept.offsets[i + 1] = first + _keep_distinct(data, shingles, i, table, kept)
    count = kept.offsets[-1]
    return kept.hashes[:count], kept.starts[:count], kept.ends[:count], kept.offsets


@inlined_kernel
def _keep_distinct(
    data: ByteArray, shingles: Shingles, document: int, table: HashTable, kept: Shingles
) -> int:
    """Write the first of equal shingles of a document after those kept before; return how many."""
    count = 0
    for j in range(shingles.offsets[document], shingles.offsets[document + 1]):
        value, start, end = shingles.hashes[j], shingles.starts[j], shingles.ends[j]
        slot = _find_span(table, data, kept, value, start, end)
        if not is_taken(table, slot):
            enter(table, slot, count)
            place = table.first + count
            kept.hashes[place] = value
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
