"""Files of records that are read twice: once to compare the texts, once to copy what stays; pure.

JSON lines and CSV are copied byte for byte, Parquet row by row. A pipe is kept in a temporary file.
"""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import stat
import sys
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.errors import InputError
from textsim_db.files.record_formats import (
    STDIN,
    CsvRecords,
    expect_names,
    json_object,
    json_text,
    kind_of,
    lines,
    reason,
    shown_name,
    unpacked,
)
from textsim_db.text.utf8 import MAX_BYTES

Mask = npt.NDArray[np.bool_]

_PARQUET_BYTES = 64 * 1024 * 1024


class Columns(NamedTuple):
    """The members or columns of a record that matter; without key_needed the key may be missing."""

    text: str
    key: str = "id"
    value: str | None = None
    key_needed: bool = False

    def of(self, names: list[str]) -> dict[str, str]:
        """Return those to look for, by option; raises InputError where one is not among the names."""
        wanted = {"--text": self.text}
        if self.key_needed or self.key in names:
            wanted["--key"] = self.key
        if self.value is not None:
            wanted["--keep"] = self.value
        expect_names(names, wanted, "column")
        return wanted


class Record(NamedTuple):
    """What a record says. text is None where it cannot be compared; fault says why."""

    text: str | None
    key: str | None
    value: Any
    fault: str | None = None


class Records(ABC):
    """The records of one file; raises InputError where it cannot be read to its end."""

    def __init__(self, name: str, columns: Columns) -> None:
        self.name = name
        self.columns = columns
        self._path, self._spool = _spooled(name)
        self._state = self._stat()
        self._raw: IO[bytes] | None = None

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._spool is not None:
            self._spool.close()

    def __iter__(self) -> Iterator[Record]:
        with self._explained():
            yield from self._records()
        self.check_unchanged()

    def total_bytes(self) -> int:
        """Return the size of the file."""
        return self._state[0]

    @property
    def bytes_read(self) -> int:
        """Bytes of the file that have been read so far in this pass."""
        raw = self._raw
        return raw.tell() if raw is not None and not raw.closed else 0

    def check_unchanged(self) -> None:
        """Raise InputError where the file is not what it was when it was opened."""
        with self._explained():
            changed = self._stat() != self._state
        if changed:
            raise InputError(f"{shown_name(self.name)} was changed while it was read")

    def copy(self, kept: Mask, output: str) -> None:
        """Write the records that are kept to a file, which is there whole or not at all.

        kept has the shape (records,). "-" is standard output. Raises InputError where the file has
        changed since it was read, and OSError.
        """
        self.check_unchanged()
        with replacing(output) as file, self._explained():
            self._copy(kept, file, output.lower().endswith(".gz"))
            self.check_unchanged()

    def _stat(self) -> tuple[int, int, int]:
        found = os.stat(self._path)
        return found.st_size, found.st_mtime_ns, found.st_ino

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{shown_name(self.name)}: {reason(error)}") from error
        except OSError as error:
            if error.errno != errno.ENOSPC:  # that is the file that is written
                error.filename = error.filename or self.name
            raise
        except InputError as error:
            if error.args and str(error).startswith(shown_name(self.name)):
                raise
            raise InputError(f"{shown_name(self.name)}: {error}") from error

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        with open(self._path, "rb") as raw:
            self._raw = raw
            yield unpacked(raw, self.name)

    @abstractmethod
    def _records(self) -> Iterator[Record]: ...

    @abstractmethod
    def _copy(self, kept: Mask, output: IO[bytes], packed: bool) -> None: ...


class _Lines(Records):
    """Records that are copied as the bytes they are."""

    @abstractmethod
    def _pieces(self, file: IO[bytes]) -> Iterator[bytes | tuple[bytes, Any]]:
        """Yield what stands before the records as bytes, then each record with its bytes."""

    @abstractmethod
    def _record(self, content: Any) -> Record: ...

    def _records(self) -> Iterator[Record]:
        with self._opened() as file:
            for piece in self._pieces(file):
                if isinstance(piece, tuple):
                    yield self._record(piece[1])

    def _copy(self, kept: Mask, output: IO[bytes], packed: bool) -> None:
        target: Any = gzip.GzipFile("", "wb", 6, output, mtime=0) if packed else output
        flags = iter(kept.tolist())
        ended = True
        with self._opened() as file:
            for piece in self._pieces(file):
                if isinstance(piece, tuple) and not next(flags):
                    continue
                raw: bytes = piece[0] if isinstance(piece, tuple) else piece
                target.write(raw if ended else b"\n" + raw)
                ended = raw.endswith((b"\n", b"\r"))
        if packed:
            target.close()


