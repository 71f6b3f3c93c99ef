"""The measures by name, with the range and the meaning of their thresholds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from textsim_db.errors import MeasureError, suggestion
from textsim_db.measures.edits import levenshtein, levenshtein_similarity
from textsim_db.measures.frequencies import jaccard_of_counts
from textsim_db.measures.sequences import MAX_COUNT
from textsim_db.measures.sets import containment, dice, jaccard, overlap
from textsim_db.measures.vectors import cosine_distance, cosine_similarity, euclidean, manhattan
from textsim_db.settings import is_number


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of two sequences, which `MEASURES` lists by name.

    - `name`: its name in searches, on the command line and in SQL.
    - `function`: the function of this module that computes it.
    - `of_shingles`: in a corpus, the measure compares sets of shingles. The other measures compare
      words, by their counts or in their order.
    - `is_distance`: a smaller value is closer, and a threshold is a maximum.
    - `is_symmetric`: the order of the two sequences does not matter.
    - `most`: the largest possible value, or None if there is no limit.
    - `unit`: the unit of the values, or "" if there is none.
    """

    name: str
    function: Callable[[Any, Any], float]
    of_shingles: bool = False
    is_distance: bool = False
    is_symmetric: bool = True
    most: float | None = 1.0
    unit: str = ""

    def check_threshold(self, threshold: float) -> float:
        """Return the threshold as a float; raise `MeasureError` if the measure has no such value."""
        most = MAX_COUNT if self.most is None else self.most
        least_fits = is_number(threshold) and (
            threshold >= 0 if self.is_distance else threshold > 0
        )
        if not least_fits or threshold > most:
            least = "0 or more" if self.is_distance else "above 0"
            limit = "" if self.most is None else f", at most {most:g}"
            raise MeasureError(
                f"threshold is {threshold!r:.100}; expected {least}{limit} for {self.name}"
            )
        return float(threshold)


JACCARD = Measure("jaccard", jaccard, of_shingles=True)
MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        JACCARD,
        Measure("containment", containment, of_shingles=True, is_symmetric=False),
        Measure("overlap", overlap, of_shingles=True),
        Measure("dice", dice, of_shingles=True),
        Measure("jaccard_of_counts", jaccard_of_counts),
        Measure("cosine_similarity", cosine_similarity),
        Measure("cosine_distance", cosine_distance, is_distance=True, most=90.0, unit="degrees"),
        Measure("euclidean", euclidean, is_distance=True, most=None),
        Measure("manhattan", manhattan, is_distance=True, most=None),
        Measure("levenshtein", levenshtein, is_distance=True, most=None, unit="edits"),
        Measure("levenshtein_similarity", levenshtein_similarity),
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
