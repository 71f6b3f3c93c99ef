"""Lines of files: unpacked if the file is gzip, limited in length, and decoded from UTF-8."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from typing import IO, Any

from textsim_db.errors import InputError
from textsim_db.text.storable_text import MAX_BYTES

MAX_LINE = 2 * MAX_BYTES  # escapes make JSON longer than the text it holds
_PIECE = 2**20
_GZIP = b"\x1f\x8b"


def unpacked(raw: IO[bytes], name: str) -> IO[bytes]:
    """Return the unpacked file if its name or its first bytes say gzip, else the file."""
    packed = name.lower().endswith(".gz") or _begins_as_gzip(raw)
    return io.BufferedReader(_Unpacked(raw), 2**17) if packed else raw


class _Unpacked(io.RawIOBase):
    """The content of a gzip file. All bytes before damage are returned before the error is raised."""

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
    """Yield the number and the bytes of each line, or None for a line that is too long.

    The byte order mark is removed.
    """
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


def decoded(data: bytes) -> str:
    """Return decoded UTF-8; raise InputError with the place of the first invalid byte."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}; convert it to UTF-8"
        ) from error
