"""Documents and judgements from files of plain text and of records, also packed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import IO, NamedTuple
from uuid import UUID

from textsim_db.errors import InputError, suggestion
from textsim_db.files.file_kinds import (
    BY_NAME,
    STDIN,
    FileFormat,
    Kind,
    check_first_bytes,
    decoded,
    kind_of,
    kind_of_records,
    reason,
    shown_name,
    transcoded,
    unpacked,
)
from textsim_db.files.record_files import check_packages, read_records
from textsim_db.files.records import Values, key_of, needed, scope_of, text_of
from textsim_db.results import Refusal
from textsim_db.settings.named_values import Verdict
from textsim_db.text.storable_text import MAX_BYTES, join_key

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


def files_of(
    paths: Iterable[str], glob: str, on_refused: Callable[[Refusal], None]
) -> Iterator[str]:
    """Yield the names of files, also of the files in folders that match a pattern."""
    for path in paths:
        if path == STDIN or not os.path.isdir(path):
            yield path
            continue
        is_empty = True
        for name in _walk(path, glob, on_refused):
            is_empty = False
            yield name
        if is_empty:
            on_refused(Refusal(path, f'no file in this folder matches "{glob}"'))


def record_files(paths: Sequence[str], glob: str, kind: Kind) -> list[str]:
    """Return the names of files, also of those in folders; raises InputError for an unknown format."""

    def refused(refusal: Refusal) -> None:
        raise InputError(f"{shown_name(refusal.key)}: {refusal.reason}")

    names = [*files_of(paths, glob, refused)]
    for name in names:
        if name not in paths and kind is Kind.AUTO and kind_of(name) is Kind.TEXT:
            raise InputError(
                f"{shown_name(name)}: the name says no format of records; choose the files of the "
                "folder with --glob, or give the kind with --kind"
            )
    return names


def read_text(name: str) -> str:
    """Return the text of a file, or of standard input for "-"; raises InputError."""
    refusals: list[Refusal] = []
    if os.path.isdir(name):
        raise InputError(f"{shown_name(name)} is a folder; expected a file")
    for document in Inputs([name], refusals.append, FileFormat(Kind.TEXT)):
        return document[1]
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


def _whole_text(file: IO[bytes]) -> str:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(
            f"the file is larger than {MAX_BYTES:,} bytes, the limit for a text; split the file"
        )
    return decoded(data, "convert it to UTF-8")


_NAMES = [("A", "a"), ("B", "b"), ("VERDICT", "verdict")]
"""The columns or members that a file must have."""


FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""The characters with which a cell begins that a spreadsheet takes for a formula."""
GUARDED = "apostrophe_before"
"""The column with the names of the cells that got an apostrophe, so that they are no formulas."""


class ReadJudgement(NamedTuple):
    a: str
    """The key of one document."""
    b: str
    """The key of the other document."""
    verdict: Verdict
    note: str | None
    source: str | None
    confidence: float | None
    hashes: tuple[str | None, str | None] | None
    """Those of the texts that were judged; None without these columns."""
    place: str
    """The file and the line, for messages."""


def read_judgements(name: str, form: FileFormat = BY_NAME) -> list[ReadJudgement]:
    """Read a file of records; raises InputError at the first that is faulty or comes twice."""
    form = form._replace(kind=kind_of_records(name, form.kind))
    places: dict[frozenset[str], str] = {}
    judgements = []
    try:
        for judgement in _read(name, form):
            pair = frozenset(judgement[:2])
            if pair in places:
                raise InputError(f"{judgement.place}: this pair is judged already: {places[pair]}")
            places[pair] = judgement.place
            judgements.append(judgement)
    except OSError as error:
        raise InputError(f"{shown_name(name)}: {reason(error)}") from error
    return judgements


def _read(name: str, form: FileFormat) -> Iterator[ReadJudgement]:
    place = shown_name(name)
    try:
        with (
            nullcontext(sys.stdin.buffer) if name == STDIN else open(name, "rb") as raw,
            read_records(unpacked(raw, name), name, form) as records,
        ):
            # Other columns are read if they are there.
            records.choose(_NAMES, read_all=True)
            for number, _, record in records:
                place = f"{shown_name(name)}, {records.unit} {number}"
                if isinstance(record, InputError):
                    raise record
                yield _judgement(record, place)
    except InputError as error:
        if str(error).startswith(place):
            raise
        raise InputError(f"{place}: {error}") from error


def _judgement(values: Values, place: str) -> ReadJudgement:
    for option, name in _NAMES:
        needed(values, name, option)
    for name in str(values.get(GUARDED) or "").split():
        if isinstance(cell := values.get(name), str):
            values = {**values, name: cell.removeprefix("'")}
    verdict = text_of(values["verdict"], "verdict")
    if verdict not in list(Verdict):
        near = suggestion(verdict, Verdict)
        raise InputError(
            f'"verdict" is {verdict!r:.40}; expected one of {", ".join(Verdict)}{near}'
        )
    given = (values.get(name) for name in ("note", "source", "confidence"))
    note, source, confidence = (None if value == "" else value for value in given)
    try:
        sure = None if confidence is None else float(confidence)
    except (TypeError, ValueError) as error:
        raise InputError(f'"confidence" is {confidence!r:.40}; expected a number') from error
    return ReadJudgement(
        key_of(values["a"], "a"),
        key_of(values["b"], "b"),
        Verdict(verdict),
        None if note is None else text_of(note, "note"),
        None if source is None else text_of(source, "source"),
        sure,
        _hashes_of(values),
        place,
    )


def _hashes_of(values: Values) -> tuple[str | None, str | None] | None:
    if "hash_a" not in values and "hash_b" not in values:
        return None
    given = [values.get(name) or None for name in ("hash_a", "hash_b")]
    try:
        a, b = (None if each is None else str(UUID(str(each))) for each in given)
    except ValueError as error:
        raise InputError(f'"hash_a" and "hash_b" are {given!r:.100}; expected hashes') from error
    return a, b
