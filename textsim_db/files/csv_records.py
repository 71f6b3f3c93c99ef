"""CSV and TSV: the records of a file, or an error for a malformed record; and records as such lines.

TSV is CSV with tabs instead of commas: a value with a tab, a line break or a quotation mark is quoted.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import IO, Any

from textsim_db.errors import InputError, shown
from textsim_db.files import text_lines
from textsim_db.files.file_kinds import RECORD_KINDS, Kind
from textsim_db.files.record_reader import LineReader, Names, Values, expect_names, type_name
from textsim_db.files.record_writer import RecordWriter, expect_utf8
from textsim_db.files.text_lines import decoded, lines
from textsim_db.text.storable_text import MAX_BYTES

_BYTE_ORDER_MARK = "\ufeff"  # at the start of a file, readers would remove it
_SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas"}


class CsvReader(LineReader):
    """The records of a CSV or TSV file after its header; blank lines are skipped.

    Raises InputError if the rest of the file cannot be divided into records.
    """

    columns: list[str]

    def __init__(self, file: IO[bytes], kind: Kind = Kind.CSV) -> None:
        self._title, _, self._separator = RECORD_KINDS[kind]
        csv.field_size_limit(max(csv.field_size_limit(), MAX_BYTES))
        self._lines = _TextLines(file)
        self._records = csv.reader(self._lines, strict=True, delimiter=self._separator)
        header = self._next_record()
        if header is None:
            raise InputError(
                "the file is empty; expected a first line with the names of the columns"
            )
        self.columns = header
        self.raw_header = self._lines.raw

    def choose(self, names: Names, read_all: bool = False) -> None:
        """Check that the header has each of the columns once."""
        expect_names(self.columns, names, "column", self._separator_hint())

    def __iter__(self) -> Iterator[tuple[int, bytes, Values | InputError]]:
        while True:
            first = self._records.line_num + 1
            record: Values | InputError
            try:
                fields = self._next_record()
                if fields is None:
                    return
                if len(fields) not in (0, len(self.columns)):
                    raise InputError(
                        f"the record has {len(fields)} columns, but the header has {len(self.columns)}"
                    )
                record = dict(zip(self.columns, fields, strict=False))
            except _UnreadableRest as error:
                raise InputError(f"from line {first} on: {error}") from error
            except InputError as error:
                record = error
            if record:
                yield first, self._lines.raw, record

    def _next_record(self) -> list[str] | None:
        """Return the next record, empty for a blank line, or None at the end."""
        self._lines.clear()
        try:
            record: list[str] | None = next(self._records, None)
        except csv.Error as error:
            if "field larger" in str(error) or "end of data" in str(error):
                raise _UnreadableRest("a quotation mark is not closed") from error
            raise InputError(f"malformed {self._title}: {error}") from error
        if self._lines.error is not None:
            raise self._lines.error
        return record

    def _separator_hint(self) -> str | None:
        """Return what to do if the header holds the separator of another format."""
        marks = [mark for mark in _SEPARATORS if mark in self.columns[0]] if self.columns else []
        if len(self.columns) != 1 or not marks:
            return None
        fitting = [kind for kind in RECORD_KINDS if RECORD_KINDS[kind].separator == marks[0]]
        way_out = f": give --kind {fitting[0]}" if fitting else ""
        expected, separator = _SEPARATORS[self._separator], _SEPARATORS[marks[0]]
        return f"columns are separated by {expected}, not {separator}{way_out}"


class CsvWriter(RecordWriter):
    """Writes records as CSV or TSV; null is an empty field, an empty text is "" in quotation marks."""

    def __init__(self, kind: Kind = Kind.CSV) -> None:
        super().__init__()
        self._separator = RECORD_KINDS[kind].separator

    def survey(self, values: Values) -> None:
        """Note the columns; raise InputError if a value is nested."""
        self.add_columns(values)
        for name, value in values.items():
            self._field(value, name)

    def write(self, records: Iterable[Values], output: IO[bytes]) -> None:
        """Write a header and a record on each line."""
        self._expect_columns()
        output.write(self._line(self._columns.keys(), self._columns))
        for values in records:
            output.write(self._line(map(values.get, self._columns), self._columns))

    def _line(self, values: Iterable[Any], names: Iterable[str]) -> bytes:
        line = self._separator.join(map(self._field, values, names))
        return (line or '""').encode() + b"\n"  # readers skip a blank line

    def _field(self, value: Any, name: str) -> str:
        if isinstance(value, str):
            expect_utf8(value, name)
            marks = (self._separator, '"', "\n", "\r", _BYTE_ORDER_MARK)
            if value and not any(mark in value for mark in marks):
                return value
            return '"' + value.replace('"', '""') + '"'
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int | float):
            return str(value)
        raise InputError(f'"{shown(name)}" is {type_name(value)}')


class _UnreadableRest(InputError):
    """The rest of a CSV file cannot be divided into records."""


class _TextLines:
    """The decoded lines of a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._lines = lines(file)
        self.error: InputError | None = None
        """The error of the first line since clear() that is not UTF-8."""
        self._raw = bytearray()  # a list of short lines would take many times their bytes

    @property
    def raw(self) -> bytes:
        """The bytes of the lines since clear()."""
        return bytes(self._raw)

    def clear(self) -> None:
        self.error, self._raw = None, bytearray()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, line = next(self._lines)
        if line is None:
            raise _UnreadableRest(f"line {number} is longer than {text_lines.MAX_LINE:,} bytes")
        self._raw += line
        try:
            return decoded(line)
        except InputError as not_utf8:
            self.error = self.error or not_utf8
            return line.decode(errors="replace")
