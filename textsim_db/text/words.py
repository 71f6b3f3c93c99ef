"""The words of texts as numbers, for comparisons that need no dictionary, and their places in a text.

A text is cut at spaces, and then before each character that begins a word. The normal form of each part
has the words of this part, because the normal form joins no characters across such a border.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from textsim_db.text.hashing import (
    SPREAD,
    HashTable,
    enter,
    find,
    find_next,
    hash_table,
    is_taken,
    number_at,
)
from textsim_db.text.nfkc import MARK, SEPARATOR, SPACELESS, UNASSIGNED, tables
from textsim_db.text.numba_compiler import BoolArray, Int32Array, Int64Array, inlined_kernel, kernel
from textsim_db.text.storable_text import to_bytes
from textsim_db.text.tokens import Tokens, tokenize
from textsim_db.text.utf8 import same_spans


def word_numbers(tokens: Tokens) -> Int32Array:
    """Return a number for each word: int32 of shape (words,).

    Two words have the same number only if their bytes are equal; the hash only finds the place to look.
    """
    return _word_numbers(tokens, SPREAD)


@kernel
def _word_numbers(tokens: Tokens, spread: int) -> Int32Array:
    words = len(tokens.hashes)
    numbers = np.empty(words, np.int32)
    table = hash_table(np.empty(words, np.uint64), words, spread)
    firsts = np.empty(words, np.int32)
    count = 0
    for word in range(words):
        slot = _slot_of(tokens, table, firsts, word)
        if not is_taken(table, slot):
            table.hashes[count] = np.uint64(tokens.hashes[word])
            firsts[count] = word
            enter(table, slot, count)
            count += 1
        numbers[word] = number_at(table, slot)
    return numbers


@inlined_kernel
def _slot_of(tokens: Tokens, table: HashTable, firsts: Int32Array, word: int) -> np.uint64:
    """Return the slot of a word, or the free slot where it belongs; firsts: a word of each number."""
    word_hash = np.uint64(tokens.hashes[word])
    slot = find(table, word_hash)
    while is_taken(table, slot):
        other = firsts[number_at(table, slot)]
        start, end = tokens.starts[other], tokens.ends[other]
        if same_spans(
            tokens.normal, tokens.starts[word], tokens.ends[word], tokens.normal, start, end
        ):
            break
        slot = find_next(table, word_hash, slot)
    return slot


_SPACE = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
PIECES = re.compile(f"[{_SPACE}]+|[^{_SPACE}]+[{_SPACE}]*")
"""The pieces of a text between spaces; each but the first has the spaces after it."""
_ASCII_WORDS = re.compile("[0-9A-Za-z]+")


class WordPlaces(NamedTuple):
    """The place of each word of a text."""

    starts: Int64Array
    """The characters before the word: (words,)."""
    ends: Int64Array
    """The characters up to its end: (words,)."""

    def take(self, are_chosen: BoolArray | Int64Array) -> WordPlaces:
        """Return the places of some words, given a mask or their indices."""
        return WordPlaces(self.starts[are_chosen], self.ends[are_chosen])

    def of_characters(self, text: str, words: Sequence[str]) -> WordPlaces:
        """Return the places of the characters of words with one space between them.

        If the characters of a word are others in the text, such as "ﬁ" for "fi", each has the place of
        the word.
        """
        places: list[tuple[int, int]] = []
        for word, start, end in zip(words, self.starts.tolist(), self.ends.tolist(), strict=True):
            if places:
                places.append((places[-1][1], start))
            if _characters_of(text[start:end]) == list(word):
                places += [(start + k, start + k + 1) for k in range(len(word))]
            else:
                places += [(start, end)] * len(word)
        return _of_pairs(places)

    def span(self, first: int, count: int) -> tuple[int, int]:
        """Return the characters before a run of words, and up to its end."""
        return int(self.starts[first]), int(self.ends[first + count - 1])


def word_places(text: str) -> WordPlaces:
    """Return the place of each word of the normal form of a text.

    If one character makes several words, such as the fraction in "½", they have the same place. Raises
    DocumentError for NUL and lone surrogates.
    """
    if text.isascii():
        return _of_pairs([word.span() for word in _ASCII_WORDS.finditer(text)])
    places: list[tuple[int, int]] = []
    for piece in PIECES.finditer(text):
        start, characters = piece.start(), piece.group()
        if characters.isascii():
            places += [word.span() for word in _ASCII_WORDS.finditer(text, *piece.span())]
            continue
        for part in _parts(characters):
            last = start + part.first + _length_of_words(characters[part.first : part.end])
            places += [(start + part.first, last)] * part.words
    return _of_pairs(places)


def _of_pairs(places: list[tuple[int, int]]) -> WordPlaces:
    starts, ends = np.array(places, np.int64).reshape(-1, 2).T
    return WordPlaces(starts, ends)


def words_of_pieces(pieces: Sequence[str]) -> list[list[str]]:
    """Return the words of each piece of a text."""
    normal = tokenize([to_bytes(piece) for piece in pieces])
    words = normal.words(np.arange(len(normal.starts)))
    return [words[i:j] for i, j in pairwise(normal.word_offsets.tolist())]


def cut_before_words(piece: str) -> Iterator[str]:
    """Cut a piece before each character whose NFKC form begins a word.

    A character that also continues a word, such as the fraction in "x½", is not cut off.
    """
    return (piece[part.first : part.end] for part in _parts(piece))


class _Part(NamedTuple):
    """A part of a piece that begins with a word, or is the first part."""

    first: int
    """The characters before it."""
    end: int
    """The characters up to its end."""
    words: int
    """The words that begin in it."""


def _parts(piece: str) -> Iterator[_Part]:
    start, words, inside = 0, 0, SEPARATOR
    for i, character in enumerate(piece):
        begun, continues = 0, False
        for k, now in enumerate(_kinds_of(character)):
            if now == SEPARATOR:
                inside = SEPARATOR
            elif inside == SEPARATOR or now == SPACELESS or (inside == SPACELESS and now != MARK):
                begun, inside = begun + 1, now
            else:
                continues |= k == 0
        if begun and not continues and i > start:
            yield _Part(start, i, words)
            start, words = i, 0
        words += begun
    yield _Part(start, len(piece), words)


def _length_of_words(part: str) -> int:
    """Return the characters of a part without the characters after its last word."""
    end = len(part)
    while end and all(kind == SEPARATOR for kind in _kinds_of(part[end - 1])):
        end -= 1
    return end


def _characters_of(text: str) -> list[str]:
    """Return the normal form of each character alone."""
    return [unicodedata.normalize("NFKC", character).lower() for character in text]


def is_spaceless(word: str) -> bool:
    """Return whether a word is of a script that is written without spaces."""
    return SPACELESS in _kinds_of(word[0])


@lru_cache(maxsize=4096)
def _kinds_of(character: str) -> list[int]:
    """Return the kind of each character in the NFKC form of a character."""
    table = tables()
    if table.order[ord(character)] == UNASSIGNED:
        return [SEPARATOR]
    return [int(table.kind[ord(each)]) for each in unicodedata.normalize("NFKC", character)]
