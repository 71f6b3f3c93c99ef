"""Checks of single values that a user gives: each returns the value, or raises an error."""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Generator, Hashable, Iterable, Mapping, Set
from datetime import timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

from textsim_db.errors import ConfigurationError, MeasureError


def is_number(value: object) -> bool:
    """Say whether the value is a real number of Python or NumPy or a Decimal, but not a bool."""
    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def as_float(number: float | Decimal) -> float:
    """Return a number as a float; the nearest real to a number of up to six digits is this number.

    numpy.float32(0.8) is 0.800000011920929, above the similarity of four shingles out of five. SQL has
    the same rule, in textsim._decimal_of.
    """
    try:
        value = float(str(number)) if hasattr(number, "dtype") else float(number)
    except OverflowError:
        return math.inf
    if not 1e-6 <= value <= 1:
        return value
    short = float(f"{value:.6g}")
    return short if struct.unpack("f", struct.pack("f", short))[0] == value else value


def check_callable(value: object, name: str) -> None:
    """Raise ConfigurationError unless the value is a function or None."""
    if value is not None and not callable(value):
        raise ConfigurationError(f"{name} is {value!r:.100}; expected a function or None")


def check_threshold(threshold: float, name: str = "threshold") -> float:
    """Return the threshold as a float; raise ConfigurationError unless 0 < threshold <= 1."""
    if not is_number(threshold):
        raise ConfigurationError(f"{name} is {threshold!r}; expected a number above 0, at most 1")
    share = as_float(threshold)
    if not 0 < share <= 1:
        raise ConfigurationError(f"{name} is {threshold}; expected above 0, at most 1")
    return share


def check_raised(unique_from: float | None, force: bool) -> float:
    """Return the similarity from which on twins are kept out in one call: 0, any; infinity, none."""
    if unique_from is None:
        return 1.0 if force else 0.0
    if unique_from != math.inf:
        unique_from = check_threshold(unique_from, "unique_from")
    return max(unique_from, 1.0) if force else unique_from


def check_flag(value: bool, name: str) -> bool:
    """Return the value; raise ConfigurationError unless it is True or False."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} is {value!r}; expected True or False")
    return value


_SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 30 * 86_400,
    "year": 31_557_600,
}
"""The seconds of the units of a duration, as the server counts them."""


def check_duration(value: timedelta | str | None, name: str) -> timedelta | None:
    """Return a duration such as "30 days" or "1 day 12 hours" as a timedelta, None if it is None.

    Raises ConfigurationError unless it is above 0 and at most 1000 years.
    """
    if value is None:
        return None
    duration = value
    if isinstance(value, str):
        amounts = re.findall(r"\s*([0-9]{1,9}) *([a-z]+?)s?\b\s*", value)
        is_complete = re.fullmatch(r"(\s*[0-9]{1,9} *[a-z]+\s*)+", value) is not None
        if not is_complete or any(unit not in _SECONDS for _, unit in amounts):
            raise ConfigurationError(
                f'{name} is {value!r}; expected a time such as "30 days" or "12 hours", in '
                f"{', '.join(f'{unit}s' for unit in _SECONDS)}"
            )
        seconds = sum(int(number) * _SECONDS[unit] for number, unit in amounts)
        duration = timedelta(seconds=min(seconds, 10**13))
    if not isinstance(duration, timedelta):
        raise ConfigurationError(f"{name} is {value!r}; expected a timedelta or a str")
    if not timedelta(0) < duration <= timedelta(seconds=1000 * _SECONDS["year"]):
        raise ConfigurationError(
            f"{name} is {value!r}; expected more than nothing, at most 1000 years"
        )
    return duration


_NO_LIMIT = 2**63 - 1
"""A message about a value that is too low does not name this upper limit."""


def check_count(value: int, name: str, low: int, high: int) -> int:
    """Return the value; raise ConfigurationError unless it is a whole number in [low, high]."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ConfigurationError(f"{name} is {value!r}; expected a whole number") from None
    if isinstance(value, bool) or not low <= number <= high:
        is_any_above = number < low and high >= _NO_LIMIT
        limits = f"{low} or more" if is_any_above else f"{low} to {high}"
        raise ConfigurationError(f"{name} is {value}; expected {limits}")
    return number


def is_column(value: Any) -> bool:
    """Say whether this is a column of values, such as a Series or a pyarrow.ChunkedArray."""
    has_list = hasattr(value, "to_list") or hasattr(value, "to_pylist")
    return has_list and not hasattr(type(value), "columns")


def is_table(value: Any) -> bool:
    """Say whether this has columns: a frame, also a lazy one, or a table of Arrow."""
    kind = type(value)  # a lazy frame computes its columns, and warns of that
    if isinstance(value, Generator) or is_column(value):  # results are a generator of rows
        return False
    return hasattr(kind, "columns") or hasattr(kind, "__arrow_c_stream__")


def plain_items(values: Any) -> Any:
    """Return the items of a column or an array as objects of Python, and any other value as it is.

    Items of Arrow equal no str.
    """
    for method in ("to_pylist", "to_list", "tolist") if not is_table(values) else ():
        if hasattr(values, method) and getattr(values, "ndim", 1) == 1:
            return getattr(values, method)()
    return values


def items_of(a: Iterable[Hashable]) -> Iterable[Hashable]:
    """Return the items of a sequence; raise MeasureError if it is not a sequence."""
    if isinstance(a, str):
        return a
    dimensions = getattr(a, "ndim", 1)
    if dimensions != 1:
        raise MeasureError(f"an array has {dimensions} dimensions; expected 1")
    if not isinstance(a, Iterable) or is_table(a):
        raise MeasureError(f"expected a sequence of words, characters or integers, not {a!r:.100}")
    items: Iterable[Hashable] = plain_items(a)
    return items


def several_items(values: Any, expected: str) -> Iterable[Any]:
    """Return the items of several values; raise ConfigurationError if it is one value, or a frame.

    Every function that takes several texts, keys or pairs calls this. A str would yield its
    characters, bytes would yield numbers, and a frame the names of its columns.
    """
    is_one = isinstance(values, str | bytes | bytearray | memoryview) or is_table(values)
    if is_one or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise ConfigurationError(f"{expected}; it got one {type(values).__name__}")
    items: Iterable[Any] = plain_items(values)
    return items


def items_in_order(values: Any, expected: str) -> Iterable[Any]:
    """Return the items of several values whose places count; a set and a mapping have no places."""
    if isinstance(values, Mapping | Set):
        raise ConfigurationError(f"{expected}; it got a {type(values).__name__}")
    return several_items(values, expected)
