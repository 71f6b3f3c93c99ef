"""Documents from files: plain text, JSON lines and CSV, gzip'ed or not, streamed; pure.

What cannot be read is refused and the rest goes on: a record by file and line, or a whole file.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import IO, Any

from textsim_db.errors import InputError
from textsim_db.results import Refusal
from textsim_db.text import MAX_BYTES

STDIN = "-"
_GZIP = b"\x1f\x8b"
MAX_LINE = 2 * MAX_BYTES  # escapes make JSON longer than the text it holds

Document = tuple[str, str]


class Kind(StrEnum):
    """How a file holds documents; auto goes by its name."""

    AUTO = "auto"
    TEXT = "text"
    JSONL = "jsonl"
    CSV = "csv"


@dataclass
class Inputs:
    """The documents of files and folders; iterating yields (key, text).

    A plain text file is one document and its key is its path as given. In a folder, files are taken
    in order of their names, where these match glob; hidden ones are passed over. Standard input,
    "-", is JSON lines unless kind says otherwise. What begins as gzip does is unpacked. on_refused
    is told of everything left out: its key is the file, with the line where there is one.
    """

    paths: Sequence[str]
    on_refused: Callable[[Refusal], None]
    kind: Kind = Kind.AUTO
    key: str = "id"
    text: str = "text"
    glob: str = "*"
    _finished_bytes: int = field(default=0, init=False)
    _raw: IO[bytes] | None = field(default=None, init=False)

    def __iter__(self) -> Iterator[Document]:
        for name in self._files(self.on_refused):
            try:
                with self._opened(name) as file:
                    yield from self._documents(name, file)
            except (OSError, EOFError, zlib.error, InputError) as error:
                self.on_refused(Refusal(name, _reason(error)))

    @property
    def bytes_read(self) -> int:
        """Bytes taken from the files so far, as they are on disk."""
        raw = self._raw
        return self._finished_bytes + (raw.tell() if raw is not None and raw.seekable() else 0)

    def total_bytes(self) -> int | None:
        """Return the size of all files, or None where one has no size, such as standard input."""
        total = 0
        for name in self._files(lambda refusal: None):
            if os.path.isfile(name):
                total += os.path.getsize(name)
            elif name == STDIN or os.path.exists(name):
                return None
        return total

    def _files(self, on_refused: Callable[[Refusal], None]) -> Iterator[str]:
        for path in self.paths:
            if path == STDIN or not os.path.isdir(path):
                yield path
                continue
            found = False
            for name in _walk(path, self.glob, on_refused):
                found = True
                yield name
            if not found:
                on_refused(Refusal(path, f'no file in this folder matches "{self.glob}"'))

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        with nullcontext(sys.stdin.buffer) if name == STDIN else open(name, "rb") as raw:
            self._raw = raw
            try:
                packed = name.lower().endswith(".gz") or _begins_as_gzip(raw)
                yield io.BufferedReader(gzip.GzipFile(fileobj=raw), 2**17) if packed else raw
            finally:
                self._finished_bytes, self._raw = self.bytes_read, None

    def _documents(self, name: str, file: IO[bytes]) -> Iterator[Document]:
        kind = kind_of(name) if self.kind is Kind.AUTO else self.kind
        if kind is Kind.TEXT:
            yield name, _whole(file)
        elif kind is Kind.JSONL:
            yield from self._json_lines(name, file)
        else:
            yield from self._csv_records(name, file)

    def _json_lines(self, name: str, file: IO[bytes]) -> Iterator[Document]:
        for number, line in _lines(file):
            if line is not None and not line.strip():
                continue
            try:
                yield self._json_document(line)
            except InputError as error:
                self.on_refused(Refusal(f"{_shown(name)}, line {number}", str(error)))

    def _json_document(self, line: bytes | None) -> Document:
        if line is None:
            raise InputError(f"the line is longer than {MAX_LINE:,} bytes")
        decoded = _decoded(line.rstrip())
        try:
            record = json.loads(decoded)
        except json.JSONDecodeError as error:
            raise InputError(f"malformed JSON at character {error.pos + 1}: {error.msg}") from error
        except (ValueError, RecursionError) as error:  # a number too long, too deep
            raise InputError(f"malformed JSON: {error}") from error
        if not isinstance(record, dict):
            raise InputError(f"a JSON object was expected, {_json_type(record)} was found")
        self._expect_names(list(record), "member")
        key, text = record[self.key], record[self.text]
        if isinstance(key, bool) or not isinstance(key, str | int):
            expected = "a string or a whole number was expected"
            raise InputError(f'"{self.key}" is {_json_type(key)}; {expected}')
        if not isinstance(text, str):
            raise InputError(f'"{self.text}" is {_json_type(text)}; a string was expected')
        return str(key), text

    def _csv_records(self, name: str, file: IO[bytes]) -> Iterator[Document]:
        csv.field_size_limit(max(csv.field_size_limit(), MAX_BYTES))
        lines = _TextLines(file)
        records = csv.reader(lines, strict=True)
        header = _next_record(records, lines)
        if header is None:
            raise InputError("the file is empty; a line with the names of the columns was expected")
        self._expect_names(header, "column")
        key, text = header.index(self.key), header.index(self.text)
        while True:
            first = records.line_num + 1
            try:
                record = _next_record(records, lines)
                if record is None:
                    return
                if len(record) not in (0, len(header)):
                    raise InputError(f"{len(record)} columns, where the header has {len(header)}")
            except _UnreadableRest as error:
                raise InputError(f"from line {first} on: {error}") from error
            except InputError as error:
                self.on_refused(Refusal(f"{_shown(name)}, line {first}", str(error)))
            else:
                if record:
                    yield record[key], record[text]

    def _expect_names(self, found: list[str], what: str) -> None:
        for option, name in (("--key", self.key), ("--text", self.text)):
            if name in found:
                continue
            some = ", ".join(f'"{other[:40]}"' for other in found[:8]) or "none"
            more = ", ..." if len(found) > 8 else ""
            hint = f"name another with {option}"
            if what == "column" and len(found) == 1 and ";" in found[0]:
                hint = "columns are separated by commas, not semicolons"
            raise InputError(f'there is no {what} "{name}"; found {some}{more}: {hint}')


class _UnreadableRest(InputError):
    """The rest of a CSV file cannot be told apart into records."""


class _TextLines:
    """The decoded lines of a file; fault says what the lines since it was last cleared had."""

    def __init__(self, file: IO[bytes]) -> None:
        self._lines = _lines(file)
        self.fault: InputError | None = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, line = next(self._lines)
        if line is None:
            raise _UnreadableRest(f"line {number} is longer than {MAX_LINE:,} bytes")
        try:
            return _decoded(line)
        except InputError as error:
            self.fault = self.fault or error
            return line.decode(errors="replace")


def read_text(name: str) -> str:
    """Return the text of one file, or of standard input for "-"; raises InputError."""
    refusals: list[Refusal] = []
    if os.path.isdir(name):
        raise InputError(f"{_shown(name)} is a folder; a file was expected")
    for _, text in Inputs([name], refusals.append, Kind.TEXT):
        return text
    raise InputError(f"{_shown(name)}: {refusals[0].reason}")


def _walk(folder: str, glob: str, on_refused: Callable[[Refusal], None]) -> Iterator[str]:
    def unreadable(error: OSError) -> None:
        on_refused(Refusal(str(error.filename), _reason(error)))

    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(parent, name)
            if name.startswith(".") or not PurePath(os.path.relpath(path, folder)).match(glob):
                continue
            if os.path.isfile(path) or not os.path.exists(path):  # no pipes, no devices
                yield path


def kind_of(name: str) -> Kind:
    """Return how a file of that name holds documents."""
    if name == STDIN:
        return Kind.JSONL
    suffix = PurePath(name.lower().removesuffix(".gz")).suffix
    return {".jsonl": Kind.JSONL, ".ndjson": Kind.JSONL, ".csv": Kind.CSV}.get(suffix, Kind.TEXT)


def _begins_as_gzip(file: IO[bytes]) -> bool:
    return isinstance(file, io.BufferedReader) and file.peek(2).startswith(_GZIP)


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
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
            line = file.readline(MAX_LINE)
        yield number, None


def _whole(file: IO[bytes]) -> str:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(
            f"the file is larger than {MAX_BYTES:,} bytes, the most that a text can be"
        )
    return _decoded(data)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        ) from error


def _next_record(records: Any, lines: _TextLines) -> list[str] | None:
    """Return the next record of a csv.reader, an empty one for a blank line, None at the end."""
    lines.fault = None
    try:
        record: list[str] | None = next(records, None)
    except csv.Error as error:
        if "field larger" in str(error) or "end of data" in str(error):
            raise _UnreadableRest("a quotation mark is opened and not closed again") from error
        raise InputError(f"malformed CSV: {error}") from error
    if lines.fault is not None:
        raise lines.fault
    return record


def _json_type(value: Any) -> str:
    if isinstance(value, list | dict | str):
        return {list: "an array", dict: "an object", str: "a string"}[type(value)]
    return "a number" if type(value) is int else json.dumps(value)


def _shown(name: str) -> str:
    return "standard input" if name == STDIN else name


def _reason(error: Exception) -> str:
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return f"not a gzip file, or a damaged one: {error}"
    if isinstance(error, EOFError):
        return "the gzip file ends too early; what came before the end was read"
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return str(error)
