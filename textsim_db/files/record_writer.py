"""The common base of the writers, which write the records of one kind of file as another kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import IO, Any

from textsim_db.errors import InputError, shown
from textsim_db.files.record_reader import Values

MAX_COLUMNS = 10_000
"""Columns of a file that is written. Members with ever new names would make a table without end."""


class RecordWriter(ABC):
    """Writes records, given as values by name, in two passes: survey() each record, then write()."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}

    def add_columns(self, names: Iterable[str]) -> None:
        """Note the names of columns, in their order; raises InputError if there are too many."""
        for name in names:
            if name not in self._columns:
                expect_utf8(name, name)
                self._columns[name] = None
        if len(self._columns) > MAX_COLUMNS:
            raise InputError(f"the records have more than {MAX_COLUMNS:,} columns")

    @abstractmethod
    def survey(self, values: Values) -> None:
        """Look at a record before any is written; raise InputError if the format cannot hold it."""

    @abstractmethod
    def write(self, records: Iterable[Values], output: IO[bytes]) -> None:
        """Write records that survey() has seen; raises InputError if there are no columns."""

    def _expect_columns(self) -> None:
        if not self._columns:
            raise InputError("there is no record, so the columns to write are unknown")


def expect_utf8(text: str, name: str) -> None:
    """Raise InputError if a text, found under this name, cannot be written as UTF-8."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f'"{shown(name)}" has a lone surrogate U+{ord(text[error.start]):04X} at character '
            f"{error.start + 1}"
        ) from None
