"""Documents and judgements from files of plain text and of records, also packed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import IO

from textsim_db.errors import InputError
from textsim_db.files.file_kinds import (
    BY_NAME,
    STDIN,
    FileFormat,
    Kind,
    check_first_bytes,
    decoded,
    kind_of,
    reason,
    shown_name,
    transcoded,
    unpacked,
)
from textsim_db.files.record_files import check_packages, read_records
from textsim_db.files.records import Values, key_of, needed, scope_of, text_of
from textsim_db.files.several_files import files_of
from textsim_db.results import Refusal
from textsim_db.text.storable import MAX_BYTES, join_key

Document = tuple[str, str] | tuple[str, str, str]
"""The key and the text of a document, and the scope if there are scopes."""


@dataclass
class Inputs:
    """The documents of files and folders; iterating yields documents.

    A plain text file is one document, and its path is the key. In a folder, files are read in order of
    their names; hidden files are skipped. A packed file is recognised by its first bytes or its name.
    """

    paths: Sequence[str]
    """Files and folders; "-" is standard input."""
    on_refused: Callable[[Refusal], None]
    """It is called with each refusal, whose key is the file and, if it is known, the line."""
    form: FileFormat = BY_NAME
    """The format of all files. By default standard input is JSON lines."""
    keys: Sequence[str] = ("id",)
    """The columns or members that make the key."""
    text: str = "text"
    """The column or member with the text."""
    scope: Sequence[str] = ()
    """The columns or members that make the scope; none in a corpus that is not scoped."""
    glob: str = "*"
    """A pattern: only files of this name are read in a folder."""
    _finished_bytes: int = field(default=0, init=False)
    _raw: IO[bytes] | None = field(default=None, init=False)

    def __iter__(self) -> Iterator[Document]:
        for name in self.files(self.on_refused):
            try:
                with self._opened(name) as file:
                    yield from self._documents(name, file)
            except (OSError, InputError) as error:
                self.on_refused(Refusal(name, reason(error)))

    @property
    def bytes_read(self) -> int:
        """Bytes read from the files so far; packed files count as packed."""
        raw = self._raw
        return self._finished_bytes + (raw.tell() if raw is not None and raw.seekable() else 0)

    def total_bytes(self) -> int | None:
        """Return the size of all files, or None if a file has no size, such as standard input."""
        total = 0
        for name in self.files():
            if os.path.isfile(name):
                total += os.path.getsize(name)
            elif name == STDIN or os.path.exists(name):
                return None
        return total

    def check_packages(self) -> None:
        """Raise InputError if a file needs a package that is missing; called before long work."""
        for name in self.files():
            check_packages(name, self.form.kind)

    def files(self, on_refused: Callable[[Refusal], None] = lambda refusal: None) -> Iterator[str]:
        return files_of(self.paths, self.glob, on_refused)

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        with nullcontext(sys.stdin.buffer) if name == STDIN else open(name, "rb") as raw:
            self._raw = raw
            try:
                yield unpacked(raw, name)
            finally:
                self._finished_bytes, self._raw = self.bytes_read, None

    def _documents(self, name: str, file: IO[bytes]) -> Iterator[Document]:
        kind = kind_of(name) if self.form.kind is Kind.AUTO else self.form.kind
        if kind is Kind.TEXT:
            if self.form.encoding is not None:
                file = transcoded(file, self.form.encoding)
            check_first_bytes(file, name, self.form.kind)
            yield name, _whole_text(file)
            return
        names = [*(("--key", key) for key in self.keys), ("--text", self.text)]
        names += [("--scope", scope) for scope in self.scope]
        with read_records(file, name, self.form._replace(kind=kind)) as records:
            records.choose(names)
            for number, _, record in records:
                try:
                    if isinstance(record, InputError):
                        raise record
                    document = self._document(record)
                except InputError as error:
                    place = f"{shown_name(name)}, {records.unit} {number}"
                    self.on_refused(Refusal(place, str(error)))
                else:
                    yield document

    def _document(self, values: Values) -> Document:
        key = join_key(*(key_of(needed(values, name, "--key"), name) for name in self.keys))
        text = text_of(needed(values, self.text, "--text"), self.text)
        scope = scope_of(values, self.scope)
        return (key, text) if scope is None else (key, text, scope)


def read_text(name: str) -> str:
    """Return the text of a file, or of standard input for "-"; raises InputError."""
    refusals: list[Refusal] = []
    if os.path.isdir(name):
        raise InputError(f"{shown_name(name)} is a folder; expected a file")
    for document in Inputs([name], refusals.append, FileFormat(Kind.TEXT)):
        return document[1]
    raise InputError(f"{shown_name(name)}: {refusals[0].reason}")


def _whole_text(file: IO[bytes]) -> str:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(
            f"the file is larger than {MAX_BYTES:,} bytes, the limit for a text; split the file"
        )
    return decoded(data, "convert it to UTF-8")
