"""How files hold documents, by their names; and what to say about files that cannot be read."""

from __future__ import annotations

import gzip
import zlib
from enum import StrEnum
from pathlib import PurePath

from textsim_db.errors import shown

STDIN = "-"


class Kind(StrEnum):
    """How a file holds documents; auto goes by its name."""

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
        return f"not a gzip file, or a damaged one: {error}"
    if isinstance(error, EOFError):
        return "the gzip file ends too early; what came before the end was read"
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return str(error)
