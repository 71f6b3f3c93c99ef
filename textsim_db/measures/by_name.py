"""The measures by name, with the range and the meaning of their thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from textsim_db.errors import MeasureError, suggestion
from textsim_db.measures import batches
from textsim_db.measures.batches import Formula, OfCounts, OfEdits, OfSets
from textsim_db.measures.edits import levenshtein, levenshtein_similarity
from textsim_db.measures.sets import MAX_COUNT, containment, dice, jaccard, overlap
from textsim_db.measures.vectors import (
    cosine_distance,
    cosine_similarity,
    euclidean,
    jaccard_of_counts,
    manhattan,
)
from textsim_db.settings.check_values import as_float, is_number


def _unknown(_: float) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of two sequences, which `MEASURES` lists by name."""

    name: str
    """Its name in searches and on the command line."""
    function: Callable[[Any, Any], float]
    """The function of textsim_db.measures that computes it."""
    formula: Formula
    """The formula for many pairs of documents of a corpus, and the items that it compares."""
    is_distance: bool = False
    """Whether a smaller value is closer, and a threshold is a maximum."""
    is_symmetric: bool = True
    """Whether the order of the two sequences does not matter."""
    finds_parts: bool = False
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
    "containment", containment, OfSets(batches.containments), is_symmetric=False, finds_parts=True
)
MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        JACCARD,
        CONTAINMENT,
        Measure("overlap", overlap, OfSets(batches.overlaps), finds_parts=True),
        Measure(
            "dice", dice, OfSets(batches.dices), least_jaccard=lambda least: least / (2 - least)
        ),
        Measure("jaccard_of_counts", jaccard_of_counts, OfCounts(batches.jaccards_of_counts)),
        Measure("cosine_similarity", cosine_similarity, OfCounts(batches.cosines)),
        Measure(
            "cosine_distance",
            cosine_distance,
            OfCounts(batches.angles),
            is_distance=True,
            most=90.0,
            unit="degrees",
        ),
        Measure("euclidean", euclidean, OfCounts(batches.euclideans), is_distance=True, most=None),
        Measure("manhattan", manhattan, OfCounts(batches.manhattans), is_distance=True, most=None),
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
            OfEdits(batches.edit_similarities, lambda least, words: (1 - least) * words),
            least_jaccard=lambda least: 1.0 if least == 1 else None,
        ),
    )
}


def measure_of(name: str) -> Measure:
    """Return the measure with this name.

    Raises `MeasureError` for an unknown name, with the nearest name and all names.
    """
    measure = MEASURES.get(name) if isinstance(name, str) else None
    if measure is None:
        name = str(name)
        raise MeasureError(
            f'there is no measure "{name}"{suggestion(name, MEASURES)}; expected one of '
            + ", ".join(MEASURES)
        )
    return measure
