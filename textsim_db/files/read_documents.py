"""Documents from files: plain text, JSON lines and CSV, gzip'ed or not, streamed; pure.

What cannot be read is refused and the rest goes on: a record by file and line, or a whole file.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import IO

from textsim_db.errors import InputError
from textsim_db.files.record_formats import (
    STDIN,
    CsvRecords,
    Kind,
    decoded,
    expect_names,
    json_key,
    json_object,
    json_text,
    kind_of,
    lines,
    reason,
    shown_name,
    unpacked,
)
from textsim_db.results import Refusal
from textsim_db.text.utf8 import MAX_BYTES

Document = tuple[str, str]


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
                self.on_refused(Refusal(name, reason(error)))

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
                yield unpacked(raw, name)
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
        for number, line in lines(file):
            if line is not None and not line.strip():
                continue
            try:
                record = json_object(line)
                expect_names(list(record), self._names, "member")
                yield json_key(record, self.key), json_text(record, self.text)
            except InputError as error:
                self._refuse(name, number, error)

    def _csv_records(self, name: str, file: IO[bytes]) -> Iterator[Document]:
        records = CsvRecords(file)
        expect_names(records.header, self._names, "column")
        key, text = records.header.index(self.key), records.header.index(self.text)
        for number, _, record in records:
            if isinstance(record, InputError):
                self._refuse(name, number, record)
            else:
                yield record[key], record[text]

    @property
    def _names(self) -> dict[str, str]:
        return {"--key": self.key, "--text": self.text}

    def _refuse(self, name: str, line: int, error: InputError) -> None:
        self.on_refused(Refusal(f"{shown_name(name)}, line {line}", str(error)))


def read_text(name: str) -> str:
    """Return the text of one file, or of standard input for "-"; raises InputError."""
    refusals: list[Refusal] = []
    if os.path.isdir(name):
        raise InputError(f"{shown_name(name)} is a folder; a file was expected")
    for _, text in Inputs([name], refusals.append, Kind.TEXT):
        return text
    raise InputError(f"{shown_name(name)}: {refusals[0].reason}")


def _walk(folder: str, glob: str, on_refused: Callable[[Refusal], None]) -> Iterator[str]:
    def unreadable(error: OSError) -> None:
        on_refused(Refusal(str(error.filename), reason(error)))

    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(parent, name)
            if name.startswith(".") or not PurePath(os.path.relpath(path, folder)).match(glob):
                continue
            if os.path.isfile(path) or not os.path.exists(path):  # no pipes, no devices
                yield path


def _whole(file: IO[bytes]) -> str:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(
            f"the file is larger than {MAX_BYTES:,} bytes, the most that a text can be"
        )
    return decoded(data)
