"""Guards: what two texts must share, besides being similar, to be merged.

A guard of a document is the hash of the lines that guard_lines() returns. SQL computes the same in
24_guards.sql.
"""

from __future__ import annotations

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
from textsim_db.text.guard_spans import (
    NEWLINE,
    Spans,
    bytes_of_lines,
    space_for_spans,
    with_space,
    write_bytes,
    write_count,
    write_spans,
)
from textsim_db.text.hashing import PADDING, hash_span
from textsim_db.text.split_words import digits
from textsim_db.text.utf8 import Tokens, copy_span
from textsim_db.text.word_roles import (
    FILLS,
    HOSTS_CLITIC,
    IS_CLITIC,
    IS_GUARDED,
    IS_ORDINAL,
    IS_UNIT,
    ListedWords,
    count_negations,
    find_roles,
    find_syllables,
    listed_words,
    may_have_syllable,
    role_of_span,
    role_of_word,
)


def guards_of(tokens: Tokens, rules: GuardRules) -> Int64Array:
    """Return the guard of each document: (documents,)."""
    kinds = _Kinds(*(guard in rules.guards for guard in Guard))
    return _guards_of(tokens, listed_words(rules), kinds)


class _Kinds(NamedTuple):
    """Which guards there are."""

    numbers: bool
    negations: bool
    words: bool
    content: bool


_NUMBERS, _NEGATIONS, _GUARD_WORDS, _CONTENT = (
    tuple(b"numbers "),
    tuple(b"negations "),
    tuple(b"words "),
    tuple(b"content "),
)
_SPACE, _ZERO, _NINE, _MINUS = b" 09-"
_INTEGER, _MEASURE, _MIXED = range(3)
"""The kinds of a word with a digit: an integer, an integer with a unit, or another word."""
_HAS_DIGIT = 1 << 13
"""The role of a word with a digit, beside those of listed words."""


class _Space(NamedTuple):
    """Space for what is computed of one document."""

    spans: Spans
    roles: Int64Array
    """The roles of each of its words."""
    with_digit: Int64Array
    """The places of its words with a digit."""
    with_role: Int64Array
    """The places of its words with a role."""
    numbers: ByteArray
    """Its numbers as they are written plainly."""


@kernel
def _guards_of(tokens: Tokens, listed: ListedWords, kinds: _Kinds) -> Int64Array:
    documents = len(tokens.word_offsets) - 1
    guards = np.empty(documents, np.int64)
    most = longest(tokens.word_offsets)
    plain = np.empty(longest(tokens.normal_offsets) + PADDING, np.uint8)
    space = _Space(
        space_for_spans(most),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        plain,
    )
    lines = np.empty(1024, np.uint8)
    for i in range(documents):
        size = 0
        if kinds.negations or kinds.words or kinds.content:
            find_roles(tokens, i, listed, space.roles)
        if kinds.numbers or kinds.content:
            numbered = _find_words_with_digit(tokens, i, space)
            if kinds.numbers:
                count = _find_numbers(tokens, i, listed, space, numbered)
                lines = with_space(lines, size, bytes_of_lines(space.spans, count))
                size = write_spans(plain, space.spans, count, _NUMBERS, lines, size)
        if kinds.negations and may_have_syllable(tokens, i):
            find_syllables(tokens, i, space.roles)
        places = space.with_role[: _find_words_with_role(tokens, i, space)]
        if kinds.negations:
            negations = count_negations(tokens, i, listed, space.roles, places)
            if negations:
                lines = with_space(lines, size, 0)
                size = write_count(_NEGATIONS, negations, lines, size)
        if kinds.words:
            count = _find_guard_words(tokens, i, space, places)
            lines = with_space(lines, size, bytes_of_lines(space.spans, count))
            size = write_spans(tokens.normal, space.spans, count, _GUARD_WORDS, lines, size)
        if kinds.content:
            length = tokens.normal_offsets[i + 1] - tokens.normal_offsets[i]
            lines = with_space(lines, size, length)
            size = _write_content(tokens, i, listed, space.roles, places, lines, size)
        guards[i] = np.int64(hash_span(lines, 0, max(size - 1, 0)))
    return guards


