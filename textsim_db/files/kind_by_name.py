"""The kinds of files by name, and the reasons why a file cannot be read.

readers_and_writers.py says how each kind is read and written.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from textsim_db.errors import InputError, shown

STDIN = "-"


class Kind(StrEnum):
    """How a file holds documents; auto chooses by the file's name."""

    AUTO = "auto"
    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    TEXT = "text"


class RecordKind(NamedTuple):
    """A kind of file with records; readers_and_writers.py has its reader and its writer."""

    title: str
    endings: tuple[str, ...]
    """The endings of file names, each also with .gz; the first is the usual one."""
    separator: str = ""
    """The character between two columns of a line, if lines have columns."""


RECORD_KINDS = {
    Kind.JSONL: RecordKind("JSON lines", ("jsonl", "ndjson")),
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


def kind_of(name: str) -> Kind:
    """Return how a file of that name holds documents; a file of an unknown ending is one text."""
    return Kind.JSONL if name == STDIN else _BY_ENDING.get(_ending(name), Kind.TEXT)


def kind_of_records(name: str, kind: Kind) -> Kind:
    """Return the kind of a file of records; raise InputError if neither name nor kind says it."""
    kind = kind_of(name) if kind is Kind.AUTO else kind
    if kind is Kind.TEXT:
        raise InputError(
            f"{shown_name(name)}: expected a name that ends in {_ENDINGS}; for another name give the "
            "kind with --kind"
        )
    return kind


def kind_of_output(output: str, chosen: Kind, of_input: Kind) -> Kind:
    """Return the kind to write to an output; raises InputError if its name contradicts that kind.

    chosen: the kind that the user names, or auto. A name without an ending gets the kind of the input.
    """
    ending = _ending(resolved(output))
    by_name = _BY_ENDING.get(ending)
    if chosen is Kind.AUTO:
        if by_name is None and ending:
            raise InputError(
                f'{shown(output)}: the ending ".{shown(ending)}" names no format of records; expected '
                f"{_ENDINGS}, or give the format with --output-kind"
            )
        return by_name or of_input
    if chosen is Kind.TEXT:
        raise InputError(
            f"{shown(output)}: records cannot be written as text; expected an --output-kind of "
            f"{alternatives(RECORD_KINDS)}"
        )
    if by_name not in (None, chosen):
        raise InputError(
            f'{shown(output)}: the ending ".{ending}" contradicts --output-kind {chosen}; change one '
            "of the two"
        )
    return chosen


def resolved(output: str) -> str:
    """Return the name of the file that is written: of a symbolic link, its target."""
    return output if output == STDIN else os.path.realpath(output)


def is_packed(name: str) -> bool:
    """Say whether the name is that of a gzip file."""
    return name.lower().endswith(".gz")


def shown_name(name: str) -> str:
    """Return the name of a file for a message."""
    return "standard input" if name == STDIN else shown(name)


def reason(error: Exception) -> str:
    """Return why a file cannot be read."""
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return f"not a gzip file, or damaged: {error}"
    if isinstance(error, EOFError):
        return "the gzip file ends too early; only the part before its end was read; copy the file again"
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return str(error)


def _ending(name: str) -> str:
    """Return what follows the last dot of a name, in lower case and without .gz; "" if it has no dot."""
    _, dot, ending = os.path.basename(name).lower().removesuffix(".gz").rpartition(".")
    return ending if dot else ""
