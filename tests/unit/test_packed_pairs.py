"""Packed pairs of buckets against sets of pairs."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from textsim_db.compare.packed_pairs import (
    ALL,
    BucketsOfDocuments,
    Members,
    Part,
    count_pairs,
    count_shared,
    distinct,
    is_among,
    joined_members,
    left_of,
    members_of,
    offsets_of,
    pack,
    pairs_of,
    right_of,
    same_anywhere,
)
from textsim_db.sketch.ragged import Ragged

Pair = tuple[int, int]


def random_buckets(rng: random.Random, count: int, ids: int = 60) -> list[list[int]]:
    """Return sorted buckets; a document may be in a bucket several times."""
    return [sorted(rng.choices(range(1, ids), k=rng.randrange(9))) for _ in range(count)]


def members(rng: random.Random, buckets: list[list[int]]) -> Members:
    rows = [(place, i) for place, ids in enumerate(buckets) for i in ids]
    rng.shuffle(rows)
    places, ids = np.array(rows, np.int32).reshape(-1, 2).T
    return members_of(places, ids, len(buckets))


def to_list(pairs: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[Pair]:
    return list(zip(left_of(pairs).tolist(), right_of(pairs).tolist(), strict=True))


def every_pair(buckets: list[list[int]]) -> Counter[Pair]:
    """Return the pairs of rows of two documents, as a join counts them."""
    return Counter((a, b) for ids in buckets for a, b in combinations(ids, 2) if a != b)


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_all_rounds_together_give_every_pair_of_every_bucket(
    rng: random.Random, rounds: int
) -> None:
    buckets = random_buckets(rng, 200)
    of_buckets = members(rng, buckets)
    assert of_buckets.sizes.tolist() == [len(ids) for ids in buckets]
    expected = every_pair(buckets)
    assert count_pairs(of_buckets.sizes) >= expected.total()
    parts = [ALL] if rounds == 1 else [Part(number, rounds) for number in range(rounds)]
    total_counts: Counter[Pair] = Counter()
    for part in parts:
        pairs = pairs_of(of_buckets, part)
        once, numbers = distinct([pairs[:10], pairs[10:]])
        counts = Counter(to_list(pairs))
        assert to_list(once) == sorted(counts)
        assert [min(255, counts[pair]) for pair in sorted(counts)] == numbers.tolist()
        assert all(left % rounds == part.number for left, _ in counts)
        total_counts += counts
    assert total_counts == expected


def test_empty_buckets_give_no_pairs() -> None:
    nothing = members_of(np.empty(0, np.int32), np.empty(0, np.int32), 3)
    assert nothing.sizes.tolist() == [0, 0, 0]
    assert len(pairs_of(nothing)) == 0
    assert joined_members([]).sizes.tolist() == []
    pairs, counts = distinct([])
    assert len(pairs) == len(counts) == 0
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


def test_equal_values_of_one_band_are_seen(rng: random.Random) -> None:
    rows = [[rng.randrange(12) for _ in range(4)] for _ in range(40)]
    values = np.array(rows, np.int16)
    left = np.repeat(np.arange(40), 40)
    right = np.tile(np.arange(40), 40)
    same = same_anywhere(values, left, right).tolist()
    for a, b, in_a_column in zip(left, right, same, strict=True):
        assert in_a_column == any(x == y for x, y in zip(rows[a], rows[b], strict=True))


def test_shared_buckets_are_counted_as_a_join_counts_them(rng: random.Random) -> None:
    rows = [rng.choices(range(8), k=rng.randrange(6)) for _ in range(40)]
    values = np.array([value for row in rows for value in row], np.int32)
    buckets = Ragged(values, offsets_of(np.array([len(row) for row in rows])))
    left, right = np.repeat(np.arange(40), 40), np.tile(np.arange(40), 40)
    shared = count_shared(buckets, buckets, left, right).tolist()
    for a, b, number in zip(left, right, shared, strict=True):
        assert number == sum(x == y for x in rows[a] for y in rows[b])


def test_more_than_255_shared_rows_count_as_255() -> None:
    pairs = pack(np.array([1] * 1000 + [1]), np.array([2] * 1000 + [3]))
    assert [part.tolist() for part in distinct([pairs])] == [
        pack(np.array([1, 1]), np.array([2, 3])).tolist(),
        [255, 1],
    ]
