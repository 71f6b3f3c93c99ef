"""Types and checks that the readers and writers of all kinds of files share."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
import sys
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from textsim_db.errors import InputError, suggestion
from textsim_db.files import file_kinds
from textsim_db.files.file_kinds import STDIN, expect_decoded
from textsim_db.results.shown_values import shown
from textsim_db.text.storable import join_key

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]


Values = dict[str, Any]
"""The values of a record by the names of its columns or members, as JSON has them."""


Names = Sequence[tuple[str, str]]
"""Names of columns or members to read, each with the option that names it."""


Appended = Mapping[str, Sequence[Any]]
"""The values that are appended to records, by the names of new columns; empty to append nothing."""


class KeptRecords(NamedTuple):
    """The records of a file that are written."""

    reader: Any
    """Its reader: a RecordReader."""
    kept: Mask
    """Which of its records are kept."""
    appended: Appended
    example: Values
    """An example of the values that are appended."""

    def rows(self, records: Iterable[Any]) -> Iterator[tuple[Any, Values]]:
        """Yield the kept ones of the records with the values to append."""
        rows = zip(*self.appended.values(), strict=True) if self.appended else repeat(())
        for record, is_kept, row in zip(records, self.kept.tolist(), rows, strict=False):
            if is_kept:
                yield record, dict(zip(self.appended, row, strict=True))


class RecordReader(ABC):
    """The records of a file. Iterating once yields a number, the bytes and the values by name.

    The bytes are None if the record is too long, or if the format has no bytes for a single record. An
    InputError stands in the place of the values of a malformed record.
    """

    unit = "line"
    """The unit that the number counts."""
    columns: list[str] | None = None
    """The names of the columns; None if each record has its own names."""

    @abstractmethod
    def __init__(self, file: IO[bytes]) -> None: ...

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[int, bytes | None, Values | InputError]]: ...

    def choose(self, names: Names, read_all: bool = False) -> None:
        """Read only these columns, or all; raises InputError if one is missing or comes twice."""
        if self.columns is not None:
            expect_names(self.columns, names, "column")

    def layout(self) -> object:
        """Return what files have in common if their records can be copied into one file."""
        return self.columns

    @abstractmethod
    def copy(self, first: KeptRecords, output: IO[bytes], others: Iterator[KeptRecords]) -> None:
        """Write the kept records to a file of the same kind, as they are; then those of the others."""


class LineReader(RecordReader):
    """Records on lines, which are copied byte for byte. raw_header: the bytes before the records."""

    raw_header = b""

    def raw_records(self) -> Iterator[tuple[int, bytes | None]]:
        return ((number, raw) for number, raw, _ in self)

    @abstractmethod
    def extended(self, raw: bytes, appended: Values) -> bytes:
        """Return the bytes of a record, or of the header, with more values at its end."""

    def copy(self, first: KeptRecords, output: IO[bytes], others: Iterator[KeptRecords]) -> None:
        """Write the kept records to a file, byte for byte, after the header of the first file."""
        header = self.raw_header
        if first.appended:
            header = self.extended(header, {name: name for name in first.appended})
        output.write(header)
        is_ended = header.endswith((b"\n", b"\r")) or not header
        for kept in chain([first], others):
            for (number, raw), appended in kept.rows(kept.reader.raw_records()):
                if raw is None:
                    raise InputError(f"line {number} is longer than {file_kinds.MAX_LINE:,} bytes")
                if appended:
                    raw = kept.reader.extended(raw, appended)
                output.write(raw if is_ended else b"\n" + raw)
                is_ended = raw.endswith((b"\n", b"\r"))


_MISSING = object()


def value_of(values: Values, name: str, default: Any = None) -> Any:
    """Return a value by its name; if there is none, dots lead into objects and, by numbers, arrays."""
    if name in values:
        return values[name]
    value: Any = values
    for step in name.split("."):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (LookupError, TypeError, ValueError):
            return default
    return value


def needed(values: Values, name: str, option: str) -> Any:
    """Return a value by its name; raise InputError without it. option: names the member."""
    value = value_of(values, name, _MISSING)
    if value is _MISSING:
        expect_names(list(values), [(option, name)], "member")
    return value


def key_of(value: Any, name: str) -> str:
    """Return a value as a key; raise InputError unless it is a string or a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f'"{name}" is {type_name(value)}; expected a string or a whole number')
    if isinstance(value, str):
        expect_decoded(value, name)
    return str(value)


