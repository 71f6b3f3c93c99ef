"""PostgreSQL's own hash functions, bit for bit, as kernels; and the hash table of all kernels.

hashtextextended, hashint8extended and hash_array_extended are built on lookup3 (Bob Jenkins, 2006,
https://burtleburtle.net/bob/c/lookup3.c), with PostgreSQL's initial values. All arithmetic is in
uint32, so that it wraps as in C.

Hashing an integer takes three steps: fold() reduces it to 32 bits, seeded() mixes a seed into the
state, and hash_folded() joins the two. Only the last step is repeated if many integers are hashed
under one seed, or one integer under many seeds.

The hash table finds the number of an entry by a 64-bit hash. It has open addressing with linear
probing; multiplication by an odd number gives the first slot. Knuth, "The Art of Computer Programming",
volume 3, section 6.4. The number is secret, so nobody can choose keys that collide and make a kernel
take quadratic time.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import (
    ByteArray,
    HashArray,
    Int32Array,
    Int64Array,
    UInt32Array,
    inlined_kernel,
    kernel,
    load64,
)

States = UInt32Array
"""States of the hash after mixing in each seed: uint32 of shape (3, seeds)."""

_START = np.uint32(0x9E3779B9)
_LENGTH_BIAS = np.uint32(3923095)
ALL_BITS = np.uint64(2**64 - 1)
PADDING = 16
"""Bytes that must follow the last hashed span, because spans are read eight bytes at a time."""


@inlined_kernel
def _rotate(x: np.uint32, bits: int) -> np.uint32:
    return np.uint32((x << np.uint32(bits)) | (x >> np.uint32(32 - bits)))


@inlined_kernel
def _mix(a: np.uint32, b: np.uint32, c: np.uint32) -> tuple[np.uint32, np.uint32, np.uint32]:
    a = np.uint32((a - c) ^ _rotate(c, 4))
    c = np.uint32(c + b)
    b = np.uint32((b - a) ^ _rotate(a, 6))
    a = np.uint32(a + c)
    c = np.uint32((c - b) ^ _rotate(b, 8))
    b = np.uint32(b + a)
    a = np.uint32((a - c) ^ _rotate(c, 16))
    c = np.uint32(c + b)
    b = np.uint32((b - a) ^ _rotate(a, 19))
    a = np.uint32(a + c)
    c = np.uint32((c - b) ^ _rotate(b, 4))
    b = np.uint32(b + a)
    return a, b, c


@inlined_kernel
def _final(a: np.uint32, b: np.uint32, c: np.uint32) -> tuple[np.uint32, np.uint32]:
    c = np.uint32((c ^ b) - _rotate(b, 14))
    a = np.uint32((a ^ c) - _rotate(c, 11))
    b = np.uint32((b ^ a) - _rotate(a, 25))
    c = np.uint32((c ^ b) - _rotate(b, 16))
    a = np.uint32((a ^ c) - _rotate(c, 4))
    b = np.uint32((b ^ a) - _rotate(a, 14))
    c = np.uint32((c ^ b) - _rotate(b, 24))
    return b, c


@inlined_kernel
def hash_span(data: ByteArray, start: int, end: int) -> np.uint64:
    """Return hashtextextended(data[start:end], 0) as an unsigned integer.

    data must have PADDING bytes after the span, with any values.
    """
    a = b = c = np.uint32(_START + _LENGTH_BIAS + np.uint32(end - start))
    at = start
    while end - at >= 12:
        low = load64(data, at)
        a = np.uint32(a + np.uint32(low))
        b = np.uint32(b + np.uint32(low >> np.uint64(32)))
        c = np.uint32(c + np.uint32(load64(data, at + 8)))
        a, b, c = _mix(a, b, c)
        at += 12
    left = end - at
    # No branches: the processor cannot predict the lengths of words.
    low = load64(data, at)
    low &= (ALL_BITS >> np.uint64(64 - 8 * min(left, 8))) if left else np.uint64(0)
    # The lowest byte of c stands for the length, so the last bytes start at the second.
    last = load64(data, at + 8) & ((np.uint64(1) << np.uint64(8 * max(left - 8, 0))) - np.uint64(1))
    c = np.uint32(c + np.uint32(last << np.uint64(8)))
    b, c = _final(np.uint32(a + np.uint32(low)), np.uint32(b + np.uint32(low >> np.uint64(32))), c)
    return (np.uint64(b) << np.uint64(32)) | np.uint64(c)


@inlined_kernel
def seeded(seed: int) -> tuple[np.uint32, np.uint32, np.uint32]:
    """Return the state for hashing integers under a seed, a signed integer of 64 bits."""
    a = b = c = np.uint32(_START + _LENGTH_BIAS + np.uint32(4))
    if seed != 0:
        a = np.uint32(a + np.uint32(np.uint64(seed) >> np.uint64(32)))
        b = np.uint32(b + np.uint32(np.uint64(seed) & np.uint64(0xFFFFFFFF)))
        a, b, c = _mix(a, b, c)
    return a, b, c


@inlined_kernel
def fold(value: int) -> np.uint32:
    """Return the 32 bits of a signed integer that hashint8extended hashes.

    An int2 or int4 hashes like the int8 of the same value. Different integers may fold to the same 32
    bits. So only hashes are folded; numbers packed into 64 bits would collide.
    """
    low = np.uint32(value)
    high = np.uint32(np.uint64(value) >> np.uint64(32))
    return np.uint32(low ^ (high if value >= 0 else ~high))


@inlined_kernel
def hash_folded(
    a: np.uint32, b: np.uint32, c: np.uint32, folded: np.uint32
) -> tuple[np.uint32, np.uint32]:
    """Return the high and the low half of an integer's hash; a, b, c: the state of the seed."""
    return _final(np.uint32(a + folded), b, c)


