"""The rule that chooses the kept document: first, last, longest, shortest, or by a column."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.errors import ConfigurationError, suggestion
from textsim_db.results.shown_values import shown

_PLAIN = ("first", "last", "longest", "shortest")
_EXPECTED = "first, last, longest, shortest, max:COLUMN or min:COLUMN"
_LONGEST = 40
_ISO_DATE = re.compile(r"\d{4}-\d\d")
"""Dates of ISO 8601 have the order of their texts; "31.12.2025" and numbers such as "1,5" have not."""

log = logging.getLogger(__name__)


class Preference(NamedTuple):
    """The rule that chooses which of several documents to keep."""

    rule: str
    """"first", "last", "longest", "shortest", "max" or "min"."""
    column: str | None = None
    """The column for "max" and "min"."""

    @classmethod
    def parse(cls, text: str) -> Preference:
        """Read "first", "last", "longest", "shortest", "max:COLUMN" or "min:COLUMN"."""
        if not isinstance(text, str):
            raise ConfigurationError(f"keep is {text!r:.100}; expected {_EXPECTED}")
        rule, separator, column = text.partition(":")
        if (text in _PLAIN) or (rule in ("max", "min") and separator and column):
            return cls(rule, column or None)
        near = suggestion(text, (*_PLAIN, f"max:{column}", f"min:{column}") if column else _PLAIN)
        raise ConfigurationError(f'keep is "{text}"; expected {_EXPECTED}{near}')

    def ranks(self, lengths: npt.NDArray[np.int64], values: Sequence[Any]) -> npt.NDArray[np.int64]:
        """Return the rank of each document, 0 for the document to keep: int64 of shape (documents,).

        lengths: characters of each text, shape (documents,); values: the values of the column, or
        empty. Ties go to the document that comes first. Values are compared as numbers if all are
        numbers, and as texts if none is. Documents without a value, or with NaN, come last. Raises
        ConfigurationError if only some values are numbers: as a text, "9" is greater than "10".
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
        numbers = [_number(value) for value in values]
        present = [i for i, each in enumerate(numbers) if not _is_missing(values[i], each)]
        keys = self._comparable(
            [values[i] for i in present], [numbers[i] for i in present], present
        )
        order = np.argsort(keys, kind="stable")
        if self.rule == "max":  # sorted in reverse, so that ties stay in order
            order = len(keys) - 1 - np.argsort(keys[::-1], kind="stable")[::-1]
        missing = np.setdiff1d(np.arange(len(values)), present)
        return np.concatenate((np.array(present, np.int64)[order], missing))

    def _comparable(
        self, values: list[Any], numbers: list[int | float | None], places: list[int]
    ) -> npt.NDArray[Any]:
        """Return values as numbers or as texts; places: the places of their documents."""
        first: dict[bool, int] = {}
        for i, number in enumerate(numbers):
            first.setdefault(number is None, i)
        if len(first) == 2:
            text, number = first[True], first[False]
            raise ConfigurationError(
                f'keep is "{self.rule}:{self.column}", but the column mixes numbers and texts: record '
                f'{places[text] + 1} has "{str(values[text])[:_LONGEST]}", and record '
                f"{places[number] + 1} has {str(values[number])[:_LONGEST]}; use only numbers or only "
                "texts, and leave missing values empty"
            )
        if True in first:
            example = str(values[0])
            if example[:1].isdigit() and not _ISO_DATE.match(example):
                log.warning(
                    'the values of "%s" are compared as texts, such as "%s"',
                    self.column,
                    shown(example[:_LONGEST]),
                )
            return np.array([str(value) for value in values], object)
        # Integers that a float cannot hold are compared as integers.
        exact = any(isinstance(number, int) and abs(number) > 2**53 for number in numbers)
        return np.array(numbers, object if exact else np.float64)


def _is_missing(value: Any, number: float | None) -> bool:
    if number is None:
        return value is None or (isinstance(value, str) and value == "")
    return isinstance(number, float) and math.isnan(number)


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        with suppress(ValueError):
            return int(value)
    try:
        return value if isinstance(value, int) else float(value)
    except (TypeError, ValueError):
        return None
