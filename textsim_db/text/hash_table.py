"""The hash table of all kernels: it finds the number of an entry by a 64-bit hash.

Open addressing with linear probing; multiplication by an odd number gives the first slot. Knuth, "The
Art of Computer Programming", volume 3, section 6.4. The number is secret, so nobody can choose keys
that collide and make a kernel take quadratic time.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numpy as np

from textsim_db.text.array_types import HashArray, Int32Array
from textsim_db.text.hashing import ALL_BITS
from textsim_db.text.numba_compiler import inlined_kernel, kernel

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
    slot = (key_hash * np.uint64(table.spread)) >> np.uint64(table.shift)
    return _probe(table, key_hash, slot)


@inlined_kernel
def find_next(table: HashTable, key_hash: np.uint64, slot: np.uint64) -> np.uint64:
    """Return the slot of the next entry with this hash, or the free slot where it belongs."""
    return _probe(table, key_hash, _following(table, slot))


@inlined_kernel
def _probe(table: HashTable, key_hash: np.uint64, slot: np.uint64) -> np.uint64:
    while is_taken(table, slot) and table.hashes[number_at(table, slot)] != key_hash:
        slot = _following(table, slot)
    return slot


@inlined_kernel
def _following(table: HashTable, slot: np.uint64) -> np.uint64:
    return np.uint64((slot + np.uint64(1)) & (ALL_BITS >> np.uint64(table.shift)))


@inlined_kernel
def is_taken(table: HashTable, slot: np.uint64) -> bool:
    """Say whether a slot has an entry."""
    return bool(table.slots[slot] >= table.first)


@inlined_kernel
def number_at(table: HashTable, slot: np.uint64) -> int:
    """Return the number of the entry in a slot."""
    return int(table.slots[slot] - table.first)


@inlined_kernel
def enter(table: HashTable, slot: np.uint64, number: int) -> None:
    """Write the number of an entry into the slot that find() or find_next() returned."""
    table.slots[slot] = table.first + number


@inlined_kernel
def leave(table: HashTable, slot: np.uint64) -> None:
    """Free the slot of an entry. The caller frees all entries that were entered after it as well."""
    table.slots[slot] = table.first - 1


def table_of(hashes: HashArray, count: int, spread: int) -> HashTable:
    """Return a table of the first count hashes, numbered in order, with space for all hashes."""
    slots, shift = _slots_of(hashes, count, spread)
    return HashTable(slots, hashes, 0, shift, spread)


@kernel
def _slots_of(hashes: HashArray, count: int, spread: int) -> tuple[Int32Array, int]:
    table = hash_table(hashes, len(hashes), spread)
    for number in range(count):
        enter(table, find(table, hashes[number]), number)
    return table.slots, table.shift