@kernel
def seeded_states(first_seed: int, count: int) -> States:
    states = np.empty((3, count), np.uint32)
    for i in range(count):
        states[0, i], states[1, i], states[2, i] = seeded(first_seed + i)
    return states


@kernel
def hash_spans(data: ByteArray, starts: Int32Array, ends: Int32Array) -> Int64Array:
    """Return hashtextextended(span, 0) for each span of UTF-8 bytes: int64 of shape (spans,).

    data must have PADDING bytes after the last span.
    """
    hashes = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        hashes[i] = np.int64(hash_span(data, starts[i], ends[i]))
    return hashes


def hash_texts(texts: Sequence[str]) -> list[int]:
    encoded = [*(text.encode() for text in texts), bytes(PADDING)]
    ends = np.cumsum([len(each) for each in encoded], dtype=np.int32)
    starts = ends - np.array([len(each) for each in encoded], np.int32)
    data = np.frombuffer(bytearray().join(encoded), np.uint8)
    hashes: list[int] = hash_spans(data, starts[:-1], ends[:-1]).tolist()
    return hashes


def part_of_scope(scope: str) -> int:
    """Return the part of a corpus that documents of a scope belong to, as textsim._part() does.

    The engine knows no scopes, only this number. SHA-256, because a user may choose the name of a
    scope, and must not be able to find one that has the number of another.
    """
    return int.from_bytes(hashlib.sha256(scope.encode()).digest()[:8], "big", signed=True)


def parts_of_scopes(scopes: Sequence[str]) -> Int64Array:
    """Return the parts of documents: (documents,)."""
    return np.array([part_of_scope(each) for each in scopes], np.int64)


SPREAD = 0x61C886 << 40 | secrets.randbits(40) | 1
"""An odd number that is secret in each process.

Kernels take it as a parameter, because constants of a kernel are cached on disk. It has the high bits
of 2^64 divided by the square of the golden ratio, which spreads close numbers, such as word ids, evenly
over a table.
"""
_LAST = 2**31 - 1
_SMALL = 2048


