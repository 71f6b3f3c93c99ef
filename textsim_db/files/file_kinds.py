"""The kinds of files by name and first bytes, and the reasons why a file cannot be read."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from importlib import import_module
from typing import IO, Any, NamedTuple

from textsim_db.errors import InputError, install_extra, on_one_line
from textsim_db.results.shown_values import shown
from textsim_db.text.storable import MAX_BYTES

MAX_LINE = 2 * MAX_BYTES  # escapes make JSON longer than the text it holds
_PIECE = 2**20


class Packing(NamedTuple):
    title: str
    command: str
    """The command that packs and unpacks."""
    first_bytes: bytes
    """A pattern of the first bytes."""
    opened: Callable[[IO[bytes]], Any]
    """Returns the unpacked content of a file."""


def zstandard() -> Callable[[IO[bytes]], Any]:
    """Return what unpacks Zstandard; raise InputError if nothing that does is installed."""
    with suppress(ImportError):
        unpack: Callable[[IO[bytes]], Any] = import_module("compression.zstd").ZstdFile
        return unpack  # since Python 3.14
    try:
        pyarrow = import_module("pyarrow")
    except ImportError as error:
        raise InputError(
            f"the file is compressed with Zstandard, which needs PyArrow: {install_extra('parquet')}; "
            "or unpack it first, with zstd -d"
        ) from error
    return lambda raw: pyarrow.CompressedInputStream(raw, "zstd")


PACKINGS = {
    ".gz": Packing("gzip", "gzip", rb"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    ".bz2": Packing(
        "bzip2", "bzip2", rb"BZh[1-9]1AY&SY", lambda raw: import_module("bz2").BZ2File(raw)
    ),
    ".xz": Packing("xz", "xz", rb"\xfd7zXZ\0", lambda raw: import_module("lzma").LZMAFile(raw)),
    ".zst": Packing("Zstandard", "zstd", rb"\x28\xb5\x2f\xfd", lambda raw: zstandard()(raw)),
}
"""How files are packed, by the endings of their names; only gzip is written."""


def packing_of(name: str) -> Packing | None:
    return PACKINGS.get(os.path.splitext(name)[1].lower())


def unpacked(raw: IO[bytes], name: str) -> IO[bytes]:
    """Return the unpacked file if its name or its first bytes say that it is packed, else the file."""
    first = raw.peek(10) if isinstance(raw, io.BufferedReader) else b""
    by_bytes = (each for each in PACKINGS.values() if re.match(each.first_bytes, first))
    packing = next(by_bytes, None) or packing_of(name)
    return io.BufferedReader(_Unpacked(raw, packing), 2**17) if packing else raw


class DamagedFile(OSError):
    """The packed content of a file ends too early, or is damaged."""


class _Unpacked(io.RawIOBase):
    """The content of a packed file. It returns the bytes before damage, and then raises the error."""

    def __init__(self, raw: IO[bytes], packing: Packing) -> None:
        self._file = packing.opened(raw)
        self._title = packing.title

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read1(len(buffer))
        except Exception as error:  # each library has its own
            if getattr(error, "errno", None):
                raise
            if isinstance(error, EOFError) or "Truncated" in str(error):
                reason = (
                    f"the {self._title} file ends too early; only the part before its end was read; "
                    "copy the file again"
                )
            else:
                reason = f"no {self._title} file, or damaged: {error}"
            raise DamagedFile(reason) from error
        buffer[: len(data)] = data
        return len(data)


def lines(file: IO[bytes], with_mark: bool = False) -> Iterator[tuple[int, bytes | None]]:
    """Yield the number and the bytes of each line, or None for a line that is too long.

    with_mark: whether the first line has the byte order mark, if the file has one.
    """
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if number == 1 and not with_mark:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) <= MAX_LINE:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_PIECE)
        yield number, None


_OF_ENCODING = (
    "give the encoding of the file with --encoding, such as cp1252, or convert it to UTF-8"
)


def decoded(data: bytes, remedy: str = _OF_ENCODING) -> str:
    """Return decoded UTF-8; raise InputError with the place of the first invalid byte."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}; {remedy}"
        ) from error


def partly_decoded(data: bytes) -> str:
    """Return decoded UTF-8 in which a lone surrogate stands for each invalid byte (PEP 383).

    So a faulty byte in one column does not stop those who read another one.
    """
    return data.decode("utf-8", "surrogateescape")


