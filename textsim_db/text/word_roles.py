"""The words that guards look for, what each of them is for, and the negations of a document."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import (
    ByteArray,
    HashArray,
    Int64Array,
    UInt32Array,
    inlined_kernel,
    load64,
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
from textsim_db.text.hashing import ALL_BITS, first_slot, hash_span
from textsim_db.text.nfkc import zero_bytes
from textsim_db.text.utf8 import Tokens, WordTable, number_of_span, word_table

NEGATES, BEGINS, IS_GUARDED, IS_UNIT, IS_ORDINAL, FILLS, HOSTS_CLITIC, IS_CLITIC = (
    1 << bit for bit in range(8)
)
IS_N, IS_NE, ENDS, ENDS_N, ENDS_NE = (1 << bit for bit in range(8, 13))
"""The roles of a listed word."""


class ListedWords(NamedTuple):
    """The words, phrases and endings that guards look for."""

    table: WordTable
    """All of them, and the first words of the phrases."""
    slots: UInt32Array
    """The slots of the table: the number of an entry, or of the last one, which is no word."""
    roles: Int64Array
    """The roles of each, added up; 0 for the last."""
    heads: HashArray
    """The first eight bytes of each."""
    masks: HashArray
    """All bits for each; 0 for the last."""


@lru_cache(maxsize=128)
def listed_words(rules: GuardRules) -> ListedWords:
    kinds = [
        (Guard.NEGATIONS, NEGATES, NEGATIONS | NEGATION_PHRASES),
        (Guard.NEGATIONS, BEGINS, {phrase.split()[0] for phrase in NEGATION_PHRASES}),
        (Guard.NEGATIONS, IS_N, ["n"]),
        (Guard.NEGATIONS, IS_NE, ["ne"]),
        (Guard.NEGATIONS, ENDS, ENDS_OF_NE),
        (Guard.NEGATIONS, ENDS_N, AFTER_N),
        (Guard.NEGATIONS, ENDS_NE, AFTER_NE),
        (Guard.WORDS, IS_GUARDED, rules.words),
        (Guard.NUMBERS, IS_UNIT, UNITS),
        (Guard.NUMBERS, IS_ORDINAL, ORDINALS),
        (Guard.CONTENT, IS_UNIT, UNITS),
        (Guard.CONTENT, IS_ORDINAL, ORDINALS),
        (Guard.CONTENT, FILLS, {*FILLERS, *rules.fillers}),
        (Guard.CONTENT, HOSTS_CLITIC, HOSTS),
        (Guard.CONTENT, IS_CLITIC, CLITICS),
    ]
    roles: dict[str, int] = {}
    for guard, role, words in kinds:
        for word in words if guard in rules.guards else ():
            roles[word] = roles.get(word, 0) | role
    encoded = [word.encode() for word in roles]
    table = word_table(encoded)
    slots = table.table.slots
    heads = bytearray().join(word[:8].ljust(8, b"\0") for word in [*encoded, b""])
    return ListedWords(
        table,
        np.where(slots < 0, len(encoded), slots).astype(np.uint32),
        np.array([*roles.values(), 0], np.int64),
        np.frombuffer(heads, np.uint64),
        np.array([ALL_BITS] * len(encoded) + [0], np.uint64),
    )


@inlined_kernel
def find_roles(tokens: Tokens, i: int, listed: ListedWords, roles: Int64Array) -> None:
    """Find the roles of each word of a document."""
    first = tokens.word_offsets[i]
    for k in range(first, tokens.word_offsets[i + 1]):
        roles[k - first] = role_of_word(tokens, k, listed)


@inlined_kernel
def role_of_word(tokens: Tokens, k: int, listed: ListedWords) -> int:
    """Return the roles of a word.

    A word of up to seven bytes is compared as one number, and what is not listed has a number, too. So
    no branch depends on whether a word is listed, which the processor would often predict wrong.
    """
    start, end = int(tokens.starts[k]), int(tokens.ends[k])
    word_hash = np.uint64(tokens.hashes[k])
    table = listed.table.table
    number = listed.slots[first_slot(word_hash, table.spread, table.shift)]
    head = load64(tokens.normal, start) & (ALL_BITS >> np.uint64(8 * max(8 - (end - start), 0)))
    may_differ = (listed.heads[number] ^ head) | np.uint64((end - start) >> 3)
    if may_differ & listed.masks[number]:
        return _role(tokens, start, end, word_hash, listed)
    return int(listed.roles[number])


@inlined_kernel
def role_of_span(tokens: Tokens, start: int, end: int, listed: ListedWords) -> int:
    """Return the roles of several words, or of a part of one."""
    return _role(tokens, start, end, hash_span(tokens.normal, start, end), listed)


@inlined_kernel
def _role(tokens: Tokens, start: int, end: int, span_hash: np.uint64, listed: ListedWords) -> int:
    number = number_of_span(listed.table, tokens.normal, start, end, span_hash)
    return int(listed.roles[number]) if number >= 0 else 0


_HANGUL, _SYLLABLES = (
    np.uint64(0x0101010101010101 * NEGATION_SYLLABLES.encode()[0]),
    tuple(tuple(syllable.encode()) for syllable in NEGATION_SYLLABLES),
)


@inlined_kernel
def count_negations(
    tokens: Tokens, i: int, listed: ListedWords, roles: Int64Array, places: Int64Array
) -> int:
    """Count words, phrases, Korean syllables, and n' and "ne" of French."""
    negations = 0
    first, last = tokens.word_offsets[i], tokens.word_offsets[i + 1]
    until = first
    for k in places:
        role = roles[k - first]
        if role & (IS_N | IS_NE):
            end = _end_of_ne(roles, k - first + 1, last - first)
            negations += bool(role & IS_N and end & ENDS_N)
            negations -= bool(role & IS_NE and end & ENDS_NE)
        if k < until or not role & (NEGATES | BEGINS):
            continue
        length = _length_of_phrase(tokens, k, last, listed) if role & BEGINS else 0
        if not length and role & NEGATES:
            length = 1
        negations += length > 0
        until = k + length
    return negations


