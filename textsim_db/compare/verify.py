"""The exact check of candidates by any measure, many pairs at once.

The values equal the values of textsim_db.measures on the documents' shingles or words.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from textsim_db.compare.document_rows import Rows
from textsim_db.compare.jaccard import jaccard_pairs
from textsim_db.compare.shared_counts import Sums, sums_of_pairs
from textsim_db.measures.by_name import Measure
from textsim_db.measures.edits import as_text
from textsim_db.text.array_types import BoolArray, FloatArray, Int64Array


class Criterion(NamedTuple):
    """The measure and the threshold that decide whether a candidate is a match.

    language: only documents in this language are candidates; None: documents in all languages.
    """

    measure: Measure
    threshold: float
    language: str | None = None

    def accepted(self, values: FloatArray) -> BoolArray:
        """Say which values are at the threshold or closer."""
        return values <= self.threshold if self.measure.is_distance else values >= self.threshold

    @property
    def of_copies(self) -> float:
        """The value of two documents with the same words."""
        return 0.0 if self.measure.is_distance else 1.0


def values_of_pairs(
    criterion: Criterion, rows: Rows, left: Int64Array, right: Int64Array
) -> FloatArray:
    """Return the values of the criterion's measure for pairs of documents: float64 of shape (pairs,).

    left, right: (pairs,), numbers of documents; sort pairs by left for speed. Measures that do not
    compare shingles take each token as a word. Edits are counted only up to the threshold: a pair
    that is not accepted may get any value beyond it.
    """
    measure = criterion.measure
    if measure.of_shingles:
        counts = rows.shingle_counts
        return _of_sets(measure.name, jaccard_pairs(rows, left, right), counts[left], counts[right])
    if measure.name.startswith("levenshtein"):
        return _of_edits(criterion, rows, left, right)
    return _of_counts(measure.name, sums_of_pairs(rows, left, right))


def _of_sets(name: str, values: FloatArray, left: Int64Array, right: Int64Array) -> FloatArray:
    if name == "jaccard":
        return values
    # The value is s / (a + b - s). Rounding recovers s exactly, because a and b are far below 2^52.
    shared = np.rint(values * (left + right) / (1 + values))
    if name == "dice":
        return _ratio(2 * shared, left + right)
    return _ratio(shared, left if name == "containment" else np.minimum(left, right))


def _of_counts(name: str, sums: Sums) -> FloatArray:
    if name == "manhattan":
        return sums.differences.astype(np.float64)
    if name == "jaccard_of_counts":
        return _ratio(sums.shared, sums.differences + sums.shared)
    products = sums.products.astype(np.float64)
    squares = sums.left.astype(np.float64) * sums.right
    if name == "euclidean":
        distances: FloatArray = np.sqrt(sums.left + sums.right - 2 * sums.products)
        return distances
    if name == "cosine_similarity":
        return np.minimum(_ratio(products, np.sqrt(squares)), 1.0)
    sines = np.sqrt(np.maximum(squares - products * products, 0.0))
    # NumPy's functions may differ from math's in the last bit.
    angles = map(math.atan2, sines.tolist(), products.tolist())
    degrees = np.array([math.degrees(angle) for angle in angles], np.float64)
    return np.where(products > 0, degrees, 90.0)


def _of_edits(criterion: Criterion, rows: Rows, left: Int64Array, right: Int64Array) -> FloatArray:
    lengths = np.diff(rows.offsets)
    longest = np.maximum(lengths[left], lengths[right])
    is_count = criterion.measure.name == "levenshtein"
    most = criterion.threshold if is_count else (1 - criterion.threshold) * longest.max(initial=0)
    documents = _as_comparable(rows)
    scored = process.cpdist(
        [documents[i] for i in left.tolist()],
        [documents[i] for i in right.tolist()],
        scorer=Levenshtein.distance,
        score_cutoff=int(min(most + 1, 2**31)),
        dtype=np.int64,
    )
    values: FloatArray = scored.astype(np.float64)
    if is_count:
        return values
    return np.where(longest > 0, 1 - _ratio(values, longest), 0.0)


def _as_comparable(rows: Rows) -> list[Sequence[Hashable]]:
    """Return documents as sequences for RapidFuzz: as str if each token fits in a character."""
    numbers = rows.tokens.astype(np.int64) - int(rows.tokens.min(initial=0))
    if numbers.max(initial=0) > sys.maxunicode:
        numbers = np.unique(rows.tokens, return_inverse=True)[1]
    everything, _ = as_text((numbers.astype(np.int32), np.empty(0, np.int32)))
    return [everything[start:end] for start, end in pairwise(rows.offsets.tolist())]


def _ratio(part: npt.NDArray[np.generic], whole: npt.NDArray[np.generic]) -> FloatArray:
    """Return part / whole, or 0 if whole is 0."""
    result = np.zeros(len(part), np.float64)
    np.divide(part, whole, out=result, where=whole != 0)
    return result
