"""Guards: what two texts must share, besides being similar, to be merged.

A guard of a document is the hash of the lines that guard_lines() of distinctions.py returns. SQL
computes the same in 24_guards.sql.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from textsim_db.settings.named_values import Guard
from textsim_db.text.distinctions import (
    LONGEST_PHRASE,
    NEGATION_PARTS,
    NEGATION_PHRASES,
    NEGATIONS,
)
from textsim_db.text.hashing import PADDING, hash_span
from textsim_db.text.nfkc import zero_bytes
from textsim_db.text.numba_compiler import (
    ByteArray,
    Int64Array,
    inlined_kernel,
    kernel,
    load64,
    longest,
)
from textsim_db.text.split_words import digits
from textsim_db.text.tokens import Tokens
from textsim_db.text.utf8 import WordTable, copy_span, number_of_span, word_table


def guards_of(
    tokens: Tokens, guards: tuple[str, ...], guard_words: tuple[str, ...]
) -> Int64Array | None:
    """Return the guard of each document: (documents,); None if there are no guards."""
    if not guards:
        return None
    negates = Guard.NEGATIONS in guards
    listed = _listed(negates, guard_words if Guard.WORDS in guards else ())
    return _guards_of(tokens, listed, Guard.NUMBERS in guards, negates)


class _Listed(NamedTuple):
    """The words and phrases that guards look for."""

    table: WordTable
    """All of them, and the first words of the phrases."""
    roles: ByteArray
    """The roles of each: _NEGATES, _BEGINS a phrase or _IS_GUARDED, or several of them."""


_NEGATES, _BEGINS, _IS_GUARDED = 1, 2, 4


@lru_cache(maxsize=128)
def _listed(negates: bool, guard_words: tuple[str, ...]) -> _Listed:
    roles = dict.fromkeys(guard_words, _IS_GUARDED)
    if negates:
        for negation in NEGATIONS | NEGATION_PHRASES:
            roles[negation] = roles.get(negation, 0) | _NEGATES
        for phrase in NEGATION_PHRASES:
            first = phrase.split()[0]
            roles[first] = roles.get(first, 0) | _BEGINS
    table = word_table([word.encode() for word in roles])
    return _Listed(table, np.array([*roles.values()], np.uint8))


class _Spans(NamedTuple):
    """Spans of a normal form, and space to sort them."""

    starts: Int64Array
    """The first byte of each."""
    ends: Int64Array
    """The byte after each."""
    order: Int64Array
    """Their numbers, in order of their bytes."""
    merged: Int64Array
    """The order while it is merged."""


_NUMBERS, _NEGATIONS, _GUARD_WORDS = (
    tuple(b"numbers "),
    tuple(b"negations "),
    tuple(b"words "),
)
_NEWLINE = ord("\n")
_ZERO = ord("0")
_HANGUL, _PARTS = (
    np.uint64(0x0101010101010101 * NEGATION_PARTS.encode()[0]),
    tuple(tuple(part.encode()) for part in NEGATION_PARTS),
)
_FEW = 16
"""Up to this number, spans are sorted by insertion."""
_ROOM = 64
"""Bytes for the words and numbers of a line."""


@kernel
def _guards_of(
    tokens: Tokens, listed: _Listed, has_numbers: bool, has_negations: bool
) -> Int64Array:
    documents = len(tokens.word_offsets) - 1
    guards = np.empty(documents, np.int64)
    most = longest(tokens.word_offsets)
    spans = _Spans(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    lines = np.empty(1024, np.uint8)
    for i in range(documents):
        size = 0
        has_digit, has_hangul = _traits(tokens, i)
        if has_numbers and has_digit:
            count = _find_numbers(tokens, i, spans)
            lines = _with_space(lines, size, spans, count)
            size = _write(tokens.normal, spans, count, _NUMBERS, lines, size)
        if len(listed.roles):
            parts = has_hangul and has_negations
            negations, count = _find_listed(tokens, i, listed, parts, spans)
            if negations:
                lines = _with_space(lines, size, spans, 0)
                size = _write_count(negations, lines, size)
            if count:
                lines = _with_space(lines, size, spans, count)
                size = _write(tokens.normal, spans, count, _GUARD_WORDS, lines, size)
        guards[i] = np.int64(hash_span(lines, 0, max(size - 1, 0)))
    return guards


@inlined_kernel
def _traits(tokens: Tokens, i: int) -> tuple[bool, bool]:
    """Say whether a document may have a digit, and a part of a word that negates."""
    digit_bits, hangul = np.uint64(0), np.uint64(0)
    for k in range(tokens.normal_offsets[i], tokens.normal_offsets[i + 1], 8):
        eight = load64(tokens.normal, k)
        digit_bits |= digits(eight)
        hangul |= zero_bytes(eight ^ _HANGUL)
    return digit_bits != 0, hangul != 0


@inlined_kernel
def _find_numbers(tokens: Tokens, i: int, spans: _Spans) -> int:
    count = 0
    is_run = False
    for k in range(tokens.word_offsets[i], tokens.word_offsets[i + 1]):
        start, end = int(tokens.starts[k]), int(tokens.ends[k])
        if not _has_digit_in(tokens.normal, start, end):
            is_run = False
            continue
        if not is_run:
            spans.starts[count] = start
            count += 1
        spans.ends[count - 1] = end
        is_run = True
    return count


@inlined_kernel
def _has_digit_in(data: ByteArray, start: int, end: int) -> bool:
    for k in range(start, end, 8):
        digit_bits = digits(load64(data, k))
        if end - k < 8:
            digit_bits &= (np.uint64(1) << np.uint64(8 * (end - k))) - np.uint64(1)
        if digit_bits:
            return True
    return False


@inlined_kernel
def _find_listed(
    tokens: Tokens, i: int, listed: _Listed, has_parts: bool, spans: _Spans
) -> tuple[int, int]:
    """Return how many negations a document has, and how many of its words are guarded; find these."""
    negations = count = 0
    until, last = tokens.word_offsets[i], tokens.word_offsets[i + 1]
    for k in range(until, last):
        start, end = int(tokens.starts[k]), int(tokens.ends[k])
        word_hash = np.uint64(tokens.hashes[k])
        number = number_of_span(listed.table, tokens.normal, start, end, word_hash)
        role = np.int64(listed.roles[number]) if number >= 0 else 0
        if role & _IS_GUARDED:
            spans.starts[count], spans.ends[count] = start, end
            count += 1
        if k >= until:
            length = 0
            if role & _BEGINS:
                length = _length_of_phrase(tokens, k, last, listed)
            if not length and (
                role & _NEGATES or (has_parts and _has_part(tokens.normal, start, end))
            ):
                length = 1
            negations += length > 0
            until = k + length
    return negations, count


@inlined_kernel
def _length_of_phrase(tokens: Tokens, k: int, last: int, listed: _Listed) -> int:
    """Return the number of words of the longest negation of several words from a word on, or 0."""
    for length in range(min(LONGEST_PHRASE, last - k), 1, -1):
        start, end = int(tokens.starts[k]), int(tokens.ends[k + length - 1])
        phrase_hash = hash_span(tokens.normal, start, end)
        number = number_of_span(listed.table, tokens.normal, start, end, phrase_hash)
        if number >= 0 and listed.roles[number] & _NEGATES:
            return length
    return 0


@inlined_kernel
def _has_part(data: ByteArray, start: int, end: int) -> bool:
    for k in range(start, end - 2):
        for part in _PARTS:
            if data[k] == part[0] and data[k + 1] == part[1] and data[k + 2] == part[2]:
                return True
    return False


@kernel
def _with_space(lines: ByteArray, size: int, spans: _Spans, count: int) -> ByteArray:
    """Return lines with space for a line of each of the first spans, and one more."""
    needed = size + _ROOM + PADDING
    for i in range(count):
        needed += spans.ends[i] - spans.starts[i] + _ROOM
    if needed <= len(lines):
        return lines
    longer = np.empty(2 * needed, np.uint8)
    copy_span(lines, 0, size, longer, 0)
    return longer


@inlined_kernel
def _write_count(number: int, lines: ByteArray, size: int) -> int:
    """Write how many negations there are; return the bytes that are written."""
    for byte in _NEGATIONS:
        lines[size] = byte
        size += 1
    power = 1
    while power * 10 <= number:
        power *= 10
    while power:
        lines[size] = _ZERO + number // power % 10
        size += 1
        power //= 10
    lines[size] = _NEWLINE
    return size + 1


@inlined_kernel
def _write(
    data: ByteArray,
    spans: _Spans,
    count: int,
    kind: tuple[int, ...],
    lines: ByteArray,
    size: int,
) -> int:
    """Write a line for each different span, in order of their bytes; return the bytes written."""
    _sort(data, spans, count)
    for i in range(count):
        start, end = spans.starts[spans.order[i]], spans.ends[spans.order[i]]
        if i > 0 and _compare(data, spans, spans.order[i - 1], spans.order[i]) == 0:
            continue
        for byte in kind:
            lines[size] = byte
            size += 1
        size = copy_span(data, start, end, lines, size)
        lines[size] = _NEWLINE
        size += 1
    return size


@kernel
def _sort(data: ByteArray, spans: _Spans, count: int) -> None:
    """Sort the first spans by their bytes: few at a time by insertion, and then by merging."""
    order, merged = spans.order, spans.merged
    for first in range(0, count, _FEW):
        for i in range(first, min(first + _FEW, count)):
            at = i
            while at > first and _compare(data, spans, order[at - 1], i) > 0:
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
    width = _FEW
    while width < count:
        for first in range(0, count, 2 * width):
            middle, end = min(first + width, count), min(first + 2 * width, count)
            a, b = first, middle
            for at in range(first, end):
                if b == end or (a < middle and _compare(data, spans, order[a], order[b]) <= 0):
                    merged[at] = order[a]
                    a += 1
                else:
                    merged[at] = order[b]
                    b += 1
        for at in range(count):
            order[at] = merged[at]
        width *= 2


@inlined_kernel
def _compare(data: ByteArray, spans: _Spans, a: int, b: int) -> int:
    """Return a number below, at or above 0, as the bytes of a are before, at or after those of b."""
    start, other = spans.starts[a], spans.starts[b]
    length, other_length = spans.ends[a] - start, spans.ends[b] - other
    for k in range(min(length, other_length)):
        if data[start + k] != data[other + k]:
            return int(np.int64(data[start + k]) - np.int64(data[other + k]))
    return int(length - other_length)