@inlined_kernel
def _find_words_with_digit(tokens: Tokens, i: int, space: _Space) -> int:
    """Find the words with a digit, add _HAS_DIGIT to their roles, and return their number."""
    count = 0
    k = first = tokens.word_offsets[i]
    last = tokens.word_offsets[i + 1]
    for at in range(tokens.normal_offsets[i], tokens.normal_offsets[i + 1], 8):
        if not digits(load64(tokens.normal, at)):
            continue
        while k < last and tokens.ends[k] <= at:
            k += 1
        while k < last and tokens.starts[k] < at + 8:
            if _has_digit_in(tokens.normal, int(tokens.starts[k]), int(tokens.ends[k])):
                space.with_digit[count] = k
                space.roles[k - first] |= _HAS_DIGIT
                count += 1
            k += 1
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
def _find_numbers(tokens: Tokens, i: int, listed: ListedWords, space: _Space, numbered: int) -> int:
    """Write the numbers of a document plainly, and find them there; return how many there are."""
    spans, plain = space.spans, space.numbers
    last = tokens.word_offsets[i + 1]
    count = size = 0
    next_of_run = -1
    for k in space.with_digit[:numbered]:
        kind, end = _number_in(tokens, k, listed)
        if k == next_of_run and kind != _MIXED:
            plain[size] = _SPACE
            size += 1
        else:
            spans.starts[count] = size
            count += 1
        size = copy_span(tokens.normal, int(tokens.starts[k]), end, plain, size)
        next_of_run = -1
        if kind == _INTEGER:
            next_of_run = k + 1
            if k + 1 < last and role_of_word(tokens, k + 1, listed) & IS_UNIT:
                start, end = int(tokens.starts[k + 1]), int(tokens.ends[k + 1])
                size = copy_span(tokens.normal, start, end, plain, size)
        spans.ends[count - 1] = size
    return count


@inlined_kernel
def _number_in(tokens: Tokens, k: int, listed: ListedWords) -> tuple[int, int]:
    """Return what a word with a digit is, and the byte after it without the ending of an ordinal."""
    data, start, end = tokens.normal, int(tokens.starts[k]), int(tokens.ends[k])
    first = start + (data[start] == _MINUS)
    after = first
    while after < end and _ZERO <= data[after] <= _NINE:
        after += 1
    if after == first:
        return _MIXED, end
    if after == end:
        return _INTEGER, end
    role = role_of_span(tokens, after, end, listed)
    if role & IS_ORDINAL and first == start:
        return _INTEGER, after
    return (_MEASURE if role & IS_UNIT else _MIXED), end


@inlined_kernel
def _find_words_with_role(tokens: Tokens, i: int, space: _Space) -> int:
    """Find the words with a role, and return their number; no branch depends on a word."""
    count = 0
    first = tokens.word_offsets[i]
    for k in range(first, tokens.word_offsets[i + 1]):
        space.with_role[count] = k
        count += space.roles[k - first] != 0
    return count


@inlined_kernel
def _find_guard_words(tokens: Tokens, i: int, space: _Space, places: Int64Array) -> int:
    count = 0
    first = tokens.word_offsets[i]
    for k in places:
        if space.roles[k - first] & IS_GUARDED:
            space.spans.starts[count] = tokens.starts[k]
            space.spans.ends[count] = tokens.ends[k]
            count += 1
    return count


@inlined_kernel
def _write_content(
    tokens: Tokens,
    i: int,
    listed: ListedWords,
    roles: Int64Array,
    places: Int64Array,
    lines: ByteArray,
    size: int,
) -> int:
    """Write the content words, or all words if there are only fillers; return the bytes written.

    The words between two fillers are copied at once.
    """
    first = tokens.word_offsets[i]
    if first == tokens.word_offsets[i + 1]:
        return size
    begin = size = write_bytes(_CONTENT, lines, size)
    copied = tokens.normal_offsets[i]
    after_integer = -1
    for k in places:
        role = roles[k - first]
        start, end = int(tokens.starts[k]), int(tokens.ends[k])
        if role & _HAS_DIGIT:
            kind, without_ending = _number_in(tokens, k, listed)
            if without_ending < end:
                size = _copy_words(tokens.normal, copied, without_ending, lines, size)
                copied = end + 1
            if kind == _INTEGER:
                after_integer = k + 1
        elif k == after_integer and role & IS_UNIT:
            size = _copy_words(tokens.normal, copied, start - 1, lines, size) - 1
            copied = start
        elif role & FILLS or (
            role & IS_CLITIC and k > first and roles[k - 1 - first] & HOSTS_CLITIC
        ):
            size = _copy_words(tokens.normal, copied, start - 1, lines, size)
            copied = end + 1
    size = _copy_words(tokens.normal, copied, tokens.normal_offsets[i + 1], lines, size)
    if size == begin:
        start, end = tokens.normal_offsets[i], tokens.normal_offsets[i + 1]
        size = _copy_words(tokens.normal, start, end, lines, size)
    lines[size - 1] = NEWLINE
    return size


@inlined_kernel
def _copy_words(data: ByteArray, start: int, end: int, lines: ByteArray, size: int) -> int:
    """Copy words and write a space, unless there are none; return the bytes written."""
    if end <= start:
        return size
    # Eight bytes at once: what is too much is overwritten.
    for at in range(start, end, 8):
        store64(lines, size + at - start, load64(data, at))
    size += end - start
    lines[size] = _SPACE
    return size + 1
