"""The cache of words, and the hash table that all kernels share."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest

from textsim_db.base.numba_compiler import inlined_kernel, kernel
from textsim_db.text import word_cache
from textsim_db.text.hashing import (
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
from textsim_db.text.tokens import tokens_of
from textsim_db.text.utf8 import Tokens
from textsim_db.text.word_cache import WordCache, distinct_missing

LENGTHS = [1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 100, 1000, 70_000]


def tokens_with(words: list[str], hashes: list[int] | None = None) -> Tokens:
    tokens = tokens_of([" ".join(words).encode()])
    return tokens if hashes is None else tokens._replace(hashes=np.array(hashes, np.int64))


def add(cache: WordCache, tokens: Tokens, ids: list[int]) -> None:
    cache.add(tokens, np.array(ids, np.int32))


def test_words_of_all_lengths_are_compared_by_every_byte() -> None:
    cache = WordCache()
    words = ["a" * length for length in LENGTHS]
    add(cache, tokens_with(words), list(range(1, len(words) + 1)))
    assert cache.find(tokens_with(words)).tolist() == list(range(1, len(words) + 1))
    for number, length in enumerate(LENGTHS):
        for place in {0, length // 2, length - 1}:
            other = "a" * place + "b" + "a" * (length - place - 1)
            # The other word has the hash of the cached word.
            colliding = tokens_with([other], [int(tokens_with(words).hashes[number])])
            assert cache.find(colliding).tolist() == [0]


def test_words_with_one_hash_are_not_confused() -> None:
    cache = WordCache()
    add(cache, tokens_with(["first", "firstwordlongerthanaslot"], [5, 6]), [1, 2])
    asked = tokens_with(["first", "other", "firs", "first"], [5, 5, 5, 6])
    assert cache.find(asked).tolist() == [1, 0, 0, 0]
    # The dictionary has one word for each hash, so the cache adds no second one.
    add(cache, tokens_with(["first"], [5]), [1])
    assert len(cache) == 2


def test_the_cache_grows_to_its_limit_and_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "MAX_CACHED_WORDS", 50_000)
    cache = WordCache()
    for start in range(0, 200_000, 7_000):
        words = [f"{'long' * (i % 9)}{i}" for i in range(start, start + 7_000)]
        tokens = tokens_with(words)
        add(cache, tokens, list(range(start + 1, start + 7_001)))
        assert cache.find(tokens).tolist() == list(range(start + 1, start + 7_001))
        assert len(cache) <= 50_000
    assert cache.find(tokens_with(["never"])).tolist() == [0]


def test_long_words_are_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "MAX_LONG_BYTES", 10_000)
    cache = WordCache()
    for i in range(50):
        tokens = tokens_with([f"{i}" + "x" * 999, f"s{i}"])
        add(cache, tokens, [2 * i + 1, 2 * i + 2])
        assert cache.find(tokens).tolist() == [2 * i + 1, 2 * i + 2]
    assert len(cache) < 30


def test_a_missing_word_is_listed_once() -> None:
    tokens = tokens_with(["a", "b", "c", "b", "d", "a"], [9, -5, 3, -5, 3, 9])
    ids = np.array([0, 0, 0, 0, 0, 7], np.int32)
    # The result has the first word of each hash, ordered by hash.
    assert distinct_missing(tokens, ids).tolist() == [1, 2, 0]
    assert distinct_missing(tokens, ids + 1).tolist() == []


Hashes = npt.NDArray[np.uint64]


@kernel
def numbers_in(table: HashTable, value: np.uint64, numbers: npt.NDArray[np.int64]) -> int:
    """Write the numbers of the entries with a hash, and return how many there are."""
    count = 0
    slot = find(table, value)
    while is_taken(table, slot):
        numbers[count] = number_at(table, slot)
        count += 1
        slot = find_next(table, value, slot)
    return count


@kernel
def enter_number(table: HashTable, value: np.uint64, number: int) -> None:
    """Enter a number after those that have the same hash."""
    slot = find(table, value)
    while is_taken(table, slot):
        slot = find_next(table, value, slot)
    enter(table, slot, number)


def numbers_of(table: HashTable, value: int) -> list[int]:
    numbers = np.zeros(8, np.int64)
    entries: list[int] = numbers[: numbers_in(table, np.uint64(value), numbers)].tolist()
    return entries


def enter_hash(table: HashTable, number: int, value: int) -> None:
    table.hashes[number] = value
    enter_number(table, np.uint64(value), number)


@pytest.mark.parametrize("count", [0, 1, 8, 9, 2048, 2049, 5000])
def test_every_hash_has_its_number(rng: random.Random, count: int) -> None:
    hashes = np.array([rng.randrange(2**64) for _ in range(count)], np.uint64)
    table = table_of(hashes, count, SPREAD)
    assert [numbers_of(table, value) for value in hashes.tolist()] == [[n] for n in range(count)]
    others = {rng.randrange(2**64) for _ in range(100)} - set(hashes.tolist())
    assert not any(numbers_of(table, value) for value in others)


def test_hashes_of_one_slot_are_told_apart() -> None:
    inverse = pow(SPREAD, -1, 2**64)
    hashes = [value * inverse % 2**64 for value in range(8)]  # the products are 0 to 7
    last = [(2**64 - 1 - value) * inverse % 2**64 for value in range(8)]
    for values in (hashes, last, hashes + last):
        table = table_of(np.array(values, np.uint64), len(values), SPREAD)
        assert [numbers_of(table, value) for value in values] == [[n] for n in range(len(values))]
        assert numbers_of(table, 8 * inverse % 2**64) == []


def test_entries_with_one_hash_are_all_found() -> None:
    table = hash_table(np.full(3, 7, np.uint64), 3, SPREAD)
    for number in range(3):
        enter_hash(table, number, 7)
    assert numbers_of(table, 7) == [0, 1, 2]


@pytest.mark.parametrize("first", [3, 2**31 - 8, 2**31 - 1])
def test_an_emptied_table_finds_no_old_entry(first: int) -> None:
    table = hash_table(np.zeros(4, np.uint64), 4, SPREAD)
    table = emptied(table, table.hashes, first - 3, 3)
    for number in range(3):
        enter_hash(table, number, 100 + number)
    assert numbers_of(table, 102) == [2]
    table = emptied(table, table.hashes, first, 4)
    assert not any(numbers_of(table, value) for value in (0, 100, 101, 102))
    for number in range(4):
        enter_hash(table, number, 100 + number)
    assert [numbers_of(table, 100 + number) for number in range(4)] == [[0], [1], [2], [3]]


def test_python_can_call_an_inlined_kernel_and_it_returns_no_array() -> None:
    def returns_numbers(values: Hashes) -> tuple[int, float]:
        return len(values), 0.5

    def returns_array(values: Hashes) -> Hashes:
        return values

    step = inlined_kernel(returns_numbers)
    assert kernel(lambda values: step(values))(np.ones(3, np.uint64)) == (3, 0.5)
    assert step(np.ones(2, np.uint64)) == (2, 0.5)
    with pytest.raises(TypeError, match="returns_array"):
        inlined_kernel(returns_array)