def expect_decoded(text: str, name: str) -> None:
    """Raise InputError if a byte of a partly decoded text, found under this name, was not UTF-8."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) - _ESCAPED_BYTE
        if 0x80 <= byte <= 0xFF:
            raise InputError(
                f'"{shown(name)}" is not UTF-8: byte 0x{byte:02x} at character {error.start + 1}; '
                f"{_OF_ENCODING}"
            ) from None


_ESCAPED_BYTE = 0xDC00
"""The lone surrogate of byte 0; only those from 0x80 on occur."""


def transcoded(file: IO[bytes], encoding: str) -> IO[bytes]:
    """Return a file of UTF-8 with the content of a file in another encoding."""
    return io.BufferedReader(_Transcoded(file, encoding), 2**17)


class _Transcoded(io.RawIOBase):
    """A byte that the encoding does not have stays as it is, and is a fault of its record."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._file = file
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._waiting:
            data = self._file.read(_PIECE)
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeError as error:
                raise DamagedFile(f"not {self._encoding}: {on_one_line(error)}") from error
            self._waiting = text.encode("utf-8", "surrogateescape")
            if not data:
                break
        size = min(len(buffer), len(self._waiting))
        buffer[:size] = self._waiting[:size]
        self._waiting = self._waiting[size:]
        return size


STDIN = "-"


class Kind(StrEnum):
    """How a file holds documents; auto chooses by the file's name."""

    AUTO = "auto"
    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    TEXT = "text"


class Quote(StrEnum):
    """How a quotation mark stands in a quoted value of CSV and TSV; none: they are part of the text.

    auto is doubled, except that lines which look like records of their own are not joined to one.
    """

    AUTO = "auto"
    DOUBLED = "doubled"
    BACKSLASH = "backslash"
    NONE = "none"


class FileFormat(NamedTuple):
    """How files of records are read, as far as their names and their first lines do not say it."""

    kind: Kind = Kind.AUTO
    separator: str | None = None
    """The character between two columns of CSV and TSV; None: the header shows it."""
    quote: Quote = Quote.AUTO
    encoding: str | None = None
    """None: UTF-8."""


BY_NAME = FileFormat()
"""The format is that of the file's name."""


class RecordKind(NamedTuple):
    """A kind of file with records; record_files.py has its reader and its writer."""

    title: str
    endings: tuple[str, ...]
    """The endings of file names, also with an ending of PACKINGS; the first is usual."""
    separator: str = ""
    """The character between two columns of a line, if lines have columns."""


RECORD_KINDS = {
    Kind.JSONL: RecordKind("JSON lines", ("jsonl", "ndjson", "json")),
    Kind.CSV: RecordKind("CSV", ("csv",), ","),
    Kind.TSV: RecordKind("TSV", ("tsv",), "\t"),
    Kind.PARQUET: RecordKind("Parquet", ("parquet", "pq")),
}
_BY_ENDING = {ending: kind for kind in RECORD_KINDS for ending in RECORD_KINDS[kind].endings}


def alternatives(names: Iterable[str]) -> str:
    """Return names as a list in a sentence: "a, b or c"."""
    *first, last = names
    return f"{', '.join(first)} or {last}"


_ENDINGS = alternatives(f".{kind.endings[0]}" for kind in RECORD_KINDS.values())
_ENDINGS += ", each also with .gz"

_CONVERT = (
    "{0}, not UTF-8: give --encoding {0}, or convert it: iconv -f {0} -t UTF-8 {{file}} > NEW"
)
_OTHERS = {
    rb"\xff\xfe\0\0|\0\0\xfe\xff": _CONVERT.format("UTF-32"),
    rb"\xff\xfe|\xfe\xff": _CONVERT.format("UTF-16"),
    rb"(?:[^\0]\0){2}": _CONVERT.format("UTF-16LE"),  # ASCII characters without a byte order mark
    rb"(?:\0[^\0]){2}": _CONVERT.format("UTF-16BE"),
    rb"\x04\x22\x4d\x18": "compressed with LZ4; unpack it first, with lz4 -d {file}",
    rb"PK\x03\x04": "a ZIP archive, such as an Excel workbook; unpack it, or save it as CSV in UTF-8",
    rb"\xd0\xcf\x11\xe0": "an old Office file, such as an Excel workbook; save it as CSV in UTF-8",
    rb"%PDF-": "PDF; make a text of it, for example with pdftotext {file} NEW.txt",
    rb"ARROW1": "Arrow; write it as Parquet",
    rb"SQLite format 3\0": "a database of SQLite; write the table as CSV",
}
"""Descriptions of files that no command reads, by a pattern of their first bytes."""
_PARQUET = rb"PAR1"
_JSON_LINES = rb'(?:\xef\xbb\xbf)?\s*\{[ \t]*"(?:[^"\\\n]|\\.)*"[ \t]*:'
_JSON = {
    _JSON_LINES: "JSON lines; give --kind jsonl",
    rb"(?:\xef\xbb\xbf)?\s*\[\s*\{": "a JSON array; make lines of it: jq -c '.[]' {file} > NEW.jsonl",
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"': "JSON; make a line of each record: jq -c . {file} > NEW.jsonl",
}
_CR = rb"[^\n]*\r[^\n]+\Z"


