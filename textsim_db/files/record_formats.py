"""CSV, TSV and JSON lines: the records of a file, or an error for a malformed one; and records as lines.

TSV is CSV with tabs instead of commas: a value with a tab, a line break or a quotation mark is quoted.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import repeat
from typing import IO, Any

from textsim_db.errors import InputError
from textsim_db.files import file_kinds
from textsim_db.files.file_kinds import (
    RECORD_KINDS,
    FileFormat,
    Kind,
    Quote,
    decoded,
    lines,
    partly_decoded,
)
from textsim_db.files.records import (
    LineReader,
    Names,
    RecordWriter,
    Values,
    expect_names,
    expect_utf8,
    type_name,
)
from textsim_db.results.shown_values import shown
from textsim_db.text.storable import MAX_BYTES

_BYTE_ORDER_MARK = "\ufeff"
"""Readers remove it at the start of a file. Excel needs it to read UTF-8."""
_SEPARATORS = "\t;|,"
_SEPARATOR_LINE = re.compile(rb"(?:\xef\xbb\xbf)?sep=(.)\r?\n")
"""The first line that Excel writes and reads to name the separator."""
_QUOTING: dict[Quote, dict[str, Any]] = {
    Quote.AUTO: {},
    Quote.DOUBLED: {},
    Quote.BACKSLASH: {"escapechar": "\\"},
    Quote.NONE: {"quoting": csv.QUOTE_NONE},
}
_UNQUOTED = "; if quotation marks mean nothing in this file, give --quote none"


class CsvReader(LineReader):
    """The records of a CSV or TSV file after its header; blank lines are skipped.

    The format or the header may name another character between columns: Excel writes semicolons in
    many countries. Raises InputError if the rest cannot be divided into records.
    """

    columns: list[str]

    def __init__(self, file: IO[bytes], form: FileFormat) -> None:
        kind = RECORD_KINDS[form.kind]
        self._title, self._separator = kind.title, form.separator or kind.separator
        self._quote = form.quote
        csv.field_size_limit(max(csv.field_size_limit(), MAX_BYTES))
        self._lines = _TextLines(file)
        self._records = self._divide(self._lines)
        header: list[str] | None = []
        fault = None
        try:
            header = self._next_record()
        except _UnreadableRest:
            raise
        except InputError as error:  # such as a name in quotation marks before another separator
            fault = error
        self.raw_header = self._lines.raw
        if named := _SEPARATOR_LINE.fullmatch(self.raw_header):
            self._separator = form.separator or named[1].decode("latin-1")
            self._records = self._divide(self._lines)
            header = self._next_record()
            self.raw_header += self._lines.raw
        elif header is not None and len(header) < 2 and form.separator is None:
            header = self._by_another_separator(header)
        if fault is not None and not header:
            raise fault
        if header is None:
            raise InputError(
                "the file is empty; expected a first line with the names of the columns"
            )
        self.columns = header

    def choose(self, names: Names, read_all: bool = False) -> None:
        try:
            super().choose(names)
        except InputError as error:
            decoded(self.raw_header)
            way_out = "; if another character separates the columns, name it with --separator"
            is_divided = not any(mark in name for name in self.columns for mark in _SEPARATORS)
            raise InputError(
                f"{error}{'' if is_divided and self.columns[1:] else way_out}"
            ) from None

    def layout(self) -> object:
        return self.columns, self._separator, self._quote

    def __iter__(self) -> Iterator[tuple[int, bytes, Values | InputError]]:
        while True:
            first = self._lines.number + 1
            record: Values | InputError
            try:
                fields = self._next_record()
                if fields is None:
                    return
                self._check_fields(fields, self._lines.number > first)
                record = dict(zip(self.columns, fields, strict=False))
            except _UnreadableRest as error:
                raise InputError(f"from line {first} on: {error}") from error
            except InputError as error:
                record, last = error, self._lines.number
                if last > first:
                    record = InputError(f"one record of the lines {first} to {last}: {error}")
            if record:
                yield first, self._lines.raw, record

    def extended(self, raw: bytes, appended: Values) -> bytes:
        """Return the bytes of a record, or of the header, with more fields at its end.

        A record with too few or too many columns stays as it is: more fields would have other names.
        """
        body = raw.rstrip(b"\r\n")
        mark = self._separator
        text = body.decode(errors="replace").removeprefix(_BYTE_ORDER_MARK)
        try:
            *_, fields = self._divide(io.StringIO(text, newline="\n"))
        except csv.Error:
            return raw
        if len(fields) != len(self.columns):
            return raw
        more = "".join(mark + _field(value, name, mark) for name, value in appended.items())
        return body + more.encode() + raw[len(body) :]

    def _divide(self, lines: Iterable[str]) -> Any:
        return csv.reader(lines, strict=True, delimiter=self._separator, **_QUOTING[self._quote])

    def _by_another_separator(self, header: list[str]) -> list[str]:
        headers = {self._separator: header}
        for self._separator in _SEPARATORS:
            with suppress(csv.Error):
                text = partly_decoded(self.raw_header).removeprefix(_BYTE_ORDER_MARK)
                lines = io.StringIO(text, newline="\n")
                headers.setdefault(self._separator, next(self._divide(lines)))
        self._separator = max(headers, key=lambda mark: len(headers[mark]))
        self._records = self._divide(self._lines)
        return headers[self._separator]

    def _check_fields(self, fields: list[str], are_several_lines: bool) -> None:
        """Raise InputError unless these are the fields of one record."""
        count = len(self.columns)
        if are_several_lines and self._quote is Quote.AUTO and self._are_records():
            raise InputError(
                f"quotation marks join them{_UNQUOTED}; if they are right, --quote doubled"
            )
        if len(fields) not in (0, count):
            raise InputError(f"the record has {len(fields)} columns, but the header has {count}")
        if count > 1 and fields and fields[-1] in self.columns:
            first = fields[0].removeprefix(_BYTE_ORDER_MARK).strip('"')
            if sorted([first, *fields[1:]]) == sorted(self.columns):
                raise InputError(
                    "the line names the columns again, as if files were joined: name each file instead"
                )

    def _are_records(self) -> bool:
        """Guess whether each line of the record is a record of its own.

        A record has the right number of separators. Texts often have commas and semicolons. Without
        tabs, therefore, the first values of all lines must also be alike except for their numbers.
        """
        lines = self._lines.raw.rstrip(b"\r\n").split(b"\n")
        mark, count = self._separator.encode(), len(self.columns)
        if count == 1 or any(line.count(mark) != count - 1 for line in lines):
            return False
        begins = {re.sub(rb"\d+", b"0", line.partition(mark)[0]) for line in lines}
        return mark == b"\t" or (len(begins) == 1 and b"0" in begins.pop())

    def _next_record(self) -> list[str] | None:
        """Return the next record, empty for a blank line, or None at the end."""
        self._lines.clear()
        way_out = _UNQUOTED
        try:
            record: list[str] | None = next(self._records, None)
        except csv.Error as error:
            if "field larger" in str(error) or "end of data" in str(error):
                raise _UnreadableRest(f"a quotation mark is not closed{way_out}") from error
            reason = str(error)
            if "new-line" in reason:
                reason, way_out = "a value has a carriage return", "; remove it, with tr -d '\\r'"
            elif b'\\"' in self._lines.raw:
                way_out = "; give --quote backslash"
            raise InputError(f"malformed {self._title}: {reason}{way_out}") from error
        return record


class CsvWriter(RecordWriter):
    """Writes records as CSV or TSV; null is an empty field, an empty text is "" in quotation marks."""

    def __init__(self, kind: Kind = Kind.CSV) -> None:
        super().__init__()
        self._separator = RECORD_KINDS[kind].separator

    def survey(self, values: Values) -> None:
        """Note the columns; raise InputError if a value is nested."""
        self.add_columns(values)
        for name, value in values.items():
            _field(value, name, self._separator)

    def write(self, records: Iterable[Values], output: IO[bytes]) -> None:
        self._expect_columns()
        output.write(self._line(self._columns.keys(), self._columns))
        for values in records:
            output.write(self._line(map(values.get, self._columns), self._columns))

    def _line(self, values: Iterable[Any], names: Iterable[str]) -> bytes:
        line = self._separator.join(map(_field, values, names, repeat(self._separator)))
        return (line or '""').encode() + b"\n"  # readers skip a blank line


def _field(value: Any, name: str, separator: str) -> str:
    if isinstance(value, str):
        expect_utf8(value, name)
        marks = (separator, '"', "\n", "\r", _BYTE_ORDER_MARK)
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
        self._lines = lines(file, with_mark=True)
        self.number = 0
        """The number of the last line."""
        self._raw = bytearray()  # a list of short lines would take many times their bytes

    @property
    def raw(self) -> bytes:
        return bytes(self._raw)

    def clear(self) -> None:
        self._raw = bytearray()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.number, line = next(self._lines)
        if line is None:
            raise _UnreadableRest(
                f"line {self.number} is longer than {file_kinds.MAX_LINE:,} bytes"
            )
        self._raw += line
        text = partly_decoded(line)
        return text.removeprefix(_BYTE_ORDER_MARK) if self.number == 1 else text


class JsonReader(LineReader):
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __iter__(self) -> Iterator[tuple[int, bytes | None, Values | InputError]]:
        for number, line in self.raw_records():
            record: Values | InputError
            try:
                record = json_object(line)
            except InputError as error:
                record = error
            yield number, line, record

    def raw_records(self) -> Iterator[tuple[int, bytes | None]]:
        return (pair for pair in lines(self._file) if pair[1] is None or pair[1].strip())

    def extended(self, raw: bytes, appended: Values) -> bytes:
        """Return the bytes of an object with more members at its end, and others as they are."""
        body = raw.rstrip()
        if not body.endswith(b"}"):
            return raw
        start = body[:-1].rstrip()
        comma = b"" if start.endswith(b"{") else b", "
        return start + comma + json.dumps(appended).encode()[1:] + raw[len(body) :]


class JsonWriter(RecordWriter):
    def survey(self, values: Values) -> None:
        """Raise InputError if JSON cannot hold a value, such as binary data or NaN."""
        for name, value in values.items():
            try:
                text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise InputError(f'"{shown(name)}" is {type_name(value)}') from error
            expect_utf8(value if isinstance(value, str) else text, name)
            expect_utf8(name, name)

    def write(self, records: Iterable[Values], output: IO[bytes]) -> None:
        for values in records:
            output.write(json.dumps(values, ensure_ascii=False).encode() + b"\n")


def _distinct(members: list[tuple[str, Any]]) -> Values:
    """Return the members of an object; raise InputError if one comes twice: the last would count."""
    values = dict(members)
    if len(values) < len(members):
        names = [name for name, _ in members]
        expect_names(names, [("", max(values, key=Counter(names).__getitem__))], "member")
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct)


def json_object(line: bytes | None) -> Values:
    if line is None:
        raise InputError(f"the line is longer than {file_kinds.MAX_LINE:,} bytes")
    text = partly_decoded(line.rstrip()).removeprefix("\ufeff")  # where files were joined
    try:
        record = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        decoded(line)
        raise InputError(f"malformed JSON at character {error.pos + 1}: {error.msg}") from error
    except RecursionError as error:
        raise InputError("malformed JSON: it is nested too deeply") from error
    except ValueError as error:  # a number of too many digits
        raise InputError(f"malformed JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputError(f"the line is {type_name(record)}; expected a JSON object")
    return record
