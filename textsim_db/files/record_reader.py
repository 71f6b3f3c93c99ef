"""What the readers of JSON lines and of CSV have in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from textsim_db.errors import InputError, shown, suggestion


class RecordReader(ABC):
    """The records of a file; iterating yields (line, raw, record).

    raw are the bytes of the record, None if they are too many to be read. record is an InputError
    if the record is malformed. raw_header are the bytes before the first record.
    """

    raw_header = b""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[int, bytes | None, Any]]: ...

    def raw_records(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the line and the bytes of each record."""
        return ((number, raw) for number, raw, _ in self)

    @abstractmethod
    def value(self, record: Any, name: str) -> Any:
        """Return the value of a member or column, or None if there is none of that name."""

    @abstractmethod
    def expect(self, record: Any, names: dict[str, str]) -> None:
        """Raise InputError if a record lacks one of the names, which are given by option."""


def key_of(value: Any, name: str) -> str:
    """Return a value as a key; raises InputError unless it is a string or a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        expected = "a string or a whole number was expected"
        raise InputError(f'"{name}" is {type_name(value)}; {expected}')
    return str(value)


def text_of(value: Any, name: str) -> str:
    """Return a value as a text; raises InputError unless it is a string."""
    if not isinstance(value, str):
        raise InputError(f'"{name}" is {type_name(value)}; a string was expected')
    return value


def type_name(value: Any) -> str:
    """Return what kind of JSON value this is, for a message."""
    if isinstance(value, list | dict | str):
        return {list: "an array", dict: "an object", str: "a string"}[type(value)]
    return "a number" if type(value) is int else json.dumps(value)


def expect_names(present: list[str], names: dict[str, str], noun: str) -> None:
    """Raise InputError if one of the names, which are given by option, is not present."""
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
