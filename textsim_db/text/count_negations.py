"""The negations of a document: words, phrases, Korean syllables, and n' and "ne" of French."""

from __future__ import annotations

import numpy as np

from textsim_db.base.numba_compiler import ByteArray, Int64Array, inlined_kernel, load64
from textsim_db.text.distinctions import LONGEST_PHRASE, MOST_WORDS_INSIDE, NEGATION_SYLLABLES
from textsim_db.text.nfkc import zero_bytes
from textsim_db.text.utf8 import Tokens
from textsim_db.text.word_roles import (
    BEGINS,
    ENDS,
    ENDS_N,
    ENDS_NE,
    IS_N,
    IS_NE,
    NEGATES,
    ListedWords,
    role_of_span,
)

_HANGUL, _SYLLABLES = (
    np.uint64(0x0101010101010101 * NEGATION_SYLLABLES.encode()[0]),
    tuple(tuple(syllable.encode()) for syllable in NEGATION_SYLLABLES),
)


@inlined_kernel
def count_negations(
    tokens: Tokens, i: int, listed: ListedWords, roles: Int64Array, places: Int64Array
) -> int:
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
