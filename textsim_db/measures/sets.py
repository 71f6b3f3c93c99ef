"""Measures of sets: which items two sequences share, however often and in whatever order."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

from textsim_db.measures.sequences import Sequence, number_of, set_of


def jaccard(a: Sequence, b: Sequence) -> float:
    """Return the Jaccard similarity of two sets, |A & B| / |A | B|: from 0 to 1.

    0 where both are empty. Raises MeasureError for items that cannot be hashed. Jaccard, "Étude
    comparative de la distribution florale", 1901; Leskovec, Rajaraman and Ullman, "Mining of Massive
    Datasets", section 3.1.1.
    """
    one, other = set_of(a), set_of(b)
    shared = len(one & other)
    return _ratio(shared, len(one) + len(other) - shared)


def containment(a: Sequence, b: Sequence) -> float:
    """Return how much of a is in b, |A & B| / |A|: from 0 to 1.

    0 where a is empty. The other way round is containment(b, a). Raises MeasureError for items that
    cannot be hashed. Broder, "On the resemblance and containment of documents", 1997.
    """
    one = set_of(a)
    return _ratio(len(one & set_of(b)), len(one))


def overlap(a: Sequence, b: Sequence) -> float:
    """Return the overlap coefficient, |A & B| / min(|A|, |B|): from 0 to 1.

    The larger of the two containments; 0 where either is empty. Raises MeasureError for items that
    cannot be hashed. Szymkiewicz, 1934; Simpson, "Mammals and the nature of continents", 1943.
    """
    one, other = set_of(a), set_of(b)
    return _ratio(len(one & other), min(len(one), len(other)))


def dice(a: Sequence, b: Sequence) -> float:
    """Return the Dice coefficient, 2 |A & B| / (|A| + |B|): from 0 to 1.

    0 where both are empty. Raises MeasureError for items that cannot be hashed. Dice, "Measures of
    the amount of ecologic association between species", 1945.
    """
    one, other = set_of(a), set_of(b)
    return _ratio(2 * len(one & other), len(one) + len(other))


def weighted_jaccard(
    a: Sequence, b: Sequence, weights: Mapping[Hashable, float], default: float = 1.0
) -> float:
    """Return the weight of what two sets share as a part of the weight of both: from 0 to 1.

    weights, such as idf_weights() of document frequencies, are 0 to 2^53; an item without one has
    the default. 0 where nothing has a weight. Raises MeasureError for another weight
    and for items that cannot be hashed. Ioffe, "Improved consistent sampling, weighted minhash and
    L1 sketching", 2010, section 1, on sets.
    """
    one, other = set_of(a), set_of(b)
    either = {
        item: number_of(weights.get(item, default), f"weight of {item!r:.100}")
        for item in one | other
    }
    # Exact sums, so that the order of a set does not show in the result.
    shared = math.fsum(either[item] for item in one & other)
    return _ratio(shared, math.fsum(either.values()))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
