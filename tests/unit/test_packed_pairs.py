"""Packed pairs of buckets against sets of pairs."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from textsim_db.read.packed_pairs import (
    ALL,
    BucketsOfDocuments,
    Members,
    Part,
    count_pairs,
    distinct,
    is_among,
    joined_members,
    left_of,
    members_of,
    pack,
    pairs_of,
    right_of,
    same_anywhere,
    share_value,
)

Pair = tuple[int, int]


def random_buckets(rng: random.Random, count: int, ids: int = 60) -> list[set[int]]:
    return [set(rng.sample(range(1, ids), rng.randrange(9))) for _ in range(count)]


def members(rng: random.Random, buckets: list[set[int]]) -> Members:
    rows = [(place, i) for place, ids in enumerate(buckets) for i in ids]
    rows += rng.choices(rows, k=len(rows) // 3)
    rng.shuffle(rows)
    places, ids = np.array(rows, np.int32).reshape(-1, 2).T
    return members_of(places, ids, len(buckets))


def to_list(pairs: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[Pair]:
    return list(zip(left_of(pairs).tolist(), right_of(pairs).tolist(), strict=True))


def every_pair(buckets: list[set[int]]) -> Counter[Pair]:
    return Counter(pair for ids in buckets for pair in combinations(sorted(ids), 2))


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_all_rounds_together_give_every_pair_of_every_bucket(
    rng: random.Random, rounds: int
) -> None:
    buckets = random_buckets(rng, 200)
    of_buckets = members(rng, buckets)
    assert of_buckets.sizes.tolist() == [len(ids) for ids in buckets]
    expected = every_pair(buckets)
    assert count_pairs(of_buckets.sizes) == expected.total()
    parts = [ALL] if rounds == 1 else [Part(number, rounds) for number in range(rounds)]
    total_counts: Counter[Pair] = Counter()
    for part in parts:
        pairs = pairs_of(of_buckets, part)
        once, is_single = distinct([pairs[:10], pairs[10:]])
        counts = Counter(to_list(pairs))
        assert to_list(once) == sorted(counts)
        assert [counts[pair] == 1 for pair in sorted(counts)] == is_single.tolist()
        assert all(left % rounds == part.number for left, _ in counts)
        total_counts += counts
    assert total_counts == expected


def test_empty_buckets_give_no_pairs() -> None:
    nothing = members_of(np.empty(0, np.int32), np.empty(0, np.int32), 3)
    assert nothing.sizes.tolist() == [0, 0, 0]
    assert len(pairs_of(nothing)) == 0
    assert joined_members([]).sizes.tolist() == []
    pairs, is_single = distinct([])
    assert len(pairs) == len(is_single) == 0
    assert BucketsOfDocuments(joined_members([])).least_shared(
        pack(np.array([1]), np.array([2]))
    ).tolist() == [-1]


def test_negative_ids_of_damaged_rows_are_packed_exactly() -> None:
    ids = np.array([-(2**31), -5, 3, 2**31 - 1], np.int32)
    of_buckets = members_of(np.zeros(4, np.int32), ids, 1)
    assert of_buckets.ids.tolist() == ids.tolist()
    assert to_list(pairs_of(of_buckets)) == list(combinations(ids.tolist(), 2))
    assert to_list(pack(ids[:2], ids[2:])) == [(-(2**31), 3), (-5, 2**31 - 1)]


def test_buckets_and_documents_can_be_selected(rng: random.Random) -> None:
    buckets = random_buckets(rng, 100)
    of_buckets = members(rng, buckets)
    chosen = of_buckets.sizes > 4
    large = [sorted(ids) for ids in buckets if len(ids) > 4]
    taken = of_buckets.take(chosen)
    assert [part.tolist() for part in np.split(taken.ids, taken.offsets[1:-1])] == large
    without = of_buckets.keep(of_buckets.ids % 3 != 0)
    assert without.sizes.tolist() == [sum(i % 3 != 0 for i in ids) for ids in buckets]
    joined = joined_members([taken, without])
    assert joined.sizes.tolist() == [*taken.sizes.tolist(), *without.sizes.tolist()]
    among = is_among(of_buckets.ids, np.arange(10, 20))
    assert among.tolist() == [10 <= i < 20 for i in of_buckets.ids.tolist()]


def test_a_pair_counts_for_the_first_bucket_that_it_shares(rng: random.Random) -> None:
    buckets = random_buckets(rng, 40)
    by_document = BucketsOfDocuments(members(rng, buckets))
    pairs = [(rng.randrange(70), rng.randrange(70)) for _ in range(2000)]
    left, right = np.array(pairs, np.int64).T
    shared = by_document.least_shared(pack(left, right)).tolist()
    for (a, b), number in zip(pairs, shared, strict=True):
        both = [i for i, ids in enumerate(buckets) if a in ids and b in ids]
        assert number == min(both, default=-1)


def test_equal_values_are_seen_in_one_band_and_in_any_band(rng: random.Random) -> None:
    rows = [[rng.randrange(12) for _ in range(4)] for _ in range(40)]
    values = np.array(rows, np.int16)
    left = np.repeat(np.arange(40), 40)
    right = np.tile(np.arange(40), 40)
    same = same_anywhere(values, left, right).tolist()
    common = share_value(values[left].astype(np.int32), values[right].astype(np.int32)).tolist()
    for a, b, in_a_column, anywhere in zip(left, right, same, common, strict=True):
        assert in_a_column == any(x == y for x, y in zip(rows[a], rows[b], strict=True))
        assert anywhere == bool(set(rows[a]) & set(rows[b]))