def scope_of(values: Values, names: Sequence[str]) -> str | None:
    """Return the scope of a record, joined as keys are; None if it has none."""
    if not names:
        return None
    return join_key(*(key_of(needed(values, name, "--scope"), name) for name in names))


def text_of(value: Any, name: str) -> str:
    """Return a value as a text; raise InputError unless it is a string."""
    if isinstance(value, str):
        expect_decoded(value, name)
        return value
    way_out = ""
    if isinstance(value, list | dict):
        inner = "0" if isinstance(value, list) else next(iter(value), "NAME")
        way_out = f": name a part of it, such as {name}.{inner}"
    raise InputError(f'"{shown(name)}" is {type_name(value)}; expected a string{shown(way_out)}')


def type_name(value: Any) -> str:
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    names = {list: "an array", dict: "an object", str: "a string", int: "a number"}
    return names.get(type(value), f"of type {type(value).__name__}")


def expect_names(present: list[str], names: Names, noun: str) -> None:
    for option, name in names:
        count = present.count(name)
        if count == 1:
            continue
        first = ", ".join(f'"{shown(other[:40])}"' for other in present[:8]) or "none"
        is_option = option.startswith("-")
        rest = ", ..." if len(present) > 8 else ""
        if count:
            raise InputError(
                f'{count} {noun}s are named "{shown(name)}"; found {first}{rest}: rename all but one'
                + (f", or name another with {option}" if is_option else "")
            )
        other = f"name another with {option}{suggestion(name, present)}"
        advice = other if is_option else f"rename the {noun}"
        raise InputError(f'there is no {noun} "{shown(name)}"; found {first}{rest}: {advice}')


def expect_distinct(columns: list[str]) -> None:
    """Raise InputError if two columns have one name: such records have no form in another format."""
    for name, count in Counter(columns).items():
        if count > 1:
            raise InputError(
                f'{count} columns are named "{shown(name)}"; rename all but one, or keep the format'
            )


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
    expect_decoded(text, name)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f'"{shown(name)}" has a lone surrogate U+{ord(text[error.start]):04X} at character '
            f"{error.start + 1}"
        ) from None


@contextmanager
def replacing(output: str) -> Iterator[IO[bytes]]:
    """Open a file for writing that gets its name only when it is complete; "-" is standard output.

    If the name is a symbolic link, its target is replaced. Devices and pipes are written directly.
    """
    try:
        with _written(output) as file:
            yield file
    except OSError as error:
        # A full disk's error names no file.
        error.filename = error.filename or ("standard output" if output == STDIN else output)
        raise


@contextmanager
def in_temporary_folder() -> Iterator[None]:
    """Name the folder in the errors of temporary files, which have no name, such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            error.filename = tempfile.gettempdir()
            error.add_note("it has temporary files; TMPDIR names another folder")
        raise


@contextmanager
def _written(output: str) -> Iterator[IO[bytes]]:
    if output == STDIN:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if is_special(output):
        with open(output, "wb") as file:
            yield file
        return
    output = os.path.realpath(output)
    folder, name = os.path.split(output)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}")
    try:
        with open(_created(temporary), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not os.path.exists(temporary):
                descriptor = file.fileno()
                os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=descriptor)
        os.chmod(temporary, _mode_of(output))
        os.replace(temporary, output)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _created(path: str) -> int:
    """Create a file, if possible one without a name, so that a process that is killed leaves none."""
    with suppress(AttributeError, OSError):  # not every system and file system can
        if os.path.isdir("/proc/self/fd"):
            return os.open(os.path.dirname(path), os.O_TMPFILE | os.O_WRONLY, 0o600)
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)


def is_special(name: str) -> bool:
    """Say whether a file with this name exists and is not a regular file, such as a pipe."""
    try:
        return not stat.S_ISREG(os.stat(name).st_mode)
    except FileNotFoundError:
        return False


def _mode_of(output: str) -> int:
    with suppress(OSError):
        return os.stat(output).st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
