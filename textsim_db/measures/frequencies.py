"""How often each item occurs in two documents, in the same order of items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.measures.sequences import Counted, Sequence, counts_of, items_of


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