class _JsonLines(_Lines):
    def _pieces(self, file: IO[bytes]) -> Iterator[bytes | tuple[bytes, Any]]:
        for number, line in lines(file):
            if line is None:
                raise InputError(f"line {number} is too long to be read")
            if line.strip():
                yield line, (number, line)

    def _record(self, content: Any) -> Record:
        number, line = content
        columns = self.columns
        key: str | None = None
        try:
            record = json_object(line)
            if record.get(columns.key) is not None:
                key = str(record[columns.key])
            value = None if columns.value is None else record.get(columns.value)
            expect_names(list(record), {"--text": columns.text}, "member")
            return Record(json_text(record, columns.text), key, value)
        except InputError as error:
            return Record(None, key, None, f"line {number}: {error}")


class _Csv(_Lines):
    def _pieces(self, file: IO[bytes]) -> Iterator[bytes | tuple[bytes, Any]]:
        records = CsvRecords(file)
        names = self.columns.of(records.header).values()
        self._places = {name: records.header.index(name) for name in names}
        yield records.raw_header
        for number, raw, record in records:
            yield raw, (number, record)

    def _record(self, content: Any) -> Record:
        number, record = content
        if isinstance(record, InputError):
            return Record(None, None, None, f"line {number}: {record}")
        columns = self.columns
        return Record(
            record[self._places[columns.text]],
            record[self._places[columns.key]] if columns.key in self._places else None,
            None if columns.value is None else record[self._places[columns.value]],
        )


class _Parquet(Records):
    """Parquet by pyarrow, which the extra of that name installs.

    A dictionary of long texts stays one: written out, a few kilobytes may be terabytes.
    """

    @contextmanager
    def _file(self) -> Iterator[Any]:
        import pyarrow

        parquet = _pyarrow_parquet()
        try:
            with parquet.ParquetFile(self._path) as file:
                schema = file.schema_arrow
            texts = [f.name for f in schema if f.type in (pyarrow.string(), pyarrow.binary())]
            with parquet.ParquetFile(self._path, read_dictionary=texts) as file:
                yield file, schema
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise InputError(f"damaged, or not Parquet: {' '.join(str(error).split())}") from error

    def _records(self) -> Iterator[Record]:
        with self._file() as (file, schema):
            names = sorted(set(self.columns.of(schema.names).values()))
            number = 0
            for batch in file.iter_batches(_rows_at_once(file), columns=names):
                for i in range(len(batch)):
                    number += 1
                    yield self._record(number, {name: batch.column(name)[i] for name in names})

    def _record(self, number: int, row: dict[str, Any]) -> Record:
        columns = self.columns
        key: str | None = None
        try:
            found = _value(row[columns.key], columns.key) if columns.key in row else None
            key = None if found is None else str(found)
            value = None if columns.value is None else _value(row[columns.value], columns.value)
            text = _value(row[columns.text], columns.text)
        except InputError as error:
            return Record(None, key, None, f"row {number}: {error}")
        if not isinstance(text, str):
            kind = "null" if text is None else type(text).__name__
            fault = f'row {number}: "{columns.text}" is {kind}; a string was expected'
            return Record(None, key, value, fault)
        return Record(text, key, value)

    def _copy(self, kept: Mask, output: IO[bytes], packed: bool) -> None:
        import pyarrow

        parquet = _pyarrow_parquet()
        at = 0
        with self._file() as (file, schema), parquet.ParquetWriter(output, schema) as writer:
            for batch in file.iter_batches(_rows_at_once(file)):
                some = pyarrow.array(kept[at : at + len(batch)])
                at += len(batch)
                for part in _parts(batch.filter(some)):
                    writer.write_batch(part.cast(schema))


