"""The words of texts as numbers, for comparisons that need no dictionary, and their places in a text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import (
    BoolArray,
    ByteArray,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
)
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
from textsim_db.text.nfkc import (
    IGNORED,
    MARK,
    SPACELESS,
    Tables,
    find_unstable,
    join_broken_words,
    prepare_pieces,
    tables,
)
from textsim_db.text.storable import to_bytes
from textsim_db.text.tokens import split_with_places
from textsim_db.text.utf8 import Tokens, Utf8, concatenate, same_spans


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
        """Return the places of the characters of words, and of the space between two of them.

        If the characters of a word are others in the text, such as "ﬁ" for "fi", each has the place of
        the word.
        """
        places: list[tuple[int, int]] = []
        was_spaceless = True
        for word, start, end in zip(words, self.starts.tolist(), self.ends.tolist(), strict=True):
            if places and not (was_spaceless and is_spaceless(word)):
                places.append((places[-1][1], start))
            was_spaceless = is_spaceless(word)
            if list(map(_folded, text[start:end])) == list(word):
                places += [(start + k, start + k + 1) for k in range(len(word))]
            else:
                places += [(start, end)] * len(word)
        return WordPlaces(*np.array(places, np.int64).reshape(-1, 2).T)

    def span(self, first: int, count: int) -> tuple[int, int]:
        """Return the characters before a run of words, and up to its end."""
        return int(self.starts[first]), int(self.ends[first + count - 1])


def place_words(text: str) -> tuple[list[str], WordPlaces]:
    """Return the words of the normal form of a text, and the place of each in the text.

    A place reaches from the first to the last character of the word and its marks, with those between
    that the normal form leaves out. If one character makes several words, such as the fraction in "½",
    they have the same place. Raises DocumentError for NUL and lone surrogates.
    """
    body, table = concatenate([to_bytes(text)]), tables()
    character_of = np.cumsum(body.data & 0xC0 != 0x80) - 1
    firsts = lasts = character_of
    if find_unstable(body, table)[0]:
        body, firsts, lasts = _normalize_with_places(body.data, table, character_of)
    tokens, places = split_with_places(body, table)
    words = tokens.words(np.arange(len(tokens.starts)))
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    are_marks = table.kind[points] >= MARK
    are_others = ~are_marks & (table.traits[points] & IGNORED == 0)
    others = np.append(np.flatnonzero(are_others), len(points))
    ends = lasts[places.ends - 1] + 1
    last_marks = np.maximum.accumulate(np.where(are_marks, np.arange(1, len(points) + 1), 0))
    marked_ends = last_marks[others[np.searchsorted(others, ends)] - 1]
    return words, WordPlaces(firsts[places.starts], np.maximum(ends, marked_ends))


def _normalize_with_places(
    text: ByteArray, table: Tables, character_of: Int64Array
) -> tuple[Utf8, Int64Array, Int64Array]:
    """Return a text in NFKC, and the first and last character of the text for each byte: (bytes,) each.

    character_of: the character that each byte of the text belongs to.
    """
    at = np.zeros(len(text), np.int64)
    joined = join_broken_words(text, table, at)
    of_joined = np.zeros(2 * len(joined), np.int64)
    prepared, cuts = prepare_pieces(joined, table, 1, of_joined)
    if not len(prepared):
        return concatenate([b""]), at[:0], at[:0]
    characters = character_of[at[of_joined[: len(prepared)]]]
    is_changed = find_unstable(Utf8(prepared, cuts), table)
    pieces, firsts, lasts = list[bytes](), list[Int64Array](), list[Int64Array]()
    bounds = np.unique(np.append(np.flatnonzero(is_changed), np.flatnonzero(is_changed) + 1))
    bounds = np.unique(np.concatenate([[0], bounds, [len(is_changed)]]))
    for first, last in pairwise(bounds.tolist()):
        span = slice(cuts[first], cuts[last])
        piece, of_piece = prepared[span].tobytes(), characters[span]
        if is_changed[first]:
            piece = unicodedata.normalize("NFKC", piece.decode()).encode()
            firsts.append(np.full(len(piece), of_piece[0]))
            lasts.append(np.full(len(piece), of_piece[-1]))
        else:
            firsts.append(of_piece)
            lasts.append(of_piece)
        pieces.append(piece)
    return concatenate([b"".join(pieces)]), np.concatenate(firsts), np.concatenate(lasts)


def is_spaceless(word: str) -> bool:
    return bool(tables().kind[ord(word[0])] == SPACELESS)


@lru_cache(maxsize=4096)
def _folded(character: str) -> str:
    lower = tables().lower
    return "".join(chr(lower[ord(c)]) for c in unicodedata.normalize("NFKC", character))
