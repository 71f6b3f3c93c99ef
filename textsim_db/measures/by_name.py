"""The measures by name, with the range and the meaning of their thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from textsim_db.errors import MeasureError, suggestion
from textsim_db.measures import vectors
from textsim_db.measures.edits import levenshtein, levenshtein_similarity
from textsim_db.measures.sets import MAX_COUNT, containment, dice, jaccard, overlap
from textsim_db.settings.check_values import as_float, is_number
from textsim_db.settings.named_values import MeasureName

if TYPE_CHECKING:
    import numpy.typing as npt

    from textsim_db.base.numba_compiler import FloatArray, Int64Array


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
        return (self.similarity * (self.left + self.right) / (1 + self.similarity)).round()


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
    return _ratio(sets.shared, sets.left.clip(max=sets.right))


def dices(sets: SetCounts) -> FloatArray:
    """Return 2 |A & B| / (|A| + |B|)."""
    return _ratio(2 * sets.shared, sets.left + sets.right)


def jaccards_of_counts(sums: Sums) -> FloatArray:
    """Return the sum of min / the sum of max."""
    return _ratio(sums.shared, sums.differences + sums.shared)


def cosines(sums: Sums) -> FloatArray:
    """Return the cosines of the angles."""
    return _ratio(sums.products.astype(float), _squares(sums) ** 0.5).clip(max=1.0)


def angles(sums: Sums) -> FloatArray:
    """Return the angles in degrees."""
    import numpy as np

    products = sums.products.astype(np.float64)
    sines = np.sqrt(np.maximum(_squares(sums) - products * products, 0.0))
    # NumPy's functions may differ from math's in the last bit.
    radians = map(math.atan2, sines.tolist(), products.tolist())
    degrees = np.array([math.degrees(angle) for angle in radians], np.float64)
    return np.where(products > 0, degrees, 90.0)


def euclideans(sums: Sums) -> FloatArray:
    """Return the Euclidean distances."""
    squares: FloatArray = (sums.left + sums.right - 2 * sums.products).astype(float)
    return squares**0.5


def manhattans(sums: Sums) -> FloatArray:
    """Return the Manhattan distances."""
    return sums.differences.astype(float)


def edit_similarities(edits: Edits) -> FloatArray:
    """Return 1 - d / m; m is the length of the longer document."""
    return (1 - _ratio(edits.distances, edits.longest)) * (edits.longest > 0)


def _squares(sums: Sums) -> FloatArray:
    return sums.left.astype(float) * sums.right


def _ratio(shared: npt.NDArray[Any], whole: npt.NDArray[Any]) -> FloatArray:
    """Return shared / whole, or 0 if whole is 0."""
    import numpy as np

    result = np.zeros(len(shared), np.float64)
    np.divide(shared, whole, out=result, where=whole != 0)
    return result


def _unknown(_: float) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of two sequences, which `MEASURES` lists by name."""

    name: MeasureName
    """Its name in searches and on the command line."""
    function: Callable[[Any, Any], float]
    """The function of textsim_db.measures that computes it."""
    formula: Formula
    """The formula for many pairs of documents of a corpus, and the items that it compares."""
    is_distance: bool = False
    """Whether a smaller value is closer, and a threshold is a maximum."""
    is_symmetric: bool = True
    """Whether the order of the two sequences does not matter."""
    finds_contained: bool = False
    """Whether a short text matches a long document that contains it."""
    least_jaccard: Callable[[float], float | None] = _unknown
    """The least Jaccard similarity of a match at a threshold; None if there is no bound."""
    most: float | None = 1.0
    """The largest possible value, or None if there is no limit."""
    unit: str = ""
    """The unit of the values, or "" if there is none."""

    @property
    def of_shingles(self) -> bool:
        """Whether the measure compares sets of shingles in a corpus; other measures compare words."""
        return isinstance(self.formula, OfSets)

    def check_threshold(self, threshold: float) -> float:
        """Return the threshold as a float; raise `MeasureError` if the measure has no such value."""
        most = MAX_COUNT if self.most is None else self.most
        value = as_float(threshold) if is_number(threshold) else math.nan
        if not (value >= 0 if self.is_distance else value > 0) or value > most:
            least = "0 or more" if self.is_distance else "above 0"
            limit = "" if self.most is None else f", at most {most:g}"
            raise MeasureError(
                f"threshold is {threshold!r:.100}; expected {least}{limit} for {self.name}"
            )
        return value


JACCARD = Measure(
    "jaccard", jaccard, OfSets(lambda sets: sets.similarity), least_jaccard=lambda least: least
)
CONTAINMENT = Measure(
    "containment", containment, OfSets(containments), is_symmetric=False, finds_contained=True
)
MEASURES: dict[MeasureName, Measure] = {
    measure.name: measure
    for measure in (
        JACCARD,
        CONTAINMENT,
        Measure("overlap", overlap, OfSets(overlaps), finds_contained=True),
        Measure("dice", dice, OfSets(dices), least_jaccard=lambda least: least / (2 - least)),
        Measure("jaccard_of_counts", vectors.jaccard_of_counts, OfCounts(jaccards_of_counts)),
        Measure("cosine_similarity", vectors.cosine_similarity, OfCounts(cosines)),
        Measure(
            "cosine_distance",
            vectors.cosine_distance,
            OfCounts(angles),
            is_distance=True,
            most=90.0,
            unit="degrees",
        ),
        Measure("euclidean", vectors.euclidean, OfCounts(euclideans), is_distance=True, most=None),
        Measure("manhattan", vectors.manhattan, OfCounts(manhattans), is_distance=True, most=None),
        Measure(
            "levenshtein",
            levenshtein,
            OfEdits(lambda edits: edits.distances, lambda most, _: most),
            is_distance=True,
            least_jaccard=lambda most: None if most else 1.0,
            most=None,
            unit="edits",
        ),
        Measure(
            "levenshtein_similarity",
            levenshtein_similarity,
            OfEdits(edit_similarities, lambda least, words: (1 - least) * words),
            least_jaccard=lambda least: 1.0 if least == 1 else None,
        ),
    )
}


def measure_of(name: str) -> Measure:
    """Return the measure with this name.

    Raises `MeasureError` for an unknown name, with the nearest name and all names.
    """
    measure = next((each for each in MEASURES.values() if each.name == name), None)
    if measure is None:
        name = str(name)
        raise MeasureError(
            f'there is no measure "{name}"{suggestion(name, MEASURES)}; expected one of '
            + ", ".join(MEASURES)
        )
    return measure
