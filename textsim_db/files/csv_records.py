"""CSV: the records of a file, or an error for a malformed record."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import IO, Any

from textsim_db.errors import InputError
from textsim_db.files import text_lines
from textsim_db.files.record_reader import RecordReader, expect_names
from textsim_db.files.text_lines import decoded, lines
from textsim_db.text.utf8 import MAX_BYTES

MAX_FIELDS = 1_000_000


class CsvRecords(RecordReader):
    """The records of a CSV file after its header, as lists of str; blank lines are skipped.

    Raises InputError if the rest of the file cannot be divided into records.
    """

    def __init__(self, file: IO[bytes]) -> None:
        csv.field_size_limit(max(csv.field_size_limit(), MAX_BYTES))
        self._lines = _TextLines(file)
        self._records = csv.reader(self._lines, strict=True)
        header = _next_record(self._records, self._lines)
        if header is None:
            raise InputError(
                "the file is empty; expected a first line with the names of the columns"
            )
        self.header = header
        self.raw_header = self._lines.raw
        self._places: dict[str, int | None] = {}

    def value(self, record: list[str], name: str) -> str | None:
        """Return the value of a column, or None if there is no such column."""
        if name not in self._places:
            self._places[name] = self.header.index(name) if name in self.header else None
        place = self._places[name]
        return None if place is None else record[place]

    def expect(self, record: Any, names: dict[str, str]) -> None:
        """Do nothing: expect_columns() has checked the header."""

    def expect_columns(self, names: dict[str, str]) -> None:
        """Raise InputError if the header lacks one of the columns."""
        expect_names(self.header, names, "column")

    def __iter__(self) -> Iterator[tuple[int, bytes, list[str] | InputError]]:
        while True:
            first = self._records.line_num + 1
            record: list[str] | InputError | None
            try:
                record = _next_record(self._records, self._lines)
                if record is None:
                    return
                if len(record) not in (0, len(self.header)):
                    raise InputError(
                        f"the record has {len(record)} columns, but the header has {len(self.header)}"
                    )
            except _UnreadableRest as error:
                raise InputError(f"from line {first} on: {error}") from error
            except InputError as error:
                record = error
            if record:
                yield first, self._lines.raw, record


class _UnreadableRest(InputError):
    """The rest of a CSV file cannot be divided into records."""


class _TextLines:
    """The decoded lines of a file.

    raw: the bytes of the lines since clear(); error: of the first line that is not UTF-8.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._lines = lines(file)
        self.error: InputError | None = None
        self._raw = bytearray()  # a list of short lines would take many times their bytes

    @property
    def raw(self) -> bytes:
        return bytes(self._raw)

    def clear(self) -> None:
        self.error, self._raw = None, bytearray()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, line = next(self._lines)
        if line is None:
            raise _UnreadableRest(f"line {number} is longer than {text_lines.MAX_LINE:,} bytes")
        if _has_too_many_fields(line, inside=bool(self._raw)):
            raise _UnreadableRest(f"line {number} has more than {MAX_FIELDS:,} columns")
        self._raw += line
        try:
            return decoded(line)
        except InputError as not_utf8:
            self.error = self.error or not_utf8
            return line.decode(errors="replace")


def _next_record(records: Any, lines: _TextLines) -> list[str] | None:
    """Return the next record of a csv.reader, empty for a blank line, or None at the end."""
    lines.clear()
    try:
        record: list[str] | None = next(records, None)
    except csv.Error as error:
        if "field larger" in str(error) or "end of data" in str(error):
            raise _UnreadableRest("a quotation mark is not closed") from error
        raise InputError(f"malformed CSV: {error}") from error
    if lines.error is not None:
        raise lines.error
    return record


def _has_too_many_fields(line: bytes, inside: bool) -> bool:
    """Say whether a line of CSV has more than MAX_FIELDS fields."""
    if line.count(b",") <= MAX_FIELDS:
        return False
    fields = 0
    for start, end in _outside_quotes(line, inside):
        fields += line.count(b",", start, end)
        if fields > MAX_FIELDS:
            return True
    return False


def _outside_quotes(line: bytes, inside: bool) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each part of a line of CSV that is outside quotation marks."""
    at = 0
    while True:
        if inside:
            at = line.find(b'"', at) + 1
            if not at:
                return
        end = line.find(b'"', at)
        # A quotation mark inside an unquoted field is an ordinary character.
        while end > 0 and line[end - 1] not in b',"':
            end = line.find(b'"', end + 1)
        yield at, len(line) if end < 0 else end
        if end < 0:
            return
        at, inside = end + 1, True
