"""Numbers for the distinct words of texts, for comparisons that need no dictionary."""

from __future__ import annotations

import numpy as np

from textsim_db.text.array_types import Int32Array
from textsim_db.text.hash_table import (
    SPREAD,
    HashTable,
    enter,
    find,
    find_next,
    hash_table,
    is_taken,
    number_at,
)
from textsim_db.text.numba_compiler import inlined_kernel, kernel
from textsim_db.text.tokens import Tokens
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