@inlined_kernel
def may_have_syllable(tokens: Tokens, i: int) -> bool:
    """Say whether a document may have a syllable that negates."""
    hangul = np.uint64(0)
    for at in range(tokens.normal_offsets[i], tokens.normal_offsets[i + 1], 8):
        hangul |= zero_bytes(load64(tokens.normal, at) ^ _HANGUL)
    return bool(hangul)


@inlined_kernel
def find_syllables(tokens: Tokens, i: int, roles: Int64Array) -> None:
    """Give the words with a syllable that negates the role NEGATES."""
    first = tokens.word_offsets[i]
    for k in range(first, tokens.word_offsets[i + 1]):
        if _has_syllable(tokens.normal, int(tokens.starts[k]), int(tokens.ends[k])):
            roles[k - first] |= NEGATES


@inlined_kernel
def _end_of_ne(roles: Int64Array, start: int, last: int) -> int:
    """Return the role of the word that ends a negation of French, or 0 if there is no word inside."""
    for k in range(start, min(start + MOST_WORDS_INSIDE + 1, last)):
        if roles[k] & ENDS:
            return int(roles[k]) if k > start else 0
    return 0


@inlined_kernel
def _length_of_phrase(tokens: Tokens, k: int, last: int, listed: ListedWords) -> int:
    """Return the number of words of the longest negation of several words from a word on, or 0."""
    for length in range(min(LONGEST_PHRASE, last - k), 1, -1):
        start, end = int(tokens.starts[k]), int(tokens.ends[k + length - 1])
        if role_of_span(tokens, start, end, listed) & NEGATES:
            return length
    return 0


@inlined_kernel
def _has_syllable(data: ByteArray, start: int, end: int) -> bool:
    for k in range(start, end - 2):
        for syllable in _SYLLABLES:
            if data[k] == syllable[0] and data[k + 1] == syllable[1] and data[k + 2] == syllable[2]:
                return True
    return False
