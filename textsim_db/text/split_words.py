"""Fold and split texts of any script into words: a character at a time, by the Unicode tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from textsim_db.text.nfkc import (
    CYRILLIC,
    DELETED,
    DIGIT,
    LETTER,
    MARK,
    OPENS,
    SEPARATOR,
    SPACE,
    SPACELESS,
    SYMBOL,
    WORD,
    Tables,
)
from textsim_db.text.numba_compiler import ByteArray, inlined_kernel
from textsim_db.text.split_ascii import HYPHEN, MINUS, NUMBER_SIGN, PLUS, copy_ascii
from textsim_db.text.utf8 import Utf8, decode, decode_before, encode

if TYPE_CHECKING:
    from textsim_db.text.tokens import Places, Tokens

_GRAVE, _ACUTE, _DOT_ABOVE, _SHARP_S = 0x300, 0x301, 0x307, 0xDF


@inlined_kernel
def split_text(texts: Utf8, i: int, table: Tables, out: Tokens, places: Places) -> None:
    """Fold and split a text; append its words to the words of the texts before it."""
    data, at, end = texts.data, texts.offsets[i], texts.offsets[i + 1]
    first, count = out.normal_offsets[i], out.word_offsets[i]
    position = first
    inside = SEPARATOR  # the kind of the character before
    before = np.int64(SPACE)  # the last separator
    while at < end:
        start = at
        if data[at] < 0x80 and table.ascii_letters[data[at]]:
            if inside in (SEPARATOR, SPACELESS):
                position = _begin_word(out, count, first, position)
                _begin_place(places, count, start)
                count += 1
                inside = WORD
            at, position = copy_ascii(data, at, end, out.normal, position)
            _end_place(places, count, at)
            continue
        point, at = decode(data, at)
        kind = table.kind[point]
        if kind == SEPARATOR:
            if inside != SEPARATOR and point in (PLUS, NUMBER_SIGN):
                length = position
                at, position = _take_signs(data, start, end, table, out.normal, position)
                if position > length:
                    _end_place(places, count, at)
            elif inside == SEPARATOR and point in (HYPHEN, MINUS):
                digit = _number_after(data, at, end, before, table)
                if digit > 0:
                    position = _begin_word(out, count, first, position)
                    _begin_place(places, count, start)
                    count += 1
                    out.normal[position] = HYPHEN
                    position += 1
                    at, inside = digit, WORD
                    continue
            inside, before = SEPARATOR, point
            continue
        if kind >= MARK and (
            kind == DELETED
            or inside == SEPARATOR
            or _is_left_out(out.normal, position, point, table)
        ):
            continue
        # A word begins after a separator, at each spaceless character, and at another letter or
        # number after a spaceless character.
        if inside == SEPARATOR or kind == SPACELESS or (inside == SPACELESS and kind != MARK):
            position = _begin_word(out, count, first, position)
            _begin_place(places, count, start)
            count += 1
            inside = kind
        position = _write_folded(out.normal, position, table.lower[point])
        _end_place(places, count, at)
    if position > first:
        out.ends[count - 1] = position
    out.normal_offsets[i + 1], out.word_offsets[i + 1] = position, count


@inlined_kernel
def _begin_word(out: Tokens, count: int, first: int, position: int) -> int:
    """Begin word number count of a text whose normal form begins at first; return its position."""
    if position > first:
        out.ends[count - 1] = position
        out.normal[position] = SPACE
        position += 1
    out.starts[count] = position
    return position


@inlined_kernel
def _begin_place(places: Places, count: int, at: int) -> None:
    if len(places.starts):
        places.starts[count] = at


@inlined_kernel
def _end_place(places: Places, count: int, at: int) -> None:
    if len(places.ends):
        places.ends[count - 1] = at


@inlined_kernel
def _write_folded(normal: ByteArray, position: int, point: int) -> int:
    if point == _SHARP_S:
        normal[position] = normal[position + 1] = ord("s")
        return position + 2
    return encode(normal, position, point)


@inlined_kernel
def _is_left_out(normal: ByteArray, position: int, mark: np.int64, table: Tables) -> bool:
    """Say whether a mark after a character is left out: stress in Cyrillic, or a dot above i."""
    if mark == _DOT_ABOVE:
        return bool(normal[position - 1] == ord("i"))
    if mark in (_GRAVE, _ACUTE):
        return bool(table.traits[decode_before(normal, position)[0]] & CYRILLIC != 0)
    return False


@inlined_kernel
def _take_signs(
    data: ByteArray, at: int, end: int, table: Tables, normal: ByteArray, position: int
) -> tuple[int, int]:
    """Append plus and number signs to a word, if they belong to it; return the positions after them."""
    letter, last = decode_before(normal, position)
    while table.kind[letter] >= MARK:
        letter, last = decode_before(normal, last)
    belongs = table.traits[letter] & LETTER != 0
    written = position
    while at < end:
        point, after = decode(data, at)
        if point in (PLUS, NUMBER_SIGN):
            normal[written] = point
            written += 1
        elif table.kind[point] < MARK:
            belongs = belongs and table.kind[point] == SEPARATOR
            break
        at = after
    return at, written if belongs else position


@inlined_kernel
def _number_after(data: ByteArray, at: int, end: int, before: np.int64, table: Tables) -> int:
    """Return where the number of a minus begins; 0: it is no minus. at: the position after it.

    before: the character before it.
    """
    if table.traits[before] & OPENS == 0:
        return 0
    while at < end:
        point, after = decode(data, at)
        if table.kind[point] < MARK:
            return at if table.traits[point] & DIGIT != 0 else 0
        at = after
    return 0


@inlined_kernel
def take_symbols(
    texts: Utf8, i: int, table: Tables, takes: bool, out: Tokens, places: Places
) -> int:
    """Return the number of symbols of a text; append them as words if there is room for them."""
    at, end = texts.offsets[i], texts.offsets[i + 1]
    first, count = out.normal_offsets[i], out.word_offsets[i]
    position, symbols = first, 0
    while at < end:
        start = at
        point, at = decode(texts.data, at)
        if table.traits[point] & SYMBOL == 0:
            continue
        symbols += 1
        if takes:
            position = _begin_word(out, count, first, position)
            _begin_place(places, count, start)
            count += 1
            position = encode(out.normal, position, point)
            _end_place(places, count, at)
    if position > first:
        out.ends[count - 1] = position
    out.normal_offsets[i + 1], out.word_offsets[i + 1] = position, count
    return symbols
