"""Files of records that are read twice: once to compare the texts, once to copy the kept records.

JSON lines and CSV are copied byte for byte, Parquet row by row. A pipe is copied to a temporary file.
"""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import sys
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.errors import InputError
from textsim_db.files.file_kinds import STDIN, reason, shown_name
from textsim_db.files.record_reader import expect_names
from textsim_db.files.replace_file import is_special, replacing
from textsim_db.files.text_lines import unpacked

Mask = npt.NDArray[np.bool_]


class Columns(NamedTuple):
    """The members or columns to read: text, key, and a value to compare records by.

    A file may lack the key unless key_needed is true.
    """

    text: str
    key: str = "id"
    value: str | None = None
    key_needed: bool = False

    def wanted(self, names: list[str]) -> dict[str, str]:
        """Return the columns to read, by option; raise InputError if a column is not among the names."""
        wanted = {"--text": self.text}
        if self.key_needed or self.key in names:
            wanted["--key"] = self.key
        if self.value is not None:
            wanted["--keep"] = self.value
        expect_names(names, wanted, "column")
        return wanted


class Record(NamedTuple):
    """The values of a record. If it cannot be compared, text is None and fault is the reason."""

    text: str | None
    key: str | None
    value: Any
    fault: str | None = None


class Records(ABC):
    """The records of a file; iterating raises InputError if the file cannot be read to its end."""

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
        """Bytes of the file that this pass has read so far."""
        raw = self._raw
        return raw.tell() if raw is not None and not raw.closed else 0

    def check_unchanged(self) -> None:
        """Raise InputError if the file has changed since it was opened."""
        with self._explained():
            changed = self._stat() != self._state
        if changed:
            raise InputError(
                f"{shown_name(self.name)} changed while it was read; run the command again"
            )

    def copy(self, kept: Mask, output: str) -> None:
        """Write the kept records to a file, whole or not at all; "-" is standard output.

        kept has the shape (records,). Raises InputError if the file has changed since it was read, and
        OSError if the output cannot be written.
        """
        self.check_unchanged()
        with replacing(output) as file, self._explained():
            self._copy(kept, file, output.lower().endswith(".gz"))
            self.check_unchanged()

    def _stat(self) -> tuple[int, int, int]:
        status = os.stat(self._path)
        return status.st_size, status.st_mtime_ns, status.st_ino

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{shown_name(self.name)}: {reason(error)}") from error
        except OSError as error:
            if error.errno != errno.ENOSPC:  # a full disk is a fault of the output file
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


def _spooled(name: str) -> tuple[str, Any]:
    if name != STDIN and not is_special(name):
        return name, None
    spool = tempfile.NamedTemporaryFile(prefix="textsim-")  # noqa: SIM115 - closed by the caller
    with nullcontext(sys.stdin.buffer) if name == STDIN else open(name, "rb") as file:
        shutil.copyfileobj(file, spool, 2**20)
    spool.flush()
    return spool.name, spool
