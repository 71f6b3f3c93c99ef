"""The hash table of the kernels; an inlined kernel returns no array."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest

from textsim_db.text.hash_table import (
    SPREAD,
    HashTable,
    emptied,
    enter,
    find,
    find_next,
    hash_table,
    is_taken,
    number_at,
    table_of,
)
from textsim_db.text.numba_compiler import inlined_kernel

Hashes = npt.NDArray[np.uint64]


def number_of(table: HashTable, value: int) -> int | None:
    slot = find(table, np.uint64(value))
    return number_at(table, slot) if is_taken(table, slot) else None


def enter_hash(table: HashTable, number: int, value: int) -> None:
    table.hashes[number] = value
    enter(table, find(table, np.uint64(value)), number)


@pytest.mark.parametrize("count", [0, 1, 8, 9, 2048, 2049, 5000])
def test_every_hash_has_its_number(rng: random.Random, count: int) -> None:
    hashes = np.array([rng.randrange(2**64) for _ in range(count)], np.uint64)
    table = table_of(hashes, count, SPREAD)
    assert [number_of(table, value) for value in hashes.tolist()] == list(range(count))
    others = {rng.randrange(2**64) for _ in range(100)} - set(hashes.tolist())
    assert {number_of(table, value) for value in others} == {None}


def test_hashes_of_one_slot_are_told_apart() -> None:
    inverse = pow(SPREAD, -1, 2**64)
    hashes = [value * inverse % 2**64 for value in range(8)]  # the products are 0 to 7
    last = [(2**64 - 1 - value) * inverse % 2**64 for value in range(8)]
    for values in (hashes, last, hashes + last):
        table = table_of(np.array(values, np.uint64), len(values), SPREAD)
        assert [number_of(table, value) for value in values] == list(range(len(values)))
        assert number_of(table, 8 * inverse % 2**64) is None


def test_entries_with_one_hash_are_all_found() -> None:
    table = hash_table(np.full(3, 7, np.uint64), 3, SPREAD)
    slot = find(table, np.uint64(7))
    for number in range(3):
        enter(table, slot, number)
        slot = find_next(table, np.uint64(7), slot)
        assert not is_taken(table, slot)
    slot = find(table, np.uint64(7))
    numbers = []
    while is_taken(table, slot):
        numbers.append(number_at(table, slot))
        slot = find_next(table, np.uint64(7), slot)
    assert numbers == [0, 1, 2]


@pytest.mark.parametrize("first", [3, 2**31 - 8, 2**31 - 1])
def test_an_emptied_table_finds_no_old_entry(first: int) -> None:
    table = hash_table(np.zeros(4, np.uint64), 4, SPREAD)
    table = emptied(table, table.hashes, first - 3, 3)
    for number in range(3):
        enter_hash(table, number, 100 + number)
    assert number_of(table, 102) == 2
    table = emptied(table, table.hashes, first, 4)
    assert {number_of(table, value) for value in (0, 100, 101, 102)} == {None}
    for number in range(4):
        enter_hash(table, number, 100 + number)
    assert [number_of(table, 100 + number) for number in range(4)] == [0, 1, 2, 3]


def test_an_inlined_kernel_that_returns_an_array_is_refused() -> None:
    def returns_numbers(values: Hashes) -> tuple[int, float]:
        return len(values), 0.5

    def returns_array(values: Hashes) -> Hashes:
        return values

    assert inlined_kernel(returns_numbers)(np.ones(3, np.uint64)) == (3, 0.5)
    with pytest.raises(TypeError, match="returns_array"):
        inlined_kernel(returns_array)
