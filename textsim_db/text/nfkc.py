"""Unicode's normalization form KC, as every version of Unicode since 13.0 computes it.

Code points not assigned in Unicode 13.0 become spaces first, and the marks past the 30th of a run are
dropped: only NFKC's sorting of marks is not linear, and no script writes 30 of them. Counted as marks
are category M and the half-width U+FF9E and U+FF9F, which NFKC turns into marks.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from textsim_db.text.array_types import BoolArray, ByteArray, Int64Array
from textsim_db.text.numba_compiler import inlined_kernel, kernel, load64
from textsim_db.text.unicode_tables import (
    JOINING,
    MARK,
    MAX_MARKS,
    SPACE,
    UNASSIGNED,
    UNSTABLE,
    Tables,
    tables,
)
from textsim_db.text.utf8 import Utf8, check_batch_size, concatenate, copy_span, decode

PIECE_BYTES = 64 * 1024
"""NFKC takes this many bytes at a time: it holds the GIL, and signals wait until it returns."""


def normalize(texts: Sequence[bytes]) -> Utf8:
    """Return texts in UTF-8 in NFKC; raises DocumentError if they are too long for one batch."""
    check_batch_size(sum(map(len, texts)))
    joined = concatenate(texts)
    unstable = np.flatnonzero(find_unstable(joined, tables()))
    if not len(unstable):
        return joined
    normalized = list(texts)
    for i in unstable.tolist():
        normalized[i] = _normalize_text(texts[i])
    check_batch_size(sum(map(len, normalized)))
    return concatenate(normalized)


def _normalize_text(text: bytes) -> bytes:
    pieces = Utf8(*prepare_pieces(np.frombuffer(text, np.uint8), tables(), PIECE_BYTES))
    normalized: list[bytes] = []
    size = 0
    for start, end in pairwise(pieces.offsets.tolist()):
        piece = str(pieces.data.data[start:end], "utf-8")
        normalized.append(unicodedata.normalize("NFKC", piece).encode())
        size += len(normalized[-1])
        check_batch_size(size)
    return b"".join(normalized)


@kernel
def find_unstable(texts: Utf8, table: Tables) -> BoolArray:
    """Mark the texts that NFKC may change, and those with too many marks in a run: (texts,)."""
    unstable = np.zeros(len(texts.offsets) - 1, np.bool_)
    for i in range(len(unstable)):
        start, end = texts.offsets[i], texts.offsets[i + 1]
        unstable[i] = not is_ascii(texts.data, start, end) and not _is_stable(
            texts.data, start, end, table
        )
    return unstable


@inlined_kernel
def is_ascii(data: ByteArray, start: int, end: int) -> bool:
    """Say whether all bytes of a span are ASCII."""
    last = end - (end - start) % 8
    bits = np.uint64(0)
    for k in range(start, last, 8):
        bits |= load64(data, k)
    for k in range(last, end):
        bits |= np.uint64(data[k])
    return bool(bits & np.uint64(0x8080808080808080) == 0)


@inlined_kernel
def _is_stable(data: ByteArray, start: int, end: int, table: Tables) -> bool:
    """Say whether each character is stable and combining classes never fall within a run of marks.

    This is the quick check of Unicode Standard Annex 15, section 9.
    """
    at, last_class, marks = start, 0, 0
    while at < end:
        point, at = decode(data, at)
        if point < 0x80:
            last_class, marks = 0, 0
            continue
        order = table.order[point]
        combining_class = 0 if order == UNASSIGNED else order
        marks = marks + 1 if table.kind[point] == MARK else 0
        falls = combining_class != 0 and combining_class < last_class
        if combining_class >= UNSTABLE or falls or marks > MAX_MARKS:
            return False
        last_class = combining_class
    return True


@kernel
def prepare_pieces(
    text: ByteArray, table: Tables, piece_bytes: int
) -> tuple[ByteArray, Int64Array]:
    """Make a text fit for NFKC, and cut it into pieces that NFKC treats independently.

    Code points that are not assigned become spaces; then marks past the 30th of a run are dropped.
    Each piece has at least piece_bytes, except the last. A piece ends before a character that NFKC
    cannot join to what precedes it. That is one that never joins, one after a mark, or the third of
    several Hangul vowels and finals: only the first two of them can belong to a syllable.
    """
    out = np.empty(len(text), np.uint8)
    cuts = np.zeros(len(text) // piece_bytes + 2, np.int64)
    pieces, position, at = 0, 0, 0
    marks, joining = 0, 0
    while at < len(text):
        start = at
        point, at = decode(text, at)
        if table.kind[point] == MARK:
            marks, joining = marks + 1, 0
            if marks > MAX_MARKS:
                continue
        else:
            joins = table.order[point] == JOINING and marks == 0 and joining < 2
            if not joins and position - cuts[pieces] >= piece_bytes:
                pieces += 1
                cuts[pieces] = position
            marks, joining = 0, joining + 1 if table.order[point] == JOINING else 0
        if table.order[point] == UNASSIGNED:
            out[position] = SPACE
            position += 1
        else:
            position = copy_span(text, start, at, out, position)
    cuts[pieces + 1] = position
    return out[:position], cuts[: pieces + 2]
