"""A file of records of any kind that can be read again: a pipe is copied to a temporary file."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import IO, Any, NamedTuple

from textsim_db.errors import InputError
from textsim_db.files.file_kinds import (
    BY_NAME,
    PACKINGS,
    RECORD_KINDS,
    STDIN,
    DamagedFile,
    FileFormat,
    Kind,
    check_first_bytes,
    expect_decoded,
    kind_of,
    kind_of_records,
    packing_of,
    shown_name,
    transcoded,
    unpacked,
    zstandard,
)
from textsim_db.files.parquet import ParquetReader, ParquetWriter, pyarrow_parquet
from textsim_db.files.record_formats import CsvReader, CsvWriter, JsonReader, JsonWriter
from textsim_db.files.records import (
    Names,
    RecordReader,
    RecordWriter,
    Values,
    expect_distinct,
    expect_names,
    in_temporary_folder,
    is_special,
    needed,
    scope_of,
    text_of,
    value_of,
)
from textsim_db.results import Refusal

WRITERS: dict[Kind, Callable[[], RecordWriter]] = {
    Kind.JSONL: JsonWriter,
    Kind.CSV: CsvWriter,
    Kind.TSV: partial(CsvWriter, Kind.TSV),
    Kind.PARQUET: ParquetWriter,
}
"""How records are written as each kind. PyArrow is imported when Parquet is read or written."""


def check_packages(name: str, kind: Kind) -> None:
    """Raise InputError, with the command that helps, if a file needs a package that is missing."""
    try:
        if (kind_of(name) if kind is Kind.AUTO else kind) is Kind.PARQUET:
            pyarrow_parquet()
        if packing_of(name) is PACKINGS[".zst"]:
            zstandard()
    except InputError as error:
        raise InputError(f"{shown_name(name)}: {error}") from None


@contextmanager
def read_records(file: IO[bytes], name: str, form: FileFormat) -> Iterator[RecordReader]:
    """Lend a reader of an unpacked file; raises InputError if the file is of another kind."""
    if form.encoding is not None:
        file = transcoded(file, form.encoding)
    check_first_bytes(file, name, form.kind)
    if form.kind is Kind.JSONL:
        yield JsonReader(file)
    elif form.kind is not Kind.PARQUET:
        yield CsvReader(file, form)
    elif file.seekable():
        yield ParquetReader(file)
    else:  # the end of a Parquet file says where its columns are
        with tempfile.TemporaryFile(prefix="textsim-") as spool:
            with in_temporary_folder():
                shutil.copyfileobj(file, spool, 2**20)
                spool.flush()
            yield ParquetReader(spool)


_MOST_SUGGESTIONS = 100
"""The most members that are kept as suggestions for a misspelt name."""


class RecordColumns(NamedTuple):
    text: str
    key: str = "id"
    """The key, for reports."""
    value: str | None = None
    """The value to compare records by, or to split them by."""
    key_needed: bool = False
    scope: Sequence[str] = ()
    """The scope, of one column or several, if records of different scopes are not compared."""
    appended: Values | None = None
    """New columns of the records that are written, with an example of their values."""
    value_option: str = "--keep"
    """The option that names the column of the value."""

    def expect_new(self, names: Container[str], noun: str) -> None:
        if taken := [name for name in self.appended or () if name in names]:
            raise InputError(
                f'there is a {noun} "{taken[0]}" already, and --annotate adds one; rename it first'
            )

    def wanted(self, columns: list[str]) -> Names:
        key = self.key if self.key_needed or self.key in columns else None
        by_option = {"--text": self.text, "--key": key, self.value_option: self.value}
        names = [(option, name) for option, name in by_option.items() if name is not None]
        return [*names, *(("--scope", name) for name in self.scope)]


class Record(NamedTuple):
    text: str | None
    """None if the record cannot be compared."""
    key: str | None
    value: Any
    """The value to compare records by."""
    scope: str | None = None
    """None if records of all scopes are compared."""
    fault: Refusal | None = None
    """Its place, and why it cannot be compared."""


class RecordFile:
    """The records of a file; iterating raises InputError if the file cannot be read to its end."""

    path: str
    """The file, or a copy of standard input or of a pipe: it can be read again."""

    def __init__(self, name: str, columns: RecordColumns, form: FileFormat = BY_NAME) -> None:
        if name != STDIN and os.path.isdir(name):
            raise InputError(f"{shown_name(name)} is a folder; expected a file")
        self.name = name
        self.columns = columns
        self.kind = kind_of_records(name, form.kind)
        self._form = form._replace(kind=self.kind)
        self._output_kind = self.kind
        self._drops_faulty = False
        self._writer: RecordWriter | None = None
        self.path, self._spool = _spooled(name)
        self._state = self._stat()
        self._raw: IO[bytes] | None = None

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._spool is not None:
            self._spool.close()

    def __iter__(self) -> Iterator[Record]:
        with self.explained(), self.reader() as reader:
            if reader.columns is not None:
                self._prepare(reader, reader.columns)
            members = _Members(self.columns.wanted([]) if reader.columns is None else [])
            for number, _, record in reader:
                read = self._record(reader.unit, number, record)
                if self._writer is not None and (read.fault is None or not self._drops_faulty):
                    try:
                        self._survey(self._writer, record)
                    except InputError as error:
                        place = f"{reader.unit} {number}"
                        if not self._drops_faulty:
                            raise InputError(f"{place} {error}") from None
                        read = read._replace(text=None, fault=Refusal(place, str(error)))
                if reader.columns is None and isinstance(record, dict):
                    self.columns.expect_new(record, "member")
                if members.missing and not isinstance(record, InputError):
                    members.note(record)
                yield read
            members.check()
        self.check_unchanged()

    def convert(self, writer: RecordWriter, kind: Kind, drop_faulty: bool) -> None:
        """Let a writer of this kind see the records while they are read, and refuse one of them."""
        self._writer, self._output_kind, self._drops_faulty = writer, kind, drop_faulty

    def total_bytes(self) -> int:
        return self._state[0]

    @property
    def bytes_read(self) -> int:
        raw = self._raw
        return raw.tell() if raw is not None and not raw.closed else 0

    def check_unchanged(self) -> None:
        """Raise InputError if the file has changed since it was opened."""
        with self.explained():
            changed = self._stat() != self._state
        if changed:
            raise InputError(
                f"{shown_name(self.name)} changed while it was read; run the command again"
            )

    def _prepare(self, reader: RecordReader, columns: list[str]) -> None:
        """Check the columns of the file, and read the compared columns only, or all to convert."""
        self.columns.expect_new(columns, "column")
        reader.choose(self.columns.wanted(columns), read_all=self._writer is not None)
        if self._writer is not None:
            expect_distinct(columns)
            self._writer.add_columns(columns)

    def _record(self, unit: str, number: int, record: Values | InputError) -> Record:
        columns = self.columns
        if isinstance(record, InputError):
            return Record(None, None, None, fault=Refusal(f"{unit} {number}", str(record)))
        key = value_of(record, columns.key)
        if isinstance(key, bool | list | dict):
            key = json.dumps(key, ensure_ascii=False, default=str)  # as the file has it
        key = None if key is None else str(key)
        value = None if columns.value is None else value_of(record, columns.value)
        try:
            if key is not None and columns.key_needed:
                expect_decoded(key, columns.key)
            if isinstance(value, str):
                expect_decoded(value, str(columns.value))
            text = text_of(needed(record, columns.text, "--text"), columns.text)
            scope = scope_of(record, columns.scope) if columns.scope else None
            return Record(text, key, value, scope)
        except InputError as error:
            return Record(None, key, None, fault=Refusal(f"{unit} {number}", str(error)))

    def _survey(self, writer: RecordWriter, record: Values | InputError) -> None:
        """Show a record to the writer; raise InputError if it cannot be converted."""
        try:
            if isinstance(record, InputError):
                raise record
            writer.survey(record)
        except InputError as error:
            raise InputError(
                f"cannot be written as {RECORD_KINDS[self._output_kind].title}: "
                f"{error}; change the record, or write {RECORD_KINDS[self.kind].title}"
            ) from None

    def _stat(self) -> tuple[int, int, int]:
        status = os.stat(self.path)
        return status.st_size, status.st_mtime_ns, status.st_ino

    @contextmanager
    def explained(self) -> Iterator[None]:
        try:
            yield
        except DamagedFile as error:
            raise InputError(f"{shown_name(self.name)}: {error}") from error
        except OSError as error:
            if error.errno != errno.ENOSPC:  # a full disk is a fault of the output file
                error.filename = error.filename or self.name
            raise
        except InputError as error:
            if error.args and str(error).startswith(shown_name(self.name)):
                raise
            raise InputError(f"{shown_name(self.name)}: {error}") from error

    @contextmanager
    def reader(self) -> Iterator[RecordReader]:
        with open(self.path, "rb") as raw:
            self._raw = raw
            with read_records(unpacked(raw, self.name), self.name, self._form) as reader:
                yield reader


class _Members:
    """The members of records of JSON, as far as a member that the user named is missing."""

    def __init__(self, names: Names) -> None:
        self.missing = names
        """The members that no record had so far."""
        self._present: dict[str, None] = {}

    def note(self, record: Values) -> None:
        self.missing = [named for named in self.missing if value_of(record, named[1], self) is self]
        if len(self._present) < _MOST_SUGGESTIONS:
            self._present |= dict.fromkeys(record)

    def check(self) -> None:
        """Raise InputError if there were records, and none of them had a member that the user named."""
        if self._present:
            expect_names(list(self._present), self.missing, "member")


def _spooled(name: str) -> tuple[str, Any]:
    if name != STDIN and not is_special(name):
        return name, None
    # A file without a name vanishes with the process, also if that is killed; the caller closes it.
    has_numbers = os.path.isdir("/proc/self/fd")
    make: Any = tempfile.TemporaryFile if has_numbers else tempfile.NamedTemporaryFile
    spool = make(prefix="textsim-")
    with (
        nullcontext(sys.stdin.buffer) if name == STDIN else open(name, "rb") as file,
        in_temporary_folder(),
    ):
        shutil.copyfileobj(file, spool, 2**20)
        spool.flush()
    return f"/proc/self/fd/{spool.fileno()}" if has_numbers else spool.name, spool
