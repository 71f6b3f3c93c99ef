"""Measures of count vectors: distances L_r, and the angle between two documents.

A vector holds how often each item occurs: the sequences "a a b" and "b" have the vectors (2, 1) and
(0, 1). A mapping from items to counts is a vector too. With weights, rare words weigh more than frequent
words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from textsim_db.errors import MeasureError
from textsim_db.measures.sets import (
    MAX_COUNT,
    Counted,
    Sequence,
    counts_of,
    set_of,
    several_documents,
)
from textsim_db.settings.check_values import items_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def lr_norm(a: Counted, b: Counted, r: float) -> float:
    """Return the L_r distance of two count vectors, (sum |x - y|^r)^(1/r), in counts, 0 or more.

    `r` is 1 or more; infinity gives the largest difference. The result is 0 if both are empty. Raises
    `MeasureError` for another r, items that cannot be hashed, and counts below 0. Leskovec, Rajaraman
    and Ullman, "Mining of Massive Datasets", section 3.5.2.

        >>> lr_norm("aab", "b", 3)
        2.0
    """
    if not isinstance(r, int | float) or not r >= 1 or (r > MAX_COUNT and r != math.inf):
        raise MeasureError(f"r is {r!r:.100}; expected 1 or more")
    # In this order, SQL and Python have the same sum. sum() of Python 3.12 and newer compensates errors.
    differences = sorted(_differences(a, b))
    largest = max(differences, default=0)
    if not largest or math.isinf(r):
        return float(largest)
    total = 0.0
    for difference in differences:
        # Each difference is divided by the largest, so that no power overflows a float.
        total += (difference / largest) ** r
    return float(largest * total ** (1 / r))


def euclidean(a: Counted, b: Counted) -> float:
    """Return the Euclidean distance of two count vectors, L_2, in counts, 0 or more.

    The result is 0 if both are empty. Raises `MeasureError` for items that cannot be hashed and for
    counts below 0. Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", section 3.5.2.

        >>> euclidean("aaab", "bbbbb")
        5.0
    """
    return math.sqrt(sum(d * d for d in _differences(a, b)))


def manhattan(a: Counted, b: Counted) -> float:
    """Return the Manhattan distance of two count vectors, L_1, in counts, 0 or more.

    The result is 0 if both are empty. Raises `MeasureError` for items that cannot be hashed and for
    counts below 0. Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", section 3.5.2.

        >>> manhattan("aab", "b")
        2.0
    """
    return float(sum(_differences(a, b)))


def cosine_similarity(a: Counted, b: Counted) -> float:
    """Return the cosine of the angle between two count vectors: from 0 to 1.

    The result is 0 if a or b is empty. Raises `MeasureError` for items that cannot be hashed and for
    counts below 0. Salton, Wong and Yang, "A vector space model for automatic indexing", 1975.

        >>> cosine_similarity("ab", "abb")
        0.9486832980505138
    """
    product, squares = _product(a, b)
    return min(product / math.sqrt(squares), 1.0) if squares else 0.0


def cosine_distance(a: Counted, b: Counted) -> float:
    """Return the angle between two count vectors, from 0 to 90 degrees.

    Vectors in the same direction give 0. Vectors that share no item give 90, and so does an empty one.
    Raises `MeasureError` for items that cannot be hashed and for counts below 0. Leskovec, Rajaraman
    and Ullman, "Mining of Massive Datasets", section 3.5.4.

        >>> round(cosine_distance("ab", "abb"), 2)
        18.43
    """
    product, squares = _product(a, b)
    if not product:
        return 90.0
    # The arc cosine is inaccurate for small angles, so the sine is used as well.
    return math.degrees(math.atan2(math.sqrt(max(squares - product * product, 0)), product))


def _differences(a: Counted, b: Counted) -> Iterator[float]:
    one, other = counts_of(a), counts_of(b)
    for item, count in one.items():
        yield abs(count - other.get(item, 0))
    for item, count in other.items():
        if item not in one:
            yield count


def _product(a: Counted, b: Counted) -> tuple[float, float]:
    one, other = counts_of(a), counts_of(b)
    product = sum(count * other.get(item, 0) for item, count in one.items())
    squares = sum(x * x for x in one.values()) * sum(y * y for y in other.values())
    return product, squares


class Frequencies(NamedTuple):
    """Counts of the same items in two documents."""

    items: list[Hashable]
    """The items of the first document in order of appearance, then the new items of the second."""
    a: npt.NDArray[np.float64]
    """The counts in the first document: float64 of shape (items,)."""
    b: npt.NDArray[np.float64]
    """The counts in the second document: float64 of shape (items,)."""


def counts(a: Sequence) -> Counter[Hashable]:
    """Return how often each item of a sequence occurs: its multiset.

    Raises `MeasureError` if `a` is not a sequence, and `TypeError` for items that cannot be hashed.
    """
    return Counter(items_of(a))


def frequencies(a: Counted, b: Counted) -> Frequencies:
    """Return how often each item of either document occurs in each of them.

    Raises `MeasureError` for items that cannot be hashed and for counts below 0.

        >>> frequencies("aab", "b")
        Frequencies(items=['a', 'b'], a=array([2., 1.]), b=array([0., 1.]))
    """
    import numpy as np

    one, other = counts_of(a), counts_of(b)
    items = list(dict.fromkeys([*one, *other]))
    return Frequencies(
        items,
        np.fromiter((one.get(item, 0) for item in items), np.float64, len(items)),
        np.fromiter((other.get(item, 0) for item in items), np.float64, len(items)),
    )


def jaccard_of_counts(a: Counted, b: Counted) -> float:
    """Return the Jaccard similarity of multisets, sum of min / sum of max: from 0 to 1.

    The result is 0 if both are empty. Raises `MeasureError` for items that cannot be hashed and for
    counts below 0. Ruzicka, 1958. "Mining of Massive Datasets", section 3.1.3, defines
    |A & B| / (|A| + |B|) instead, which is at most a half.

        >>> jaccard_of_counts("aab", "ab")
        0.6666666666666666
    """
    one, other = counts_of(a), counts_of(b)
    shared = sum(min(count, other.get(item, 0)) for item, count in one.items())
    either = sum(one.values()) + sum(other.values()) - shared
    return shared / either if either else 0.0


def document_frequencies(documents: Iterable[Sequence]) -> Counter[Hashable]:
    """Return in how many documents each item occurs.

    Raises `MeasureError` for items that cannot be hashed.

        >>> document_frequencies(["ab", "bb"])
        Counter({'b': 2, 'a': 1})
    """
    frequencies: Counter[Hashable] = Counter()
    for document in several_documents(documents, "document_frequencies"):
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