def _rows_at_once(file: Any) -> int:
    """Return how many rows of a Parquet file to read together, some tens of megabytes."""
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    largest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return min(max(_PARQUET_BYTES // max(largest, 1), 1), 10_000)


def _value(scalar: Any, name: str) -> Any:
    """Return a value of a Parquet column; raises InputError where it is none, or too long."""
    import pyarrow

    if isinstance(scalar, pyarrow.DictionaryScalar) and scalar.is_valid:
        scalar = scalar.value
    if isinstance(scalar, pyarrow.StringScalar | pyarrow.LargeStringScalar) and scalar.is_valid:
        size = scalar.as_buffer().size
        if size > MAX_BYTES:
            raise InputError(f'"{name}" is {size:,} bytes long; at most {MAX_BYTES:,} are possible')
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        raise InputError(f'"{name}" is not UTF-8: {error.reason}') from error
    except (ValueError, OverflowError) as error:  # a date that Python does not have
        raise InputError(f'"{name}" cannot be read: {error}') from error


def _is_dictionary_of_texts(kind: Any) -> bool:
    import pyarrow

    return pyarrow.types.is_dictionary(kind) and kind.value_type in (
        pyarrow.string(),
        pyarrow.binary(),
        pyarrow.large_string(),
        pyarrow.large_binary(),
    )


def _parts(batch: Any) -> Iterator[Any]:
    """Cut a batch so that no part, its dictionaries written out, is much longer than some rows."""
    from pyarrow import compute

    sizes = np.zeros(len(batch), np.int64)
    for column in batch.columns:
        if _is_dictionary_of_texts(column.type):
            lengths = compute.binary_length(column.dictionary).take(column.indices)
            sizes += compute.fill_null(lengths, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    bounds = np.flatnonzero(np.diff(np.cumsum(sizes) // _PARQUET_BYTES, prepend=0))
    for start, end in pairwise([0, *bounds.tolist(), len(batch)]):
        if end > start:
            yield batch.slice(start, end - start)


def open_records(name: str, columns: Columns, kind: str = "auto") -> Records:
    """Open a file of records; raises InputError, and OSError where there is none.

    kind: jsonl, csv or parquet; auto goes by the name. Standard input, "-", is JSON lines unless
    kind says otherwise, and is kept in a temporary file.
    """
    if name != STDIN and os.path.isdir(name):
        raise InputError(f"{name} is a folder; a file was expected")
    if kind == "auto":
        parquet = name.lower().endswith((".parquet", ".pq"))
        kind = "parquet" if parquet else str(kind_of(name))
    kinds: dict[str, type[Records]] = {"jsonl": _JsonLines, "csv": _Csv, "parquet": _Parquet}
    if kind not in kinds:
        raise InputError(
            f"{shown_name(name)}: expected a file that ends in .jsonl, .csv (each also with .gz) or "
            ".parquet; for others say which with --kind"
        )
    if kind == "parquet":
        _pyarrow_parquet()
    return kinds[kind](name, columns)


def _pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "Parquet needs pyarrow, which is not installed: pip install 'textsim-db[parquet]'"
        ) from error
    return pyarrow.parquet


def _spooled(name: str) -> tuple[str, Any]:
    if name != STDIN and not _is_special(name):
        return name, None
    spool = tempfile.NamedTemporaryFile(prefix="textsim-")  # noqa: SIM115 - closed by the caller
    with nullcontext(sys.stdin.buffer) if name == STDIN else open(name, "rb") as file:
        shutil.copyfileobj(file, spool, 2**20)
    spool.flush()
    return spool.name, spool


@contextmanager
def replacing(output: str) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its name when it is whole; "-" is standard output.

    A link stays one, and what it leads to is replaced. Devices and pipes are written to as they are.
    """
    try:
        with _written(output) as file:
            yield file
    except OSError as error:
        error.filename = error.filename or output  # a full disk does not say which file it was
        raise


@contextmanager
def _written(output: str) -> Iterator[IO[bytes]]:
    if output == STDIN:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if _is_special(output):
        with open(output, "wb") as file:
            yield file
        return
    output = os.path.realpath(output)
    folder, name = os.path.split(output)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode_of(output))
        os.replace(temporary, output)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _is_special(name: str) -> bool:
    """Say whether there is something of that name that is no regular file, such as a pipe."""
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
