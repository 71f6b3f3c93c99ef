"""Guards: what two texts must share, besides being similar, to be merged.

A guard of a document is the hash of the lines that guard_lines() returns. SQL computes the same in
24_guards.sql.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import (
    ByteArray,
    Int64Array,
    inlined_kernel,
    kernel,
    load64,
    longest,
    store64,
)
from textsim_db.settings.named_values import Guard, GuardRules
from textsim_db.text.distinctions import (
    AFTER_N,
    AFTER_NE,
    CLITICS,
    ENDS_OF_NE,
    FILLERS,
    HOSTS,
    LONGEST_PHRASE,
    MOST_WORDS_INSIDE,
    NEGATION_PHRASES,
    NEGATION_SYLLABLES,
    NEGATIONS,
)
from textsim_db.text.guard_lines import ORDINALS, UNITS
from textsim_db.text.hashing import PADDING, hash_span
from textsim_db.text.nfkc import zero_bytes
from textsim_db.text.split_words import digits
from textsim_db.text.utf8 import Tokens, WordTable, copy_span, number_of_span, word_table


def guards_of(tokens: Tokens, rules: GuardRules) -> Int64Array:
    """Return the guard of each document: (documents,)."""
    kinds = _Kinds(*(guard in rules.guards for guard in Guard))
    return _guards_of(tokens, _listed(rules), kinds)


class _Kinds(NamedTuple):
    """Which guards there are."""

    numbers: bool
    negations: bool
    words: bool
    content: bool


class _Listed(NamedTuple):
    """The words, phrases and endings that guards look for."""

    table: WordTable
    """All of them, and the first words of the phrases."""
    roles: Int64Array
    """The roles of each, added up."""


_NEGATES, _BEGINS, _IS_GUARDED, _IS_UNIT, _IS_ORDINAL, _FILLS, _HOSTS, _LEANS = (
    1 << bit for bit in range(8)
)
_IS_N, _IS_NE, _ENDS, _ENDS_N, _ENDS_NE = (1 << bit for bit in range(8, 13))
"""The roles of a listed word."""


@lru_cache(maxsize=128)
def _listed(rules: GuardRules) -> _Listed:
    kinds = [
        (Guard.NEGATIONS, _NEGATES, NEGATIONS | NEGATION_PHRASES),
        (Guard.NEGATIONS, _BEGINS, {phrase.split()[0] for phrase in NEGATION_PHRASES}),
        (Guard.NEGATIONS, _IS_N, ["n"]),
        (Guard.NEGATIONS, _IS_NE, ["ne"]),
        (Guard.NEGATIONS, _ENDS, ENDS_OF_NE),
        (Guard.NEGATIONS, _ENDS_N, AFTER_N),
        (Guard.NEGATIONS, _ENDS_NE, AFTER_NE),
        (Guard.WORDS, _IS_GUARDED, rules.words),
        (Guard.NUMBERS, _IS_UNIT, UNITS),
        (Guard.NUMBERS, _IS_ORDINAL, ORDINALS),
        (Guard.CONTENT, _IS_UNIT, UNITS),
        (Guard.CONTENT, _IS_ORDINAL, ORDINALS),
        (Guard.CONTENT, _FILLS, {*FILLERS, *rules.fillers}),
        (Guard.CONTENT, _HOSTS, HOSTS),
        (Guard.CONTENT, _LEANS, CLITICS),
    ]
    roles: dict[str, int] = {}
    for guard, role, words in kinds:
        for word in words if guard in rules.guards else ():
            roles[word] = roles.get(word, 0) | role
    return _Listed(
        word_table([word.encode() for word in roles]), np.array([*roles.values()], np.int64)
    )


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


_NUMBERS, _NEGATIONS, _GUARD_WORDS, _CONTENT = (
    tuple(b"numbers "),
    tuple(b"negations "),
    tuple(b"words "),
    tuple(b"content "),
)
_NEWLINE, _SPACE, _ZERO, _NINE, _MINUS = b"\n 09-"
_HANGUL, _SYLLABLES = (
    np.uint64(0x0101010101010101 * NEGATION_SYLLABLES.encode()[0]),
    tuple(tuple(syllable.encode()) for syllable in NEGATION_SYLLABLES),
)
_FEW = 16
"""Up to this number, spans are sorted by insertion."""
_ROOM = 64
"""Bytes for the words and numbers of a line."""
_NO_NUMBER, _INTEGER, _MEASURE, _MIXED = range(4)
"""The kinds of a word: no digit, an integer, an integer with a unit, or another word with a digit."""


class _Space(NamedTuple):
    """Space for what is computed of one document."""

    spans: _Spans
    roles: Int64Array
    """The roles of each of its words."""
    numbers: ByteArray
    """Its numbers as they are written plainly."""


@kernel
def _guards_of(tokens: Tokens, listed: _Listed, kinds: _Kinds) -> Int64Array:
    documents = len(tokens.word_offsets) - 1
    guards = np.empty(documents, np.int64)
    most = longest(tokens.word_offsets)
    spans = _Spans(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    plain = np.empty(longest(tokens.normal_offsets) + PADDING, np.uint8)
    space = _Space(spans, np.empty(most, np.int64), plain)
    lines = np.empty(1024, np.uint8)
    for i in range(documents):
        size = 0
        has_digit, has_hangul = _traits(tokens, i)
        if kinds.negations or kinds.words or kinds.content:
            _find_roles(tokens, i, listed, space.roles)
        if kinds.numbers and has_digit:
            count = _find_numbers(tokens, i, listed, space)
            lines = _with_space(lines, size, _bytes_of(spans, count))
            size = _write(plain, spans, count, _NUMBERS, lines, size)
        if kinds.negations:
            negations = _count_negations(tokens, i, listed, has_hangul, space.roles)
            if negations:
                lines = _with_space(lines, size, 0)
                size = _write_count(negations, lines, size)
        if kinds.words:
            count = _find_guard_words(tokens, i, space)
            lines = _with_space(lines, size, _bytes_of(spans, count))
            size = _write(tokens.normal, spans, count, _GUARD_WORDS, lines, size)
        if kinds.content:
            length = tokens.normal_offsets[i + 1] - tokens.normal_offsets[i]
            lines = _with_space(lines, size, length)
            size = _write_content(tokens, i, listed, has_digit, space.roles, lines, size)
        guards[i] = np.int64(hash_span(lines, 0, max(size - 1, 0)))
    return guards


@inlined_kernel
def _find_roles(tokens: Tokens, i: int, listed: _Listed, roles: Int64Array) -> None:
    first = tokens.word_offsets[i]
    for k in range(first, tokens.word_offsets[i + 1]):
        start, end = int(tokens.starts[k]), int(tokens.ends[k])
        word_hash = np.uint64(tokens.hashes[k])
        number = number_of_span(listed.table, tokens.normal, start, end, word_hash)
        roles[k - first] = listed.roles[number] if number >= 0 else 0


@inlined_kernel
def _traits(tokens: Tokens, i: int) -> tuple[bool, bool]:
    """Say whether a document may have a digit, and a syllable that negates."""
    digit_bits, hangul = np.uint64(0), np.uint64(0)
    for k in range(tokens.normal_offsets[i], tokens.normal_offsets[i + 1], 8):
        eight = load64(tokens.normal, k)
        digit_bits |= digits(eight)
        hangul |= zero_bytes(eight ^ _HANGUL)
    return digit_bits != 0, hangul != 0


@inlined_kernel
def _find_numbers(tokens: Tokens, i: int, listed: _Listed, space: _Space) -> int:
    """Write the numbers of a document plainly, and find them there; return how many there are."""
    spans, plain = space.spans, space.numbers
    count = size = 0
    is_run = is_open = False
    for k in range(tokens.word_offsets[i], tokens.word_offsets[i + 1]):
        start = int(tokens.starts[k])
        kind, end = _number_in(tokens, k, listed)
        if is_open and kind == _NO_NUMBER and _role(tokens, start, end, listed) & _IS_UNIT:
            size = copy_span(tokens.normal, start, end, plain, size)
            spans.ends[count - 1] = size
        if kind == _NO_NUMBER:
            is_run = is_open = False
            continue
        if is_run and kind != _MIXED:
            plain[size] = _SPACE
            size += 1
        else:
            spans.starts[count] = size
            count += 1
        size = copy_span(tokens.normal, start, end, plain, size)
        spans.ends[count - 1] = size
        is_run = is_open = kind == _INTEGER
    return count


@inlined_kernel
def _number_in(tokens: Tokens, k: int, listed: _Listed) -> tuple[int, int]:
    """Return what a word is as a number, and the byte after it without the ending of an ordinal."""
    data, start, end = tokens.normal, int(tokens.starts[k]), int(tokens.ends[k])
    if not _has_digit_in(data, start, end):
        return _NO_NUMBER, end
    first = start + (data[start] == _MINUS)
    after = first
    while after < end and _ZERO <= data[after] <= _NINE:
        after += 1
    if after == first:
        return _MIXED, end
    if after == end:
        return _INTEGER, end
    role = _role(tokens, after, end, listed)
    if role & _IS_ORDINAL and first == start:
        return _INTEGER, after
    return (_MEASURE if role & _IS_UNIT else _MIXED), end


@inlined_kernel
def _role(tokens: Tokens, start: int, end: int, listed: _Listed) -> int:
    span_hash = hash_span(tokens.normal, start, end)
    number = number_of_span(listed.table, tokens.normal, start, end, span_hash)
    return int(listed.roles[number]) if number >= 0 else 0


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
def _count_negations(
    tokens: Tokens, i: int, listed: _Listed, may_negate: bool, roles: Int64Array
) -> int:
    negations = 0
    first, last = tokens.word_offsets[i], tokens.word_offsets[i + 1]
    until = first
    for k in range(first, last):
        role = roles[k - first]
        if role & (_IS_N | _IS_NE):
            end = _end_of_ne(roles, k - first + 1, last - first)
            negations += bool(role & _IS_N and end & _ENDS_N)
            negations -= bool(role & _IS_NE and end & _ENDS_NE)
        if k < until or not (role & (_NEGATES | _BEGINS) or may_negate):
            continue
        length = _length_of_phrase(tokens, k, last, listed) if role & _BEGINS else 0
        start, end = int(tokens.starts[k]), int(tokens.ends[k])
        if not length and (
            role & _NEGATES or (may_negate and _has_syllable(tokens.normal, start, end))
        ):
            length = 1
        negations += length > 0
        until = k + length
    return negations


@inlined_kernel
def _end_of_ne(roles: Int64Array, start: int, last: int) -> int:
    """Return the role of the word that ends a negation of French, or 0 if there is no word inside."""
    for k in range(start, min(start + MOST_WORDS_INSIDE + 1, last)):
        if roles[k] & _ENDS:
            return int(roles[k]) if k > start else 0
    return 0


@inlined_kernel
def _find_guard_words(tokens: Tokens, i: int, space: _Space) -> int:
    count = 0
    first = tokens.word_offsets[i]
    for k in range(first, tokens.word_offsets[i + 1]):
        if space.roles[k - first] & _IS_GUARDED:
            space.spans.starts[count] = tokens.starts[k]
            space.spans.ends[count] = tokens.ends[k]
            count += 1
    return count


@inlined_kernel
def _write_content(
    tokens: Tokens,
    i: int,
    listed: _Listed,
    has_digit: bool,
    roles: Int64Array,
    lines: ByteArray,
    size: int,
) -> int:
    """Write the content words, or all words if there are only fillers; return the bytes written."""
    first, last = tokens.word_offsets[i], tokens.word_offsets[i + 1]
    if first == last:
        return size
    for byte in _CONTENT:
        lines[size] = byte
        size += 1
    begin = size
    is_open = False
    before = 0
    for k in range(first, last):
        role = roles[k - first]
        start, end = int(tokens.starts[k]), int(tokens.ends[k])
        kind = _NO_NUMBER
        if has_digit:
            kind, end = _number_in(tokens, k, listed)
        if kind != _NO_NUMBER:
            role = 0
        is_filler = role & _FILLS or (role & _LEANS and before & _HOSTS)
        if is_open and role & _IS_UNIT:
            size -= 1
            is_filler = False
        if not is_filler:
            # Eight bytes at once: what is too much is overwritten.
            for at in range(start, end, 8):
                store64(lines, size + at - start, load64(tokens.normal, at))
            size += end - start
            lines[size] = _SPACE
            size += 1
        is_open = kind == _INTEGER
        before = role
    if size == begin:
        start, end = tokens.normal_offsets[i], tokens.normal_offsets[i + 1]
        size = copy_span(tokens.normal, start, end, lines, size) + 1
    lines[size - 1] = _NEWLINE
    return size


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
def _has_syllable(data: ByteArray, start: int, end: int) -> bool:
    for k in range(start, end - 2):
        for syllable in _SYLLABLES:
            if data[k] == syllable[0] and data[k + 1] == syllable[1] and data[k + 2] == syllable[2]:
                return True
    return False


@inlined_kernel
def _bytes_of(spans: _Spans, count: int) -> int:
    """Return the bytes of a line for each of the first spans."""
    needed = 0
    for i in range(count):
        needed += spans.ends[i] - spans.starts[i] + _ROOM
    return needed


@kernel
def _with_space(lines: ByteArray, size: int, needed: int) -> ByteArray:
    """Return lines with space for these bytes and one more short line."""
    needed += size + _ROOM + PADDING
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
