"""Prepare texts for their normal form: join broken words, and apply Unicode's normalization form KC.

The steps, in this order:

1. A lower-case letter, a hyphen at the end of a line and a lower-case letter at the beginning of the
   next line are one word: the hyphen and the line end are deleted.
2. Code points not assigned in Unicode 13.0 become spaces. Ignorable code points, such as soft hyphens,
   joiners and variation selectors, are deleted.
3. Signs of trade marks become spaces. Vulgar fractions and enclosed numbers get spaces around them. If
   a superscript digit follows a digit or three letters, it gets a space before it.
4. Marks past the 30th of a run are dropped, because NFKC sorts the marks of a run in quadratic time, and
   no script writes 30 of them. Marks are the characters of category M, and the half-width U+FF9E and
   U+FF9F, which NFKC turns into marks.
5. NFKC, as every version of Unicode since 13.0 computes it.

Kernels index the tables by code point. `scripts/make_unicode_tables.py` writes their file.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from textsim_db.base.interpreter import fixed_arrays
from textsim_db.base.numba_compiler import (
    BoolArray,
    ByteArray,
    Int32Array,
    Int64Array,
    Uint16Array,
    inlined_kernel,
    kernel,
    load64,
    trailing_zeros,
)
from textsim_db.text.utf8 import (
    Utf8,
    check_batch_size,
    concatenate,
    copy_span,
    decode,
    decode_before,
)

UNICODE_VERSION = "13.0"
POINTS = 0x110000
SEPARATOR, WORD, SPACELESS, MARK, DELETED = range(5)
LETTER, LOWER, DIGIT, CYRILLIC, SYMBOL, OPENS, IGNORED, BLANKED, SPACED, RAISED = (
    1 << bit for bit in range(10)
)
SPACE = ord(" ")
UNSTABLE, UNASSIGNED, JOINING = 253, 254, 255
MAX_MARKS = 30
"""Marks kept in a run. NFKC sorts them in quadratic time, so the marks after them are dropped."""
RUN = np.dtype(
    [("first", "<i4"), ("kind", "u1"), ("order", "u1"), ("traits", "<u2"), ("shift", "<i4")]
)
"""Code points of equal properties, from the first up to that of the next run."""


@fixed_arrays
class Tables(NamedTuple):
    """Properties of each code point: (POINTS,) each."""

    kind: ByteArray
    """SEPARATOR, WORD (a letter or number), SPACELESS (a letter or number of a script that uses no
    spaces), MARK, or DELETED (a mark, or tatweel, that normal forms leave out)."""
    order: ByteArray
    """The combining class, or UNSTABLE (NFKC changes it), UNASSIGNED, or JOINING (NFKC may join it
    with the characters before it)."""
    lower: Int32Array
    """The code point in normal forms: the lower case, an ASCII digit for a decimal digit."""
    traits: Uint16Array
    """Bits: LETTER, LOWER (category Ll), DIGIT (Nd), CYRILLIC (a letter), SYMBOL (S), OPENS (a minus may
    follow: Z, Cc, Ps, and unassigned), IGNORED (deleted before NFKC), BLANKED (a space before NFKC),
    SPACED (between spaces before NFKC), RAISED (a superscript digit)."""
    ascii_letters: ByteArray
    """The lower case of each byte that is an ASCII letter or digit, else 0: (256,)."""


@cache
def tables() -> Tables:
    """Expand the runs into arrays of about 6.5 MB, once in a process."""
    runs = np.frombuffer(Path(__file__).with_name("unicode_runs.bin").read_bytes(), RUN)
    lengths = np.diff(runs["first"], append=POINTS)
    kind, order, traits, shift = (
        np.repeat(runs[name], lengths) for name in ("kind", "order", "traits", "shift")
    )
    lower = np.arange(POINTS, dtype=np.int32) + shift
    ascii_letters = np.zeros(256, np.uint8)
    ascii_letters[:128] = np.where(kind[:128] == WORD, lower[:128], 0)
    return Tables(kind, order, lower, traits, ascii_letters)


HIGH_BITS = np.uint64(0x8080808080808080)
"""The highest bit of each of eight bytes: which of them are not ASCII."""

PIECE_BYTES = 64 * 1024
"""Bytes that NFKC takes at a time. It holds the GIL, so more would delay signals for longer."""
_CHECKED_BYTES = 64
"""Bytes of a piece that is copied if NFKC does not change it. Larger pieces are copied less often."""


def normalize(texts: Utf8) -> Utf8:
    """Return texts in NFKC; raise DocumentError if they are too long for one batch."""
    check_batch_size(len(texts.data))
    unstable = np.flatnonzero(find_unstable(texts, tables()))
    if not len(unstable):
        return texts
    data = texts.data.data
    bounds = pairwise(texts.offsets.tolist())
    normalized: list[bytes | memoryview] = [data[start:end] for start, end in bounds]
    for i in unstable.tolist():
        normalized[i] = _normalize_text(normalized[i])
    check_batch_size(sum(map(len, normalized)))
    return concatenate(normalized)


def _normalize_text(text: bytes | memoryview) -> bytes:
    """Return a text in NFKC; stable pieces are only copied, because NFKC takes 17 ns a character."""
    data, cuts, is_changed = _cut_text(
        np.frombuffer(text, np.uint8), tables(), _CHECKED_BYTES, PIECE_BYTES
    )
    normalized: list[bytes | memoryview] = []
    size = 0
    for (start, end), changed in zip(pairwise(cuts.tolist()), is_changed.tolist(), strict=True):
        piece: bytes | memoryview = data.data[start:end]
        if changed:
            piece = unicodedata.normalize("NFKC", str(piece, "utf-8")).encode()
        normalized.append(piece)
        size += len(piece)
        check_batch_size(size)
    return b"".join(normalized)


@kernel
def _cut_text(
    text: ByteArray, table: Tables, checked_bytes: int, most_bytes: int
) -> tuple[ByteArray, Int64Array, BoolArray]:
    """Prepare a text for NFKC; return it, its cuts, and whether NFKC may change each piece."""
    no_places = np.empty(0, np.int64)
    text = join_broken_words(text, table, no_places)
    data, offsets = prepare_pieces(text, table, checked_bytes, no_places)
    pieces = Utf8(data, offsets)
    cuts, is_changed = _join_pieces(pieces, find_unstable(pieces, table), most_bytes)
    return data, cuts, is_changed


@kernel
def _join_pieces(
    pieces: Utf8, is_unstable: BoolArray, most_bytes: int
) -> tuple[Int64Array, BoolArray]:
    """Join neighbouring stable pieces, and neighbouring unstable pieces up to most_bytes."""
    cuts = np.zeros(len(is_unstable) + 1, np.int64)
    joined = np.empty(len(is_unstable), np.bool_)
    count = 0
    for i in range(len(is_unstable)):
        size = cuts[count] - cuts[count - 1] if count else 0
        is_full = is_unstable[i] and size >= most_bytes
        if count == 0 or joined[count - 1] != is_unstable[i] or is_full:
            joined[count] = is_unstable[i]
            count += 1
        cuts[count] = pieces.offsets[i + 1]
    return cuts[: count + 1], joined[:count]


@kernel
def find_unstable(texts: Utf8, table: Tables) -> BoolArray:
    """Mark the texts that the steps of this module may change: (texts,)."""
    unstable = np.zeros(len(texts.offsets) - 1, np.bool_)
    for i in range(len(unstable)):
        start, end = texts.offsets[i], texts.offsets[i + 1]
        is_changed = not is_ascii(texts.data, start, end) and not _is_stable(
            texts.data, start, end, table
        )
        unstable[i] = is_changed or has_broken_word(texts.data, start, end, table)
    return unstable


_BLANK, _TAB, _LINE_FEED, _RETURN, _HYPHEN = map(ord, " \t\n\r-")
_LOW_BITS = ~HIGH_BITS
_EIGHT_HYPHENS = np.uint64(0x0101010101010101 * _HYPHEN)
_BLANKS = np.uint64(0x0101010101010101 * _BLANK)
_ABOVE_CONTROL = np.uint64(0x0101010101010101 * 0xF0)  # bits that no tab or line end has


@inlined_kernel
def zero_bytes(eight: np.uint64) -> np.uint64:
    """Return the highest bit of each of eight bytes that is zero."""
    return np.uint64(~(((eight & _LOW_BITS) + _LOW_BITS) | eight | _LOW_BITS))


@inlined_kernel
def has_broken_word(data: ByteArray, start: int, end: int, table: Tables) -> bool:
    """Say whether a text has a word that is broken by an ASCII hyphen at the end of a line."""
    if end - start < 3:
        return False
    hyphens, dashes, blanks = np.uint64(0), np.uint64(0), np.uint64(0)
    last = end - 1 - (end - 1 - start) % 8
    for k in range(start, last, 8):  # without branches, so that it takes 32 bytes at once
        eight, ahead = load64(data, k), load64(data, k + 1)
        is_hyphen, is_end = zero_bytes(eight ^ _EIGHT_HYPHENS), zero_bytes(ahead & _ABOVE_CONTROL)
        hyphens |= is_hyphen & is_end
        dashes |= is_hyphen & zero_bytes(ahead ^ _BLANKS)
        blanks |= zero_bytes(eight ^ _BLANKS) & is_end
    has_hyphen, has_dash, has_blank = hyphens != 0, dashes != 0, blanks != 0
    for k in range(last, end - 1):
        is_end = data[k + 1] < 0x10
        has_hyphen |= data[k] == _HYPHEN and is_end
        has_dash |= data[k] == _HYPHEN and data[k + 1] == _BLANK
        has_blank |= data[k] == _BLANK and is_end
    # A dash between blanks is frequent, and a blank at the end of a line is rare.
    if not has_hyphen and not (has_dash and has_blank):
        return False
    for k in range(start + 1, end):
        if data[k] == _HYPHEN and _after_line_end(data, start, k, k + 1, end, table) > 0:
            return True
    return False


@inlined_kernel
def _after_line_end(
    data: ByteArray, start: int, hyphen: int, at: int, end: int, table: Tables
) -> int:
    """Return where the second half of a word begins that is broken by a hyphen; 0: it is no such hyphen.

    hyphen, at: the positions of the hyphen and after it.
    """
    at = _after_blanks(data, at, end)
    if at == end or data[at] not in (_LINE_FEED, _RETURN):
        return 0
    if hyphen == start or table.traits[decode_before(data, hyphen)[0]] & LOWER == 0:
        return 0
    at += 2 if data[at] == _RETURN and at + 1 < end and data[at + 1] == _LINE_FEED else 1
    at = _after_blanks(data, at, end)
    if at == end or table.traits[decode(data, at)[0]] & LOWER == 0:
        return 0
    return at


@inlined_kernel
def _after_blanks(data: ByteArray, at: int, end: int) -> int:
    while at < end and data[at] in (_BLANK, _TAB):
        at += 1
    return at


@kernel
def join_broken_words(text: ByteArray, table: Tables, places: Int64Array) -> ByteArray:
    """Return a text without hyphens at line ends within words; places: see prepare_pieces()."""
    has_lines = False
    for k in range(len(text)):
        has_lines |= (text[k] == _LINE_FEED) | (text[k] == _RETURN)
    if not has_lines and not len(places):
        return text
    out = np.empty(len(text), np.uint8)
    position, at = 0, 0
    while at < len(text):
        start = at
        point, at = decode(text, at)
        if point in (0x2D, 0x2010, 0xAD):
            second = _after_line_end(text, 0, start, at, len(text), table)
            if second > 0:
                at = second
                continue
        for k in range(start, at):
            if len(places):
                places[position] = k
            out[position] = text[k]
            position += 1
    return out[:position]


@inlined_kernel
def is_ascii(data: ByteArray, start: int, end: int) -> bool:
    last = end - (end - start) % 8
    bits = np.uint64(0)
    for k in range(start, last, 8):
        bits |= load64(data, k)
    for k in range(last, end):
        bits |= np.uint64(data[k])
    return bool(bits & HIGH_BITS == 0)


@inlined_kernel
def ascii_bytes(data: ByteArray, at: int, end: int) -> int:
    """Return how many bytes in a row are ASCII, from an ASCII byte on; at most eight."""
    if at + 8 > end:
        return 1
    others = load64(data, at) & HIGH_BITS
    if others == 0:  # a predicted branch is faster than counting zeros
        return 8
    return trailing_zeros(others) >> 3


@inlined_kernel
def _is_stable(data: ByteArray, start: int, end: int, table: Tables) -> bool:
    """Say whether each character is stable and combining classes never fall within a run of marks.

    It is the quick check of Unicode Standard Annex 15, section 9.
    """
    at, last_class, marks = start, 0, 0
    while at < end:
        if data[at] < 0x80:
            at += ascii_bytes(data, at, end)
            last_class, marks = 0, 0
            continue
        point, at = decode(data, at)
        order = table.order[point]
        combining_class = 0 if order == UNASSIGNED else order
        marks = marks + 1 if table.kind[point] >= MARK else 0
        falls = combining_class != 0 and combining_class < last_class
        if combining_class >= UNSTABLE or falls or marks > MAX_MARKS:
            return False
        last_class = combining_class
    return True


@kernel
def prepare_pieces(
    text: ByteArray, table: Tables, piece_bytes: int, places: Int64Array
) -> tuple[ByteArray, Int64Array]:
    """Take steps 2 to 4 of the module, and cut the text into pieces that NFKC treats independently.

    Each piece except the last has at least piece_bytes. The next piece starts with a character that
    NFKC cannot join to the character before it: the character never joins, or it follows a mark, or two
    Hangul vowels or finals precede it. A Hangul syllable holds only two of them.

    If places has room for twice the text, it receives the byte of the text from which each byte comes.
    """
    out = np.empty(2 * len(text), np.uint8)
    cuts = np.zeros(2 * len(text) // piece_bytes + 2, np.int64)
    pieces, position, at = 0, 0, 0
    marks, joining = 0, 0
    while at < len(text):
        start, first = at, position
        if text[at] < 0x80:
            if position - cuts[pieces] >= piece_bytes:
                pieces += 1
                cuts[pieces] = position
            at += ascii_bytes(text, at, len(text)) if piece_bytes > 1 else 1
            position = copy_span(text, start, at, out, position)
            marks, joining = 0, 0
            if len(places):
                for k in range(start, at):  # the assignment to a slice takes long to compile
                    places[first + k - start] = k
            continue
        point, at = decode(text, at)
        traits = table.traits[point]
        if traits & IGNORED != 0:
            continue
        if table.kind[point] >= MARK:
            marks, joining = marks + 1, 0
            if marks > MAX_MARKS:
                continue
        else:
            joins = table.order[point] == JOINING and marks == 0 and joining < 2
            if not joins and position - cuts[pieces] >= piece_bytes:
                pieces += 1
                cuts[pieces] = position
            marks, joining = 0, joining + 1 if table.order[point] == JOINING else 0
        if table.order[point] == UNASSIGNED or traits & BLANKED != 0:
            out[position] = SPACE
            position += 1
        else:
            is_raised = traits & RAISED != 0 and _ends_a_number(out, position, table)
            if is_raised or traits & SPACED != 0:
                out[position] = SPACE
                position += 1
            position = copy_span(text, start, at, out, position)
            if traits & SPACED != 0:
                out[position] = SPACE
                position += 1
        if len(places):
            for k in range(first, position):
                places[k] = start
    cuts[pieces + 1] = position
    return out[:position], cuts[: pieces + 2]


@inlined_kernel
def _ends_a_number(data: ByteArray, end: int, table: Tables) -> bool:
    """Say whether bytes end with a digit or three letters, each with any marks."""
    letters, at = 0, end
    while at > 0 and letters < 3:
        point, at = decode_before(data, at)
        if table.kind[point] >= MARK:
            continue
        if table.traits[point] & DIGIT != 0:
            return letters == 0
        if table.traits[point] & LETTER == 0:
            return False
        letters += 1
    return letters == 3
