"""Measures of sets: which items two sequences share, regardless of count and order."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

from textsim_db.measures.sequences import Sequence, number_of, set_of


def jaccard(a: Sequence, b: Sequence) -> float:
    """Return the Jaccard similarity of two sets, |A & B| / |A | B|: from 0 to 1.

    The result is 0 if both are empty. Raises `MeasureError` for items that cannot be hashed. Jaccard,
    "Étude comparative de la distribution florale", 1901; Leskovec, Rajaraman and Ullman, "Mining of
    Massive Datasets", section 3.1.1.

        >>> jaccard(["the", "cat", "sat"], ["the", "cat", "ran"])
        0.5
    """
    one, other = set_of(a), set_of(b)
    shared = len(one & other)
    return _ratio(shared, len(one) + len(other) - shared)


def containment(a: Sequence, b: Sequence) -> float:
    """Return the share of a's items that are in b, |A & B| / |A|: from 0 to 1.

    The result is 0 if a is empty. Raises `MeasureError` for items that cannot be hashed. Broder, "On
    the resemblance and containment of documents", 1997.

        >>> containment(["the", "cat"], ["the", "cat", "sat", "down"])
        1.0
    """
    one = set_of(a)
    return _ratio(len(one & set_of(b)), len(one))


def overlap(a: Sequence, b: Sequence) -> float:
    """Return the overlap coefficient, |A & B| / min(|A|, |B|): from 0 to 1.

    This is the larger of the two containments, and 0 if a or b is empty. Raises `MeasureError` for
    items that cannot be hashed. Szymkiewicz, 1934; Simpson, "Mammals and the nature of continents",
    1943.
    """
    one, other = set_of(a), set_of(b)
    return _ratio(len(one & other), min(len(one), len(other)))


def dice(a: Sequence, b: Sequence) -> float:
    """Return the Dice coefficient, 2 |A & B| / (|A| + |B|): from 0 to 1.

    The result is 0 if both are empty. Raises `MeasureError` for items that cannot be hashed. Dice,
    "Measures of the amount of ecologic association between species", 1945.

        >>> dice("cat", "cart")
        0.8571428571428571
    """
    one, other = set_of(a), set_of(b)
    return _ratio(2 * len(one & other), len(one) + len(other))


def weighted_jaccard(
    a: Sequence, b: Sequence, weights: Mapping[Hashable, float], default: float = 1.0
) -> float:
    """Return the weight of the shared items divided by the weight of all items: from 0 to 1.

    `weights` are numbers from 0 to 2^53, such as the result of `idf_weights()`. An item without a weight
    has the default. The result is 0 if all weights are 0. Raises `MeasureError` for other weights and
    for items that cannot be hashed. Ioffe, "Improved consistent sampling, weighted minhash and L1
    sketching", 2010, section 1, on sets.

        >>> weighted_jaccard("ab", "bc", {"b": 2.0})
        0.5
    """
    one, other = set_of(a), set_of(b)
    either = {
        item: number_of(weights.get(item, default), f"weight of {item!r:.100}")
        for item in one | other
    }
    # fsum() is exact, so the order of a set does not change the result.
    shared = math.fsum(either[item] for item in one & other)
    return _ratio(shared, math.fsum(either.values()))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
