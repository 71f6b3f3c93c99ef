"""Band rows: their order, and the changes between two multisets of them."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import numpy.typing as npt

from textsim_db.sketch.ragged import of_rows
from textsim_db.write.band_rows import band_rows, changed_rows


def rows_of(buckets: list[list[int]], ids: list[int]) -> npt.NDArray[np.int64]:
    matrix = np.array(buckets, np.int32).reshape(len(ids), -1)
    return band_rows(of_rows(matrix, np.ones(len(ids), np.bool_)), np.array(ids, np.int64))


def pairs(rows: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    return [(int(row) >> 32, int(row) & 0xFFFFFFFF) for row in rows]


def test_rows_are_in_the_order_of_the_index() -> None:
    buckets = [[2**31 - 1, -(2**31), 0], [0, -1, 0]]
    rows = rows_of(buckets, [2**31 - 1, 1])
    expected = [
        (value, id_) for row, id_ in zip(buckets, (2**31 - 1, 1), strict=True) for value in row
    ]
    assert pairs(rows) == sorted(expected)


def test_rows_whose_number_changes_are_removed_and_written_again() -> None:
    before = rows_of([[1, 1, 2, 3]], [7])
    after = rows_of([[1, 2, 2, 4]], [7])
    removed, added = changed_rows(before, after)
    assert pairs(removed) == [(1, 7), (2, 7), (3, 7)]
    assert pairs(added) == [(1, 7), (2, 7), (2, 7), (4, 7)]
    assert [len(rows) for rows in changed_rows(before, before)] == [0, 0]


def test_applying_the_changes_gives_the_new_multiset(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        ids = list(range(1, rng.randrange(2, 6)))
        before, after = (
            rows_of([[rng.randrange(-2, 3) for _ in range(5)] for _ in ids], ids) for _ in range(2)
        )
        removed, added = changed_rows(before, after)
        kept = [row for row in before.tolist() if row not in set(removed.tolist())]
        assert Counter(kept + added.tolist()) == Counter(after.tolist())
