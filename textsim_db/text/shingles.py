"""The distinct shingles of texts: n consecutive words, or n consecutive characters.

Broder, "On the resemblance and containment of documents", 1997.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import (
    ByteArray,
    HashArray,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
    longest,
)
from textsim_db.settings.named_values import Shingle
from textsim_db.text.hashing import (
    PADDING,
    SPREAD,
    HashTable,
    emptied,
    enter,
    find,
    find_next,
    fold,
    hash_folded,
    hash_span,
    hash_table,
    is_taken,
    number_at,
    seeded,
)
from textsim_db.text.nfkc import SPACE, SPACELESS, Tables, is_ascii, tables
from textsim_db.text.storable import to_bytes
from textsim_db.text.tokens import tokenize
from textsim_db.text.utf8 import Tokens, Utf8, copy_span, decode, same_spans


class _Kept(NamedTuple):
    """Room for the shingles of several documents: see Shingles."""

    hashes: HashArray
    starts: Int32Array
    ends: Int32Array
    offsets: Int64Array


class Shingles(NamedTuple):
    """The shingles of several documents, in order of appearance."""

    hashes: HashArray
    """The value of each shingle: (shingles,).

    The value of consecutive words is hash_array_extended(hashes of the words, 0); under "word:1" it is
    the hash of the word. The value of consecutive characters is hashtextextended(shingle, 0). Two
    different shingles may have one value.
    """
    starts: Int32Array
    """The first byte of each shingle in the data: (shingles,)."""
    ends: Int32Array
    """The byte after each shingle: (shingles,)."""
    offsets: Int64Array
    """The bounds of the shingles of each document: (documents + 1,)."""
    data: ByteArray
    """The normal forms, with the spaces that shingles have."""

    def text(self, shingle: int) -> str:
        return self.data[self.starts[shingle] : self.ends[shingle]].tobytes().decode()

    def texts(self) -> list[str]:
        return list(map(self.text, range(len(self.starts))))


def shingles(text: str, shingle: str) -> list[str]:
    """Return the distinct shingles of a text in order of first appearance.

    `shingle` is "word:N" or "char:N"; other values raise `ConfigurationError`. A text with NUL or a
    lone surrogate raises `DocumentError`.

        >>> shingles("The cat sat on the mat", "word:3")
        ['the cat sat', 'cat sat on', 'sat on the', 'on the mat']
    """
    tokens = tokenize([to_bytes(text)])
    return find_shingles(tokens, Shingle.parse(shingle)).texts()


_ShingleArrays = tuple[HashArray, Int32Array, Int32Array, Int64Array]


def find_shingles(tokens: Tokens, shingle: Shingle) -> Shingles:
    """Return the distinct shingles of each document.

    A document with fewer than n words has one shingle, its whole normal form. A document without words
    has none. Two shingles are equal if their bytes are equal; the value only finds the place to look.
    """
    if shingle.unit == "word":
        return Shingles(*_word_shingles(tokens, shingle.n, SPREAD), tokens.normal)
    data, offsets = characters(tokens.utf8)
    return Shingles(*_char_shingles(data, offsets, shingle.n, SPREAD), data)


def characters(forms: Utf8) -> Utf8:
    """Return normal forms without the spaces between words of spaceless scripts."""
    return Utf8(*_characters(forms.data, forms.offsets, tables()))


@kernel
def _characters(
    forms: ByteArray, bounds: Int64Array, table: Tables
) -> tuple[ByteArray, Int64Array]:
    if is_ascii(forms, 0, len(forms)):
        return forms, bounds
    data = np.empty(len(forms) + PADDING, np.uint8)
    offsets = np.zeros(len(bounds), np.int64)
    position = 0
    for i in range(len(bounds) - 1):
        start, was_spaceless = bounds[i], True
        while start < bounds[i + 1]:
            end = start
            while end < bounds[i + 1] and forms[end] != SPACE:
                end += 1
            is_spaceless = table.kind[decode(forms, start)[0]] == SPACELESS
            if position > offsets[i] and not (is_spaceless and was_spaceless):
                data[position] = SPACE
                position += 1
            position = copy_span(forms, start, end, data, position)
            start, was_spaceless = end + 1, is_spaceless
        offsets[i + 1] = position
    return data[:position], offsets


@kernel
def _word_shingles(tokens: Tokens, n: int, spread: int) -> _ShingleArrays:
    kept = _space_for_shingles(len(tokens.starts), len(tokens.word_offsets))
    elements = array_elements(tokens.hashes)
    table = hash_table(kept.hashes, longest(tokens.word_offsets), spread)
    for i in range(len(kept.offsets) - 1):
        first, last = tokens.word_offsets[i], tokens.word_offsets[i + 1]
        begin = kept.offsets[i]
        table = emptied(table, kept.hashes[begin:], begin, last - first)
        if n == 1:
            count = _keep_words(tokens, first, last, table, kept)
        else:
            count = _keep_word_shingles(tokens, elements, first, last, n, table, kept)
        kept.offsets[i + 1] = begin + count
    return _used(kept)


@kernel
def _char_shingles(data: ByteArray, bounds: Int64Array, n: int, spread: int) -> _ShingleArrays:
    kept = _space_for_shingles(bounds[-1] - bounds[0], len(bounds))
    table = hash_table(kept.hashes, longest(bounds), spread)
    for i in range(len(kept.offsets) - 1):
        at, end = bounds[i], bounds[i + 1]
        begin = kept.offsets[i]
        table = emptied(table, kept.hashes[begin:], begin, end - at)
        kept.offsets[i + 1] = begin + _keep_char_shingles(data, at, end, n, table, kept)
    return _used(kept)


@kernel
def _space_for_shingles(count: int, offsets: int) -> _Kept:
    return _Kept(
        np.empty(count, np.uint64),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.zeros(offsets, np.int64),
    )


@kernel
def _used(kept: _Kept) -> _ShingleArrays:
    count = kept.offsets[-1]
    return kept.hashes[:count], kept.starts[:count], kept.ends[:count], kept.offsets


@kernel
def array_elements(word_hashes: Int64Array) -> HashArray:
    """Return hashint8extended(hash, 0) of each word, which the hash of an array sums up."""
    a, b, c = seeded(0)
    elements = np.empty(len(word_hashes), np.uint64)
    for i in range(len(word_hashes)):
        high, low = hash_folded(a, b, c, fold(word_hashes[i]))
        elements[i] = (np.uint64(high) << np.uint64(32)) | np.uint64(low)
    return elements


@inlined_kernel
def _keep_words(tokens: Tokens, first: int, last: int, table: HashTable, kept: _Kept) -> int:
    count = 0
    for k in range(first, last):
        value = np.uint64(tokens.hashes[k])
        count = _keep(tokens.normal, value, tokens.starts[k], tokens.ends[k], table, kept, count)
    return count


@inlined_kernel
def _keep_word_shingles(
    tokens: Tokens,
    elements: HashArray,
    first: int,
    last: int,
    n: int,
    table: HashTable,
    kept: _Kept,
) -> int:
    """Write the distinct shingles of a document for n >= 2; return their number.

    The value is hash_array_extended of the words: 31^n + the sum of element * 31^(elements after it),
    modulo 2^64. So each value follows from the last value in one step.
    """
    if first == last:
        return 0
    ahead = first + min(n, last - first)
    power, total = np.uint64(1), np.uint64(0)
    for k in range(first, ahead):
        power *= np.uint64(31)
        total = total * np.uint64(31) + elements[k]
    start, end = tokens.starts[first], tokens.ends[ahead - 1]
    count = _keep(tokens.normal, power + total, start, end, table, kept, 0)
    for k in range(ahead, last):
        first += 1
        total = total * np.uint64(31) + (elements[k] - power * elements[first - 1])
        start, end = tokens.starts[first], tokens.ends[k]
        count = _keep(tokens.normal, power + total, start, end, table, kept, count)
    return count


@inlined_kernel
def _keep_char_shingles(
    normal: ByteArray, at: int, end: int, n: int, table: HashTable, kept: _Kept
) -> int:
    ahead = at
    while ahead < end and n > 0:
        _, ahead = decode(normal, ahead)
        n -= 1
    count = 0
    if ahead > at:
        count = _keep(normal, hash_span(normal, at, ahead), at, ahead, table, kept, count)
    while ahead < end:
        _, at = decode(normal, at)
        _, ahead = decode(normal, ahead)
        count = _keep(normal, hash_span(normal, at, ahead), at, ahead, table, kept, count)
    return count


@inlined_kernel
def _keep(
    data: ByteArray,
    value: np.uint64,
    start: int,
    end: int,
    table: HashTable,
    kept: _Kept,
    count: int,
) -> int:
    """Write a shingle unless its document already has it; return the document's new count."""
    slot = _find_span(table, data, kept, value, start, end)
    if is_taken(table, slot):
        return count
    enter(table, slot, count)
    place = table.first + count
    kept.hashes[place] = value
    kept.starts[place], kept.ends[place] = start, end
    return count + 1


@inlined_kernel
def _find_span(
    table: HashTable, data: ByteArray, kept: _Kept, span_hash: np.uint64, start: int, end: int
) -> np.uint64:
    """Return the slot of a kept span that is equal, or the free slot where this span belongs."""
    slot = find(table, span_hash)
    while is_taken(table, slot):
        other = table.first + number_at(table, slot)
        if same_spans(data, start, end, data, kept.starts[other], kept.ends[other]):
            break
        slot = find_next(table, span_hash, slot)
    return slot
