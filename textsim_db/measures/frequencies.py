"""Frequency distributions: how often each item occurs, aligned over two documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.measures.sequences import Counted, Sequence, counts_of, items_of


class Frequencies(NamedTuple):
    """Counts of the same items in two documents.

    items: all items of either, those of the first in order of appearance and then the rest. a, b:
    float64 arrays of shape (items,).
    """

    items: list[Hashable]
    a: npt.NDArray[np.float64]
    b: npt.NDArray[np.float64]


def counts(a: Sequence) -> Counter[Hashable]:
    """Return how often each item occurs: the multiset of a sequence.

    Raises MeasureError for what is no sequence and TypeError for items that cannot be hashed.
    """
    return Counter(items_of(a))


def frequencies(a: Counted, b: Counted) -> Frequencies:
    """Return the counts of two documents over the items of both; empty arrays for empty ones.

    Raises MeasureError for items that cannot be hashed and for counts below 0.
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

    0 where both are empty. "Mining of Massive Datasets" gives bags |A & B| / (|A| + |B|), at most a
    half (section 3.1.3); this is the union by the larger count, which reaches 1 (Ruzicka, 1958).
    Raises MeasureError for items that cannot be hashed and for counts below 0.
    """
    one, other = counts_of(a), counts_of(b)
    shared = sum(min(count, other.get(item, 0)) for item, count in one.items())
    either = sum(one.values()) + sum(other.values()) - shared
    return shared / either if either else 0.0
