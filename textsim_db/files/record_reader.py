"""The common base of the readers of JSON lines and CSV, and their checks of values."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from textsim_db.errors import InputError, shown, suggestion


class RecordReader(ABC):
    """The records of a file; iterating yields (line, raw, record).

    raw: the bytes of the record, or None if it is too long. record: an InputError if the record is
    malformed. raw_header: the bytes before the first record.
    """

    raw_header = b""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[int, bytes | None, Any]]: ...

    def raw_records(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the line and the bytes of each record."""
        return ((number, raw) for number, raw, _ in self)

    @abstractmethod
    def value(self, record: Any, name: str) -> Any:
        """Return the value of a member or column, or None if the record has no such name."""

    @abstractmethod
    def expect(self, record: Any, names: dict[str, str]) -> None:
        """Raise InputError if a record lacks one of the names; names: by option."""


def key_of(value: Any, name: str) -> str:
    """Return a value as a key; raise InputError unless it is a string or a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f'"{name}" is {type_name(value)}; expected a string or a whole number')
    return str(value)


def text_of(value: Any, name: str) -> str:
    """Return a value as a text; raise InputError unless it is a string."""
    if not isinstance(value, str):
        raise InputError(f'"{name}" is {type_name(value)}; expected a string')
    return value


def type_name(value: Any) -> str:
    """Return the kind of a JSON value for a message."""
    if isinstance(value, list | dict | str):
        return {list: "an array", dict: "an object", str: "a string"}[type(value)]
    return "a number" if type(value) is int else json.dumps(value)


def expect_names(present: list[str], names: dict[str, str], noun: str) -> None:
    """Raise InputError if one of the names is not present; names: by option."""
    for option, name in names.items():
        if name in present:
            continue
        first = ", ".join(f'"{shown(other[:40])}"' for other in present[:8]) or "none"
        rest = ", ..." if len(present) > 8 else ""
        near = suggestion(name, present)
        hint = f"name another with {option}{near}"
        if noun == "column" and len(present) == 1 and ";" in present[0]:
            hint = "columns are separated by commas, not semicolons"
        raise InputError(f'there is no {noun} "{shown(name)}"; found {first}{rest}: {hint}')
