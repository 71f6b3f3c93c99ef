"""Caches of words with their ids; kernels look up whole batches of words."""

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
    load64,
    prefetch,
)
from textsim_db.text.hashing import (
    ALL_BITS,
    SPREAD,
    enter,
    find,
    first_slot,
    following,
    hash_table,
    is_taken,
)
from textsim_db.text.utf8 import Tokens

MAX_CACHED_WORDS = 2_000_000
"""The number of cached words. A larger cache needs more memory, and fewer look-ups in the database."""
MAX_LONG_BYTES = 8 * 1024 * 1024
"""The bytes of words that are too long for their slots."""

_INLINE = 16
"""The longest word that a slot can hold, in bytes."""
_SLOT_FIELDS = 4
_AHEAD = 64
"""The words between a word that is looked up and the word whose slot is fetched from memory."""
_LINE = 64
"""Bytes that the processor fetches from memory at once. A slot never lies in two such lines."""
_LOW_HALF = np.uint64(0xFFFFFFFF)
_LENGTH_SHIFT = np.uint64(32)


class _Table(NamedTuple):
    """Slots of 32 bytes by the method of text.hashing, which hold words: a look-up reads one place."""

    slots: HashArray
    """Shape (slots, 4): the length of a word and its id in the halves of a number; its hash; its bytes.

    A free slot has 0 first. A word of more than 16 bytes has its place in long_words instead.
    """
    long_words: ByteArray
    """The words that are too long for a slot."""
    shift: int
    """The bits that a hash is shifted by to give a slot."""
    spread: int
    """The secret multiplier of hashes: nobody can choose words that crowd a part of the table."""


class WordCache:
    """Words with their hashes and ids, in at most 136 MiB.

    When the cache is full, it is emptied, because frequent words come back at once. Words are compared
    by their bytes; the hash only finds the slot.
    """

    def __init__(self, is_bounded: bool = True) -> None:
        """Make an empty cache; without a bound it keeps all words, whatever memory they take."""
        self._is_bounded = is_bounded
        self.clear()

    def clear(self) -> None:
        self._count = 0
        self._bytes_used = 0
        self._table = _empty_table(1 << 8, np.zeros(1 << 10, np.uint8))

    def __len__(self) -> int:
        return self._count

    def find(self, tokens: Tokens) -> Int32Array:
        return _find(self._table, tokens)

    def add(self, words: Tokens, ids: Int32Array) -> None:
        """Add words with different hashes, and skip words whose hash is cached already."""
        lengths = words.ends - words.starts
        long_bytes = int((lengths[lengths > _INLINE] + 7).sum())
        if self._is_bounded and (
            self._count + len(ids) > MAX_CACHED_WORDS
            or self._bytes_used + long_bytes > MAX_LONG_BYTES
        ):
            self.clear()
        self._make_room(self._count + len(ids), self._bytes_used + long_bytes)
        added, self._bytes_used = _enter_words(self._table, words, ids, self._bytes_used)
        self._count += added

    def texts(self, ids: Int32Array) -> dict[int, str]:
        """Return the words with these ids; it reads the whole cache."""
        heads = self._table.slots[:, 0]
        slots = self._table.slots[(heads != 0) & np.isin((heads & _LOW_HALF).astype(np.int32), ids)]
        texts = {}
        for head, _, first, second in slots.tolist():
            length = head >> 32
            text = first.to_bytes(8, "little") + second.to_bytes(8, "little")
            if length > _INLINE:
                text = self._table.long_words[first : first + length].tobytes()
            texts[head & 0xFFFFFFFF] = text[:length].decode()
        return texts

    def _make_room(self, words: int, long_bytes: int) -> None:
        long_words = self._table.long_words
        if long_bytes > len(long_words):
            long_words = np.zeros(_power_of_two(long_bytes), np.uint8)
            long_words[: self._bytes_used] = self._table.long_words[: self._bytes_used]
            self._table = self._table._replace(long_words=long_words)
        if 2 * words > len(self._table.slots):
            larger = _empty_table(_power_of_two(2 * words), long_words)
            _copy_slots(self._table, larger)
            self._table = larger


