"""Which document of a cluster is kept: first, last, longest, shortest, or by a column; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.errors import ConfigurationError

_PLAIN = ("first", "last", "longest", "shortest")
_EXPECTED = "first, last, longest, shortest, max:COLUMN or min:COLUMN"


class Preference(NamedTuple):
    """Which of several documents to keep; column is the one whose greatest or least value decides."""

    rule: str
    column: str | None = None

    @classmethod
    def parse(cls, text: str) -> Preference:
        """Read "first", "last", "longest", "shortest", "max:COLUMN" or "min:COLUMN"."""
        rule, separator, column = text.partition(":")
        if (text in _PLAIN) or (rule in ("max", "min") and separator and column):
            return cls(rule, column or None)
        raise ConfigurationError(f'keep is "{text}"; expected {_EXPECTED}')

    def ranks(self, lengths: npt.NDArray[np.int64], values: Sequence[Any]) -> npt.NDArray[np.int64]:
        """Return the place of each document, the one to keep first: int64 of shape (documents,).

        lengths: characters of each text, shape (documents,); values: those of the column, or empty.
        Among equals the first is kept. Values are compared as numbers where all are numbers, else as
        texts; documents without one come last.
        """
        count = len(lengths)
        places = np.empty(count, np.int64)
        places[self._order(lengths, values)] = np.arange(count)
        return places

    def _order(
        self, lengths: npt.NDArray[np.int64], values: Sequence[Any]
    ) -> npt.NDArray[np.int64]:
        if self.rule == "last":
            return np.arange(len(lengths))[::-1]
        if self.rule in ("longest", "shortest"):
            return np.argsort(lengths if self.rule == "shortest" else -lengths, kind="stable")
        if self.column is None:
            return np.arange(len(lengths))
        known = [i for i, value in enumerate(values) if value is not None and value != ""]
        keys = _comparable([values[i] for i in known])
        order = np.argsort(keys, kind="stable")
        if self.rule == "max":  # stable from the other end: the first of equals stays first
            order = len(keys) - 1 - np.argsort(keys[::-1], kind="stable")[::-1]
        missing = np.setdiff1d(np.arange(len(values)), known)
        return np.concatenate((np.array(known, np.int64)[order], missing))


def _comparable(values: list[Any]) -> npt.NDArray[Any]:
    """Return values as numbers where all of them are, else as texts."""
    try:
        numbers = np.array([_float(value) for value in values], np.float64)
    except (TypeError, ValueError):
        return np.array([str(value) for value in values], object)
    # Whole numbers that a float cannot hold are compared as what they are.
    if any(isinstance(value, int) and abs(value) > 2**53 for value in values):
        return np.array([int(v) if isinstance(v, int) else float(v) for v in values], object)
    return numbers


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of 400 digits
        return math.inf