class HashTable(NamedTuple):
    """Entries with numbers from 0 on, by their hashes."""

    slots: Int32Array
    """first + the number of an entry. A slot below first is free: a larger first empties the table."""
    hashes: HashArray
    """The hash of each entry. The caller writes the hash of an entry before it enters its number."""
    first: int
    shift: int
    """Only 2^(64 - shift) slots are used, so that few entries stay close together in memory."""
    spread: int
    """SPREAD."""


@kernel
def hash_table(hashes: HashArray, entries: int, spread: int) -> HashTable:
    """Return an empty table for at most this many entries with these hashes."""
    shift = shift_for(entries)
    return HashTable(np.full(1 << (64 - shift), -1, np.int32), hashes, 0, shift, spread)


@kernel
def emptied(table: HashTable, hashes: HashArray, first: int, entries: int) -> HashTable:
    """Return the table without entries, for at most this many new entries with these hashes.

    first: above the old first + number of each old entry. It restarts at 0 before int32 overflows.
    """
    if first + entries > _LAST:
        table.slots[:] = -1
        first = 0
    return HashTable(table.slots, hashes, first, shift_for(entries), table.spread)


@inlined_kernel
def shift_for(entries: int) -> int:
    """Return by how many bits a hash is shifted right to give its slot in a table for this many entries.

    Most slots of a small table are free, so the processor predicts the branches of a look-up well. A
    large table is at most half full.
    """
    wanted = max(min(entries, _SMALL) * 16, entries * 2)
    shift, size = 60, 16
    while size < wanted:
        size *= 2
        shift -= 1
    return shift


@inlined_kernel
def find(table: HashTable, key_hash: np.uint64) -> np.uint64:
    """Return the slot of the first entry with this hash, or the free slot where it belongs."""
    return _probe(table, key_hash, first_slot(key_hash, table.spread, table.shift))


@inlined_kernel
def first_slot(key_hash: np.uint64, spread: int, shift: int) -> np.uint64:
    return np.uint64((key_hash * np.uint64(spread)) >> np.uint64(shift))


@inlined_kernel
def find_next(table: HashTable, key_hash: np.uint64, slot: np.uint64) -> np.uint64:
    """Return the slot of the next entry with this hash, or the free slot where it belongs."""
    return _probe(table, key_hash, following(slot, table.shift))


@inlined_kernel
def _probe(table: HashTable, key_hash: np.uint64, slot: np.uint64) -> np.uint64:
    while is_taken(table, slot) and table.hashes[number_at(table, slot)] != key_hash:
        slot = following(slot, table.shift)
    return slot


@inlined_kernel
def following(slot: np.uint64, shift: int) -> np.uint64:
    return np.uint64((slot + np.uint64(1)) & (ALL_BITS >> np.uint64(shift)))


@inlined_kernel
def is_taken(table: HashTable, slot: np.uint64) -> bool:
    return bool(table.slots[slot] >= table.first)


@inlined_kernel
def number_at(table: HashTable, slot: np.uint64) -> int:
    return int(table.slots[slot] - table.first)


@inlined_kernel
def enter(table: HashTable, slot: np.uint64, number: int) -> None:
    """Write the number of an entry into the slot that find() or find_next() returned."""
    table.slots[slot] = table.first + number


def table_of(hashes: HashArray, count: int, spread: int) -> HashTable:
    """Return a table of the first count hashes, numbered in order, with space for all hashes."""
    slots, shift = _slots_of(hashes, count, spread)
    return HashTable(slots, hashes, 0, shift, spread)


def with_room(table: HashTable, count: int, more: int) -> HashTable:
    """Return a table with the first count entries, which has room for more."""
    if count + more <= len(table.hashes):
        return table
    hashes = np.empty(1 << (count + more).bit_length(), np.uint64)
    hashes[:count] = table.hashes[:count]
    return table_of(hashes, count, table.spread)


@kernel
def _slots_of(hashes: HashArray, count: int, spread: int) -> tuple[Int32Array, int]:
    table = hash_table(hashes, len(hashes), spread)
    for number in range(count):
        enter(table, find(table, hashes[number]), number)
    return table.slots, table.shift
