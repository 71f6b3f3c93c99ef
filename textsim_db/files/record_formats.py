"""Records in files: lines, JSON objects and CSV records, with what is wrong with one; pure."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import PurePath
from typing import IO, Any

from textsim_db.errors import InputError, shown
from textsim_db.text.utf8 import MAX_BYTES

STDIN = "-"
MAX_LINE = 2 * MAX_BYTES  # escapes make JSON longer than the text it holds
MAX_STRUCTURE = 16 * 1024 * 1024
"""Bytes of JSON outside its strings: every two may become an object of seventy."""
MAX_FIELDS = 1_000_000
_PIECE = 2**20
_BACKSLASH = ord("\\")
_GZIP = b"\x1f\x8b"


class Kind(StrEnum):
    """How a file holds documents; auto goes by its name."""

    AUTO = "auto"
    TEXT = "text"
    JSONL = "jsonl"
    CSV = "csv"


def kind_of(name: str) -> Kind:
    """Return how a file of that name holds documents."""
    if name == STDIN:
        return Kind.JSONL
    suffix = PurePath(name.lower().removesuffix(".gz")).suffix
    return {".jsonl": Kind.JSONL, ".ndjson": Kind.JSONL, ".csv": Kind.CSV}.get(suffix, Kind.TEXT)


def unpacked(raw: IO[bytes], name: str) -> IO[bytes]:
    """Return a file as it reads unpacked: what is named so or begins as gzip does is gzip."""
    packed = name.lower().endswith(".gz") or _begins_as_gzip(raw)
    return io.BufferedReader(_Unpacked(raw), 2**17) if packed else raw


class _Unpacked(io.RawIOBase):
    """What a gzip file holds: up to where it is damaged all of it, and only then the error."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._file = gzip.GzipFile(fileobj=raw)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _begins_as_gzip(file: IO[bytes]) -> bool:
    return isinstance(file, io.BufferedReader) and file.peek(2).startswith(_GZIP)


def lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Yield the number and the bytes of each line, without a byte order mark; None for one too long."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) <= MAX_LINE:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_PIECE)
        yield number, None