def kind_of(name: str) -> Kind:
    return Kind.JSONL if name == STDIN else _BY_ENDING.get(_ending(name), Kind.TEXT)


def kind_of_records(name: str, kind: Kind) -> Kind:
    """Return the kind of a file of records; raise InputError if neither name nor kind says it."""
    kind = kind_of(name) if kind is Kind.AUTO else kind
    if kind is Kind.TEXT:
        if os.path.isfile(name):
            with open(name, "rb") as file:
                try:
                    check_first_bytes(unpacked(file, name), name, Kind.CSV)  # or other records
                except (InputError, DamagedFile) as error:
                    raise InputError(f"{shown_name(name)}: {error}") from None
        raise InputError(
            f"{shown_name(name)}: expected a name that ends in {_ENDINGS}; for another name give the "
            "kind with --kind"
        )
    return kind


def kind_of_output(output: str, chosen: Kind, of_input: Kind) -> Kind:
    """Return the kind of an output; raises InputError if its name contradicts the chosen kind."""
    ending = _ending(resolved(output), [".gz"])
    by_name = _BY_ENDING.get(ending)
    if chosen is Kind.AUTO:
        if by_name is None and ending:
            raise InputError(
                f'{shown(output)}: the ending ".{shown(ending)}" names no format of records; expected '
                f"{_ENDINGS}, or give the format with --output-kind"
            )
        return by_name or of_input
    if chosen not in RECORD_KINDS:
        raise InputError(
            f"{shown(output)}: records cannot be written as {chosen}; expected an "
            f"--output-kind of {alternatives(RECORD_KINDS)}"
        )
    if by_name not in (None, chosen):
        raise InputError(
            f'{shown(output)}: the ending ".{ending}" contradicts --output-kind {chosen}; change one '
            "of the two"
        )
    return chosen


def check_first_bytes(file: IO[bytes], name: str, kind: Kind) -> None:
    """Raise InputError if the first bytes of an unpacked file, or its name, say another kind."""
    first = file.peek(10) if isinstance(file, io.BufferedReader) else b""
    others = dict(_OTHERS)
    if kind is not Kind.PARQUET:
        others[_PARQUET] = "Parquet; give it a name that ends in .parquet, or --kind parquet"
    if kind is Kind.AUTO:
        others |= {json: f"{way}; for one text give --kind text" for json, way in _JSON.items()}
    elif kind is not Kind.TEXT:
        if not (kind is Kind.JSONL and re.match(_JSON_LINES, first)):
            others |= _JSON
        others[_CR] = "of lines that end in CR: convert it, with tr '\\r' '\\n' < {file} > NEW"
    for pattern, description in others.items():
        if re.match(pattern, first):
            file_name = "FILE" if name == STDIN else shown(shlex.quote(name))
            if packing := packing_of(name):
                file_name = f"<({packing.command} -dc {file_name})"
            raise InputError(f"the file is {description.format(file=file_name)}")


def resolved(output: str) -> str:
    """Return the name of the file that is written: of a symbolic link, its target."""
    return output if output == STDIN else os.path.realpath(output)


def shown_name(name: str) -> str:
    return "standard input" if name == STDIN else shown(name)


def reason(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, DamagedFile):
        return f"cannot be read: {error.strerror or error}"
    return str(error)


def _ending(name: str, packings: Iterable[str] = PACKINGS) -> str:
    """Return the last ending of a name, in lower case, except one that says how the file is packed."""
    name = os.path.basename(name).lower()
    _, dot, ending = next(
        (name.removesuffix(end) for end in packings if name.endswith(end)), name
    ).rpartition(".")
    return ending if dot else ""
