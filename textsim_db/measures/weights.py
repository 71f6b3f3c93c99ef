"""Weights of words: rare ones say more about what a document is about."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

from textsim_db.errors import MeasureError
from textsim_db.measures.sequences import Sequence, set_of


def document_frequencies(documents: Iterable[Sequence]) -> Counter[Hashable]:
    """Return in how many documents each item occurs."""
    frequencies: Counter[Hashable] = Counter()
    for document in documents:
        frequencies.update(set_of(document))
    return frequencies


def idf_weights(frequencies: Mapping[Hashable, int], documents: int) -> dict[Hashable, float]:
    """Return the inverse document frequency of each item, ln(documents / frequency), 0 or more.

    Raises MeasureError for a frequency that is not 1 to documents. Spärck Jones, "A statistical
    interpretation of term specificity and its application in retrieval", 1972.
    """
    weights = {}
    for item, frequency in frequencies.items():
        if not 1 <= frequency <= documents:
            raise MeasureError(
                f"{item!r:.100} occurs in {frequency} documents; expected 1 to {documents}"
            )
        weights[item] = math.log(documents / frequency)
    return weights
