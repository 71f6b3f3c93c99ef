"""The kinds of files by name, and the reasons why a file cannot be read."""

from __future__ import annotations

import gzip
import zlib
from enum import StrEnum
from pathlib import PurePath

from textsim_db.errors import shown

STDIN = "-"


class Kind(StrEnum):
    """How a file holds documents; auto chooses by the file's name."""

    AUTO = "auto"
    TEXT = "text"
    JSONL = "jsonl"
    CSV = "csv"


def kind_of(name: str) -> Kind:
    """Return how a file of that name holds documents."""
    if name == STDIN:
        return Kind.JSONL
    suffix = PurePath(name.lower().removesuffix(".gz")).suffix
    return {".jsonl": Kind.JSONL, ".ndjson": Kind.JSONL, ".csv": Kind.CSV}.get(suffix, Kind.TEXT)


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
