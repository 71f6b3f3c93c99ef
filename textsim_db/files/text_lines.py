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
_CONVERT = "not UTF-8: convert it, for example with iconv -f {0} -t UTF-8 FILE > NEW"
_UNPACK = "compressed with {0}; only gzip files are unpacked: unpack it first, with {1}"
_PARQUET = b"PAR1"
_SIGNATURES = {
    b"\xff\xfe\0\0": "UTF-32, " + _CONVERT.format("UTF-32"),
    b"\0\0\xfe\xff": "UTF-32, " + _CONVERT.format("UTF-32"),
    b"\xff\xfe": "UTF-16, " + _CONVERT.format("UTF-16"),
    b"\xfe\xff": "UTF-16, " + _CONVERT.format("UTF-16"),
    _PARQUET: "Parquet; give it a name that ends in .parquet, or --kind parquet",
    b"\x28\xb5\x2f\xfd": _UNPACK.format("Zstandard", "zstd -d"),
    b"\xfd7zXZ\0": _UNPACK.format("xz", "xz -d"),
    b"BZh91AY&SY": _UNPACK.format("bzip2", "bzip2 -d"),
    b"PK\x03\x04": "a ZIP archive, such as an Excel workbook; unpack it, or save it as CSV in UTF-8",
}
"""Descriptions of files by their first bytes. The first signature that fits counts."""


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


def check_encoding(file: IO[bytes], is_parquet: bool = False) -> None:
    """Raise InputError if the first bytes show that a file is not UTF-8, or of another kind."""
    first = file.peek(10) if isinstance(file, io.BufferedReader) else b""
    for signature, description in _SIGNATURES.items():
        if first.startswith(signature) and not (is_parquet and signature == _PARQUET):
            raise InputError(f"the file is {description}")
    # Without a byte order mark, the NUL bytes of ASCII characters tell UTF-16.
    for name, nul, other in (("UTF-16LE", 1, 0), ("UTF-16BE", 0, 1)):
        halves = first[nul:8:2], first[other:8:2]
        if len(first) >= 4 and not any(halves[0]) and all(halves[1]):
            raise InputError(f"the file is {name}, {_CONVERT.format(name)}")


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
