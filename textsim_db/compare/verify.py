"""The final check of candidates by any measure, many pairs at once; pure.

The values are those of textsim_db.measures on the shingles, or the words, of the documents.
"""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from textsim_db.compare.jaccard import jaccard_pairs
from textsim_db.compare.shared_counts import Sums, sums_of_pairs
from textsim_db.measures.by_name import Measure
from textsim_db.measures.edits import as_text

Values = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


class Criterion(NamedTuple):
    """By which measure candidates are judged, and from which value on they are matches.

    language: only documents of it are candidates; None: those of all.
    """

    measure: Measure
    threshold: float
    language: str | None = None

    def accepted(self, values: Values) -> npt.NDArray[np.bool_]:
        """Say which values are as close as the threshold, or closer."""
        return values <= self.threshold if self.measure.is_distance else values >= self.threshold

    @property
    def of_copies(self) -> float:
        """The value of two documents with the same words."""
        return 0.0 if self.measure.is_distance else 1.0


def values_of_pairs(
    criterion: Criterion,
    tokens: npt.NDArray[np.int32],
    offsets: Numbers,
    shingle_counts: Numbers,
    left: Numbers,
    right: Numbers,
    n: int,
) -> Values:
    """Return the values of the check's measure for pairs of documents: float64 of shape (pairs,).

    The other parameters are those of similarity.jaccard_pairs; for measures that are not of
    shingles, tokens are words. Edits are counted as far as the threshold needs them: a pair that
    does not pass the check may have any value that does not.
    """
    measure = criterion.measure
    if measure.of_shingles:
        values = jaccard_pairs(tokens, offsets, shingle_counts, left, right, n)
        return _of_sets(measure.name, values, shingle_counts[left], shingle_counts[right])
    if measure.name.startswith("levenshtein"):
        return _of_edits(criterion, tokens, offsets, left, right)
    return _of_counts(measure.name, sums_of_pairs(tokens, offsets, left, right))


def _of_sets(name: str, values: Values, left: Numbers, right: Numbers) -> Values:
    if name == "jaccard":
        return values
    # s / (a + b - s) tells s, for a and b are far from 2^52.
    shared = np.rint(values * (left + right) / (1 + values))
    if name == "dice":
        return _ratio(2 * shared, left + right)
    return _ratio(shared, left if name == "containment" else np.minimum(left, right))


def _of_counts(name: str, sums: Sums) -> Values:
    if name == "manhattan":
        return sums.differences.astype(np.float64)
    if name == "jaccard_of_counts":
        return _ratio(sums.shared, sums.differences + sums.shared)
    products = sums.products.astype(np.float64)
    squares = sums.left.astype(np.float64) * sums.right
    if name == "euclidean":
        distances: Values = np.sqrt(sums.left + sums.right - 2 * sums.products)
        return distances
    if name == "cosine_similarity":
        return np.minimum(_ratio(products, np.sqrt(squares)), 1.0)
    sines = np.sqrt(np.maximum(squares - products * products, 0.0))
    # NumPy's own functions may differ in the last bit.
    angles = map(math.atan2, sines.tolist(), products.tolist())
    degrees = np.array([math.degrees(angle) for angle in angles], np.float64)
    return np.where(products > 0, degrees, 90.0)


def _of_edits(
    criterion: Criterion,
    tokens: npt.NDArray[np.int32],
    offsets: Numbers,
    left: Numbers,
    right: Numbers,
) -> Values:
    lengths = np.diff(offsets)
    longest = np.maximum(lengths[left], lengths[right])
    is_count = criterion.measure.name == "levenshtein"
    most = criterion.threshold if is_count else (1 - criterion.threshold) * longest.max(initial=0)
    numbers = tokens.astype(np.int64) - int(tokens.min(initial=0))
    if numbers.max(initial=0) > sys.maxunicode:
        numbers = np.unique(tokens, return_inverse=True)[1]
    everything, _ = as_text((numbers.astype(np.int32), np.empty(0, np.int32)))
    pick = [everything[start:end] for start, end in pairwise(offsets.tolist())]
    scored = process.cpdist(
        [pick[i] for i in left.tolist()],
        [pick[i] for i in right.tolist()],
        scorer=Levenshtein.distance,
        score_cutoff=int(min(most + 1, 2**31)),
        dtype=np.int64,
    )
    values: Values = scored.astype(np.float64)
    if is_count:
        return values
    return np.where(longest > 0, 1 - _ratio(values, longest), 0.0)


def _ratio(part: npt.NDArray[np.generic], whole: npt.NDArray[np.generic]) -> Values:
    """Return part / whole, 0 where whole is 0."""
    result = np.zeros(len(part), np.float64)
    np.divide(part, whole, out=result, where=whole != 0)
    return result
