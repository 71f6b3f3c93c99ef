"""Weights of words: rare words weigh more than frequent words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

from textsim_db.errors import MeasureError
from textsim_db.measures.sequences import Sequence, set_of


def document_frequencies(documents: Iterable[Sequence]) -> Counter[Hashable]:
    """Return in how many documents each item occurs.

    Raises `MeasureError` for items that cannot be hashed.

        >>> document_frequencies(["ab", "bb"])
        Counter({'b': 2, 'a': 1})
    """
    frequencies: Counter[Hashable] = Counter()
    for document in documents:
        frequencies.update(set_of(document))
    return frequencies


def idf_weights(frequencies: Mapping[Hashable, int], documents: int) -> dict[Hashable, float]:
    """Return the inverse document frequency of each item, ln(documents / frequency), 0 or more.

    `documents` is the number of all documents. Raises `MeasureError` for a frequency below 1 or above
    it. Spärck Jones, "A statistical interpretation of term specificity and its application in
    retrieval", 1972.

        >>> idf_weights({"the": 4, "cat": 1}, 4)
        {'the': 0.0, 'cat': 1.3862943611198906}
    """
    weights = {}
    for item, frequency in frequencies.items():
        if not 1 <= frequency <= documents:
            raise MeasureError(
                f"{item!r:.100} occurs in {frequency} documents; expected 1 to {documents}"
            )
        weights[item] = math.log(documents / frequency)
    return weights