class WordsInMemory:
    """Gives ids to words, which hold as long as the object."""

    def __init__(self) -> None:
        self._cache = WordCache(is_bounded=False)
        self.texts = self._cache.texts

    def __len__(self) -> int:
        return len(self._cache)

    def ids(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, 0 for a word with the hash of another word: (words,)."""
        ids = self._cache.find(tokens)
        if not ids.all():
            words = tokens.take(distinct_missing(tokens, ids))
            first = len(self._cache) + 1
            self._cache.add(words, np.arange(first, first + len(words.hashes), dtype=np.int32))
            missing = np.flatnonzero(ids == 0)
            ids[missing] = self._cache.find(tokens.take(missing))
        return ids


def _empty_table(slots: int, long_words: ByteArray) -> _Table:
    shift = 64 - (slots.bit_length() - 1)
    size = 8 * _SLOT_FIELDS * slots
    data = np.zeros(size + _LINE, np.uint8)
    first = -data.ctypes.data % _LINE
    aligned = data[first : first + size].view(np.uint64).reshape(slots, _SLOT_FIELDS)
    return _Table(aligned, long_words, shift, SPREAD)


def _power_of_two(at_least: int) -> int:
    return 1 << (at_least - 1).bit_length()


@kernel
def _find(table: _Table, tokens: Tokens) -> Int32Array:
    """Look words up while the slots of the words after them are fetched from memory."""
    ids = np.empty(len(tokens.starts), np.int32)
    slots = table.slots.reshape(-1)
    for i in range(len(ids)):
        later = np.uint64(tokens.hashes[min(i + _AHEAD, len(ids) - 1)])
        prefetch(slots, _SLOT_FIELDS * int(first_slot(later, table.spread, table.shift)))
        ids[i] = _find_word(table, tokens, i)
    return ids


@inlined_kernel
def _find_word(table: _Table, tokens: Tokens, i: int) -> np.int32:
    start, length = tokens.starts[i], tokens.ends[i] - tokens.starts[i]
    word_hash = np.uint64(tokens.hashes[i])
    first, second = _inline_bytes(tokens.normal, start, length)
    slot = first_slot(word_hash, table.spread, table.shift)
    while table.slots[slot, 0] != 0:
        if _has_word(table, slot, word_hash, first, second, tokens.normal, start, length):
            return np.int32(table.slots[slot, 0] & _LOW_HALF)
        slot = following(slot, table.shift)
    return np.int32(0)


@inlined_kernel
def _has_word(
    table: _Table,
    slot: np.uint64,
    word_hash: np.uint64,
    first: np.uint64,
    second: np.uint64,
    data: ByteArray,
    start: int,
    length: int,
) -> bool:
    """Return whether a slot in use has this word; first and second: see _inline_bytes."""
    slots = table.slots
    # One branch instead of four, because the processor predicts none of them alone.
    has_hash = (slots[slot, 1] == word_hash) & (
        slots[slot, 0] >> _LENGTH_SHIFT == np.uint64(length)
    )
    if length > _INLINE:
        return bool(has_hash) and _is_equal_long(
            table.long_words, int(slots[slot, 2]), data, start, length
        )
    return bool(has_hash & (slots[slot, 2] == first) & (slots[slot, 3] == second))


@inlined_kernel
def _is_equal_long(
    long_words: ByteArray, at: int, data: ByteArray, start: int, length: int
) -> bool:
    for k in range(0, length - 7, 8):
        if load64(long_words, at + k) != load64(data, start + k):
            return False
    tail = length & 7
    if not tail:
        return True
    begin = length - tail
    return bool(load64(long_words, at + begin) == _masked(load64(data, start + begin), tail))


@inlined_kernel
def _inline_bytes(data: ByteArray, start: int, length: int) -> tuple[np.uint64, np.uint64]:
    """Return the first 16 bytes of a word as two numbers; the bytes after the word are 0."""
    first, second = load64(data, start), load64(data, start + 8)
    return _masked(first, min(length, 8)), _masked(second, max(min(length, 16) - 8, 0))


@inlined_kernel
def _masked(eight_bytes: np.uint64, length: int) -> np.uint64:
    """Return the first length bytes, of at most eight, and 0 in place of the other bytes."""
    mask = (ALL_BITS >> np.uint64(64 - 8 * length)) if length else np.uint64(0)
    return np.uint64(eight_bytes & mask)


@inlined_kernel
def _slot_of_hash(table: _Table, word_hash: np.uint64) -> np.uint64:
    """Return the slot of the word with this hash, or the free slot where it belongs."""
    slot = first_slot(word_hash, table.spread, table.shift)
    while table.slots[slot, 0] != 0 and table.slots[slot, 1] != word_hash:
        slot = following(slot, table.shift)
    return slot


@kernel
def _enter_words(table: _Table, words: Tokens, ids: Int32Array, bytes_used: int) -> tuple[int, int]:
    """Enter words; return the number of added words, and the bytes used by all long words."""
    added = 0
    for i in range(len(ids)):
        start, length = words.starts[i], words.ends[i] - words.starts[i]
        word_hash = np.uint64(words.hashes[i])
        slot = _slot_of_hash(table, word_hash)
        if table.slots[slot, 0] != 0:
            continue
        added += 1
        table.slots[slot, 0] = (np.uint64(length) << _LENGTH_SHIFT) | np.uint64(ids[i])
        table.slots[slot, 1] = word_hash
        if length <= _INLINE:
            first, second = _inline_bytes(words.normal, start, length)
            table.slots[slot, 2] = first
            table.slots[slot, 3] = second
        else:
            table.slots[slot, 2] = np.uint64(bytes_used)
            bytes_used = _append(table.long_words, bytes_used, words.normal, start, length)
    return added, bytes_used


@inlined_kernel
def _append(long_words: ByteArray, at: int, data: ByteArray, start: int, length: int) -> int:
    """Copy a word to a place filled with zeros, and return the next place, a multiple of eight."""
    for k in range(length):
        long_words[at + k] = data[start + k]
    return at + ((length + 7) & ~7)


@kernel
def _copy_slots(table: _Table, larger: _Table) -> None:
    for i in range(len(table.slots)):
        if table.slots[i, 0] != 0:
            slot = _slot_of_hash(larger, table.slots[i, 1])
            for field in range(_SLOT_FIELDS):
                larger.slots[slot, field] = table.slots[i, field]


def distinct_missing(tokens: Tokens, ids: Int32Array) -> Int64Array:
    """Return the places of the words without an id, one for each hash, ordered by hash: (words,)."""
    numbers = _distinct_missing(tokens.hashes, ids, SPREAD)
    return numbers[np.argsort(tokens.hashes[numbers])]


@kernel
def _distinct_missing(hashes: Int64Array, ids: Int32Array, spread: int) -> Int64Array:
    missing = 0
    for word_id in ids:
        missing += word_id == 0
    numbers, distinct_hashes = np.empty(missing, np.int64), np.empty(missing, np.uint64)
    table = hash_table(distinct_hashes, missing, spread)
    count = 0
    for i in range(len(ids)):
        if ids[i] == 0:
            slot = find(table, np.uint64(hashes[i]))
            if not is_taken(table, slot):
                numbers[count] = i
                distinct_hashes[count] = np.uint64(hashes[i])
                enter(table, slot, count)
                count += 1
    return numbers[:count]
