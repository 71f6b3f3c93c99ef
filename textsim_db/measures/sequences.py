"""The inputs of measures: sequences of words, characters or integers, as sets or as counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Set
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from textsim_db.errors import MeasureError

Sequence: TypeAlias = Iterable[Hashable] | npt.NDArray[Any]
Counted: TypeAlias = Sequence | Mapping[Any, float]


MAX_COUNT = 2**53
"""The largest count. Sums of squares of counts stay far below the largest float."""


def items_of(a: Sequence) -> Iterable[Hashable]:
    """Return the items of a sequence; raise MeasureError if it is not a sequence."""
    if isinstance(a, np.ndarray):
        if a.ndim != 1:
            raise MeasureError(f"an array has {a.ndim} dimensions; expected 1")
        return a.tolist()  # type: ignore[no-any-return]
    if not isinstance(a, Iterable):
        raise MeasureError(f"expected a sequence of words, characters or integers, not {a!r:.100}")
    return a


def set_of(a: Sequence) -> Set[Hashable]:
    """Return the distinct items of a sequence."""
    if isinstance(a, Set):
        return a
    try:
        return set(items_of(a))
    except TypeError as error:
        raise MeasureError(f"an item cannot be compared: {error}") from error


def counts_of(a: Counted) -> Mapping[Hashable, float]:
    """Return how often each item occurs; a mapping already holds the counts."""
    if not isinstance(a, Mapping):
        try:
            return Counter(items_of(a))
        except TypeError as error:
            raise MeasureError(f"an item cannot be compared: {error}") from error
    return {item: number_of(count, f"count of {item!r:.100}") for item, count in a.items()}


def number_of(value: object, what: str) -> float:
    """Return a number of 0 or more as int or float, because NumPy's integers wrap."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        raise MeasureError(f"the {what} is {value!r:.100}; expected 0 to 2^53")
    return value


def hashable(a: Sequence) -> list[Hashable]:
    """Return the items of a sequence; raise MeasureError if an item cannot be hashed."""
    items = list(items_of(a))
    try:
        for item in items:
            hash(item)
    except TypeError as error:
        raise MeasureError(f"an item cannot be compared: {error}") from error
    return items
