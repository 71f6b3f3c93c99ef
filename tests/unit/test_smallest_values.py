"""Smallest values: pairs that reach the threshold share as many rows as their sizes require."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import inf, nextafter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, strategies as st

from tests.support import reference
from textsim_db.compare.packed_pairs import count_shared
from textsim_db.sketch.exact_prefix import (
    MOST_SHARED,
    count_rows,
    least_needed,
    share_enough,
    smallest_of,
    smallest_values,
)
from textsim_db.sketch.ragged import Ragged

THRESHOLDS = (1e-9, 0.07, 0.1, 1 / 3, 0.5, 0.55, 0.58, 0.7, 0.8, 0.9, 0.95, 1.0)


def thresholds_around(overlap: int, size: int) -> list[float]:
    """Return the thresholds at a similarity of two sets, and just below and above it."""
    similarity = overlap / size
    near = [nextafter(similarity, 0), similarity, nextafter(similarity, inf)]
    return [t for t in near if 0 < t <= 1]


def ragged(rows: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    values = np.array([value for row in rows for value in row], np.int64)
    return values.view(np.uint64), np.cumsum([0, *map(len, rows)], dtype=np.int64)


def signatures_of(rows: Sequence[Sequence[int]], threshold: float) -> Ragged:
    return smallest_values(*ragged(rows), threshold)


def sizes_of(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    return np.array([len(row) for row in rows], np.int64)


@given(st.integers(1, 2000), st.data())
@example(100, None)
def test_the_number_of_rows_is_exact_everywhere(size: int, data: st.DataObject | None) -> None:
    overlap = 55 if data is None else data.draw(st.integers(1, size))
    for threshold in thresholds_around(overlap, size):
        (rows,) = count_rows(np.array([size]), threshold).tolist()
        assert rows == reference.count_rows(size, threshold)


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_candidate_shares_what_its_sizes_require(threshold: float) -> None:
    sides = np.array([(a, b) for a in range(1, 31) for b in range(1, 31)])
    a_sizes, b_sizes = sides.T.copy()
    for shared in range(5):
        enough = share_enough(np.full(len(sides), shared), a_sizes, b_sizes, threshold).tolist()
        for (a, b), is_candidate in zip(sides.tolist(), enough, strict=True):
            allowed = reference.needed_overlap(a, b, threshold) <= min(a, b)
            needed = reference.needed_rows(a, b, threshold)
            assert is_candidate == (allowed and shared >= needed), (a, b, shared)


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_the_fewest_rows_hold_for_every_size_of_the_other_document(threshold: float) -> None:
    largest = 60
    fewest = least_needed(np.arange(largest), threshold).tolist()
    for a in range(1, largest):
        others = [b for b in range(1, 4 * largest) if min(a, b) / max(a, b) >= threshold]
        needed = [reference.needed_rows(a, b, threshold) for b in others]
        assert fewest[a] <= min([*needed, MOST_SHARED])


def test_a_threshold_next_to_0_is_possible() -> None:
    for threshold in (nextafter(0, 1), 1e-300, 1e-9):
        assert count_rows(np.array([0, 1, 5]), threshold).tolist() == [0, 1, 5]


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_signatures_equal_the_definition(threshold: float, rng: random.Random) -> None:
    rows = [
        [
            rng.randrange(-(2**63), 2**63) if rng.random() < 0.7 else rng.randrange(-4, 4)
            for _ in range(n)
        ]
        for n in (0, 1, 2, 3, 4, 5, 10, 100, 1000, 0)
    ]
    signatures = signatures_of(rows, threshold)
    for i, row in enumerate(rows):
        assert signatures.of(i).tolist() == reference.exact_signature(row, threshold)
    shuffled = signatures_of([rng.sample(row, len(row)) for row in rows], threshold)
    assert np.array_equal(signatures.values, shuffled.values)


@pytest.mark.parametrize("threshold", [0.07, 0.5, 0.55])
def test_a_higher_threshold_takes_the_first_rows(threshold: float, rng: random.Random) -> None:
    rows = [[rng.randrange(-(2**63), 2**63) for _ in range(n)] for n in (0, 1, 5, 0, 40, 100, 3)]
    stored = signatures_of(rows, threshold)
    for higher in (threshold, nextafter(threshold, 1), 0.58, 0.8, 1.0):
        expected = signatures_of(rows, higher)
        first = smallest_of(stored, sizes_of(rows), higher)
        assert first.offsets.tolist() == expected.offsets.tolist()
        assert first.values.tolist() == expected.values.tolist()


def test_values_are_counted_with_multiplicity() -> None:
    """Two documents of the same three shingles share three rows, even if their values are equal."""
    signatures = signatures_of([[5, 5, 5], [5, 5, 5], [5, 7, 9]], 0.9)
    assert [signatures.of(i).tolist() for i in range(3)] == [[5, 5, 5], [5, 5, 5], [5, 7, 9]]
    numbers = np.array([0, 0])
    assert count_shared(signatures, signatures, numbers, np.array([1, 2])).tolist() == [9, 3]