def _outside_strings(line: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the parts of a line of JSON begin and end that are not in strings."""
    at = 0
    while True:
        end = line.find(b'"', at)
        yield at, len(line) if end < 0 else end
        while end >= 0:  # to the end of the string
            end = line.find(b'"', end + 1)
            before = end
            while before > 0 and line[before - 1] == _BACKSLASH:
                before -= 1
            if (end - before) % 2 == 0:
                break
        if end < 0:
            return
        at = end + 1


def _outside_quotes(line: bytes, inside: bool) -> Iterator[tuple[int, int]]:
    """Yield where the parts of a line of CSV begin and end that are not in quotation marks."""
    at = 0
    while True:
        if inside:
            at = line.find(b'"', at) + 1
            if not at:
                return
        end = line.find(b'"', at)
        # One within a field is a character like any other.
        while end > 0 and line[end - 1] not in b',"':
            end = line.find(b'"', end + 1)
        yield at, len(line) if end < 0 else end
        if end < 0:
            return
        at, inside = end + 1, True


def _check_structure(line: bytes) -> None:
    """Raise InputError where JSON would take many times its bytes, as millions of arrays do."""
    if len(line) <= MAX_STRUCTURE:
        return
    outside = 0
    for start, end in _outside_strings(line):
        outside += end - start
        if outside > MAX_STRUCTURE:
            raise InputError(f"the line has more than {MAX_STRUCTURE:,} bytes beside its strings")


def _has_too_many_fields(line: bytes, inside: bool) -> bool:
    """Say whether a line of CSV would be cut into millions of fields."""
    if line.count(b",") <= MAX_FIELDS:
        return False
    fields = 0
    for start, end in _outside_quotes(line, inside):
        fields += line.count(b",", start, end)
        if fields > MAX_FIELDS:
            return True
    return False


def json_object(line: bytes | None) -> dict[str, Any]:
    """Return the JSON object of a line; raises InputError."""
    if line is None:
        raise InputError(f"the line is longer than {MAX_LINE:,} bytes")
    _check_structure(line)
    text = decoded(line.rstrip())
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"malformed JSON at character {error.pos + 1}: {error.msg}") from error
    except RecursionError as error:
        raise InputError("malformed JSON: it is nested too deeply") from error
    except ValueError as error:  # a number of too many digits
        raise InputError(f"malformed JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputError(f"a JSON object was expected, {json_type(record)} was found")
    return record


def json_key(record: dict[str, Any], name: str) -> str:
    """Return a member as a key; raises InputError unless it is a string or a whole number."""
    key = record[name]
    if isinstance(key, bool) or not isinstance(key, str | int):
        expected = "a string or a whole number was expected"
        raise InputError(f'"{name}" is {json_type(key)}; {expected}')
    return str(key)


def json_text(record: dict[str, Any], name: str) -> str:
    """Return a member as a text; raises InputError unless it is a string."""
    text = record[name]
    if not isinstance(text, str):
        raise InputError(f'"{name}" is {json_type(text)}; a string was expected')
    return text


def expect_names(found: list[str], names: dict[str, str], what: str) -> None:
    """Raise InputError where one of the names, by option, is not among those found."""
    for option, name in names.items():
        if name in found:
            continue
        some = ", ".join(f'"{shown(other[:40])}"' for other in found[:8]) or "none"
        more = ", ..." if len(found) > 8 else ""
        hint = f"name another with {option}"
        if what == "column" and len(found) == 1 and ";" in found[0]:
            hint = "columns are separated by commas, not semicolons"
        raise InputError(f'there is no {what} "{shown(name)}"; found {some}{more}: {hint}')


class CsvRecords:
    """The records of a CSV file, after its header; iterating yields (line, raw, record).

    record is an InputError in the place of one that is malformed. Blank lines are passed over.
    Raises InputError where the rest cannot be told apart into records.
    """

    def __init__(self, file: IO[bytes]) -> None:
        csv.field_size_limit(max(csv.field_size_limit(), MAX_BYTES))
        self._lines = _TextLines(file)
        self._records = csv.reader(self._lines, strict=True)
        header = _next_record(self._records, self._lines)
        if header is None:
            raise InputError("the file is empty; a line with the names of the columns was expected")
        self.header = header
        self.raw_header = self._lines.raw

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
                        f"{len(record)} columns, where the header has {len(self.header)}"
                    )
            except _UnreadableRest as error:
                raise InputError(f"from line {first} on: {error}") from error
            except InputError as error:
                record = error
            if record:
                yield first, self._lines.raw, record


class _UnreadableRest(InputError):
    """The rest of a CSV file cannot be told apart into records."""


class _TextLines:
    """The decoded lines of a file.

    fault and raw say what was wrong with the lines since they were last cleared, and what they were.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._lines = lines(file)
        self.fault: InputError | None = None
        self._raw = bytearray()  # millions of short lines would take many times their bytes

    @property
    def raw(self) -> bytes:
        return bytes(self._raw)

    def clear(self) -> None:
        self.fault, self._raw = None, bytearray()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, line = next(self._lines)
        if line is None:
            raise _UnreadableRest(f"line {number} is longer than {MAX_LINE:,} bytes")
        if _has_too_many_fields(line, inside=bool(self._raw)):
            raise _UnreadableRest(f"line {number} has more than {MAX_FIELDS:,} columns")
        self._raw += line
        try:
            return decoded(line)
        except InputError as error:
            self.fault = self.fault or error
            return line.decode(errors="replace")


def decoded(data: bytes) -> str:
    """Return UTF-8 decoded; raises InputError."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        ) from error


def _next_record(records: Any, lines: _TextLines) -> list[str] | None:
    """Return the next record of a csv.reader, an empty one for a blank line, None at the end."""
    lines.clear()
    try:
        record: list[str] | None = next(records, None)
    except csv.Error as error:
        if "field larger" in str(error) or "end of data" in str(error):
            raise _UnreadableRest("a quotation mark is opened and not closed again") from error
        raise InputError(f"malformed CSV: {error}") from error
    if lines.fault is not None:
        raise lines.fault
    return record


def json_type(value: Any) -> str:
    """Return what a JSON value is, for a message."""
    if isinstance(value, list | dict | str):
        return {list: "an array", dict: "an object", str: "a string"}[type(value)]
    return "a number" if type(value) is int else json.dumps(value)


def shown_name(name: str) -> str:
    """Return the name of a file for a message."""
    return "standard input" if name == STDIN else shown(name)


def reason(error: Exception) -> str:
    """Return why a file cannot be read."""
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return f"not a gzip file, or a damaged one: {error}"
    if isinstance(error, EOFError):
        return "the gzip file ends too early; what came before the end was read"
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return str(error)
