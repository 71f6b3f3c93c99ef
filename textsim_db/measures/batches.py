"""The formulas of the measures over many pairs of documents at once.

textsim_db.compare counts the shared items of two documents; a formula turns the counts into values. Each
formula equals the measure's function on plain sequences, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from textsim_db.text.numba_compiler import FloatArray, Int64Array


class SetCounts(NamedTuple):
    """The shingle sets of pairs of documents: (pairs,) each."""

    similarity: FloatArray
    """The Jaccard similarity."""
    left: Int64Array
    """The distinct shingles of the left document."""
    right: Int64Array
    """The distinct shingles of the right document."""

    @property
    def shared(self) -> FloatArray:
        """The shared shingles: float64 of shape (pairs,)."""
        # The similarity is s / (a + b - s). Rounding recovers s, because a and b are far below 2^52.
        shared: FloatArray = np.rint(
            self.similarity * (self.left + self.right) / (1 + self.similarity)
        )
        return shared


class Sums(NamedTuple):
    """Sums over the tokens of pairs of documents, with counts x and y: (pairs,) each."""

    products: Int64Array
    """Sums of x y."""
    left: Int64Array
    """Sums of x^2."""
    right: Int64Array
    """Sums of y^2."""
    differences: Int64Array
    """Sums of |x - y|."""
    shared: Int64Array
    """Sums of min(x, y)."""


class Edits(NamedTuple):
    """The edit distances of pairs of documents: (pairs,) each."""

    distances: FloatArray
    longest: Int64Array
    """The words of the longer document."""


@dataclass(frozen=True, slots=True)
class OfSets:
    """A measure of the sets of shingles."""

    values: Callable[[SetCounts], FloatArray]


@dataclass(frozen=True, slots=True)
class OfCounts:
    """A measure of how often each word occurs."""

    values: Callable[[Sums], FloatArray]


@dataclass(frozen=True, slots=True)
class OfEdits:
    """A measure of the order of the words."""

    values: Callable[[Edits], FloatArray]
    most_edits: Callable[[float, int], float]
    """The most edits of a match, from the threshold and the words of the longest document."""


Formula: TypeAlias = OfSets | OfCounts | OfEdits


def containments(sets: SetCounts) -> FloatArray:
    """Return |A & B| / |A|."""
    return _ratio(sets.shared, sets.left)


def overlaps(sets: SetCounts) -> FloatArray:
    """Return |A & B| / min(|A|, |B|)."""
    return _ratio(sets.shared, np.minimum(sets.left, sets.right))


def dices(sets: SetCounts) -> FloatArray:
    """Return 2 |A & B| / (|A| + |B|)."""
    return _ratio(2 * sets.shared, sets.left + sets.right)


def jaccards_of_counts(sums: Sums) -> FloatArray:
    """Return the sum of min / the sum of max."""
    return _ratio(sums.shared, sums.differences + sums.shared)


def cosines(sums: Sums) -> FloatArray:
    """Return the cosines of the angles."""
    return np.minimum(_ratio(sums.products.astype(np.float64), np.sqrt(_squares(sums))), 1.0)


def angles(sums: Sums) -> FloatArray:
    """Return the angles in degrees."""
    products = sums.products.astype(np.float64)
    sines = np.sqrt(np.maximum(_squares(sums) - products * products, 0.0))
    # NumPy's functions may differ from math's in the last bit.
    radians = map(math.atan2, sines.tolist(), products.tolist())
    degrees = np.array([math.degrees(angle) for angle in radians], np.float64)
    return np.where(products > 0, degrees, 90.0)


def euclideans(sums: Sums) -> FloatArray:
    """Return the Euclidean distances."""
    distances: FloatArray = np.sqrt(sums.left + sums.right - 2 * sums.products)
    return distances


def manhattans(sums: Sums) -> FloatArray:
    """Return the Manhattan distances."""
    return sums.differences.astype(np.float64)


def edit_similarities(edits: Edits) -> FloatArray:
    """Return 1 - d / m; m is the length of the longer document."""
    return np.where(edits.longest > 0, 1 - _ratio(edits.distances, edits.longest), 0.0)


def _squares(sums: Sums) -> FloatArray:
    """Return the products of the squared lengths."""
    return sums.left.astype(np.float64) * sums.right


def _ratio(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> FloatArray:
    """Return part / whole, or 0 if whole is 0."""
    result = np.zeros(len(part), np.float64)
    np.divide(part, whole, out=result, where=whole != 0)
    return result
