"""Fold and split texts into words: ASCII eight bytes at a time, other texts by the Unicode tables."""

from __future__ import annotations

import numpy as np

from textsim_db.base.numba_compiler import (
    ByteArray,
    inlined_kernel,
    load64,
    store64,
    trailing_zeros,
)
from textsim_db.text.nfkc import (
    CYRILLIC,
    DELETED,
    DIGIT,
    HIGH_BITS,
    LETTER,
    MARK,
    OPENS,
    SEPARATOR,
    SPACE,
    SPACELESS,
    SYMBOL,
    WORD,
    Tables,
    zero_bytes,
)
from textsim_db.text.utf8 import Places, Tokens, Utf8, decode, decode_before, encode

_EACH = np.uint64(0x0101010101010101)
_CASE = _EACH * np.uint64(0x20)
_FROM_A, _AFTER_Z = (_EACH * np.uint64(0x80 - ord(first)) for first in "a{")
_FROM_0, _AFTER_9 = (_EACH * np.uint64(0x80 - ord(first)) for first in "0:")
_GATHER = np.uint64(0x0102040810204080)
PLUS, NUMBER_SIGN, HYPHEN, MINUS = (ord(sign) for sign in "+#-\u2212")
_PLUSES, _MINUSES, _SIGN_BIT = (_EACH * np.uint64(byte) for byte in (PLUS, HYPHEN, 0x08))


@inlined_kernel
def is_plain(data: ByteArray, start: int, end: int) -> bool:
    """Say whether a text is ASCII without signs that may belong to words, as in "c++", "c#" and "-5"."""
    if start == end:
        return True
    bits, signs = np.uint64(data[start]), np.uint64(data[start] == HYPHEN)
    last = max(start, end - 9)
    last -= (last - start) % 8
    for k in range(start, last, 8):  # without branches, so that it takes 32 bytes at once
        before, here, after = load64(data, k), load64(data, k + 1), load64(data, k + 2)
        bits |= here
        # "#" and "+" differ in one bit.
        signs |= zero_bytes((here | _SIGN_BIT) ^ _PLUSES) & _letters(before)
        signs |= zero_bytes(here ^ _MINUSES) & ~_letters(before) & digits(after)
    for k in range(last + 1, end):
        bits |= np.uint64(data[k])
        is_after_letter = _letters(np.uint64(data[k - 1])) != 0
        if data[k] in (PLUS, NUMBER_SIGN) and is_after_letter:
            return False
        is_before_digit = k + 1 < end and ord("0") <= data[k + 1] <= ord("9")
        if data[k] == HYPHEN and is_before_digit and not is_after_letter:
            return False
    return bool(signs == 0 and bits & HIGH_BITS == 0)


@inlined_kernel
def copy_ascii(
    data: ByteArray, at: int, end: int, out: ByteArray, position: int
) -> tuple[int, int]:
    """Fold and copy ASCII letters and digits, which most texts consist of, up to another byte.

    It copies eight bytes at a time; later copies overwrite the surplus bytes. Returns the position of
    the other byte, and the position for the next byte in out.
    """
    length = 8
    while length == 8:
        eight = load64(data, at)
        length = min(trailing_zeros(~_letters(eight) & HIGH_BITS) >> 3, end - at)
        store64(out, position, eight | _CASE)
        at += length
        position += length
    return at, position


@inlined_kernel
def _letters(eight: np.uint64) -> np.uint64:
    """Return the highest bit of each of eight bytes that is an ASCII letter or digit.

    All bytes are compared at once. The highest bit of each byte is cleared; adding one number sets it
    from the first letter on, and adding another number sets it after the last letter.
    """
    folded = eight & ~HIGH_BITS | _CASE
    letters = (folded + _FROM_A) & ~(folded + _AFTER_Z)
    return np.uint64((letters & ~eight & HIGH_BITS) | digits(eight))


@inlined_kernel
def digits(eight: np.uint64) -> np.uint64:
    """Return the highest bit of each of eight bytes that is an ASCII digit."""
    low = eight & ~HIGH_BITS
    return np.uint64((low + _FROM_0) & ~(low + _AFTER_9) & ~eight & HIGH_BITS)


@inlined_kernel
def split_ascii(texts: Utf8, i: int, out: Tokens) -> None:
    """Fold and split an ASCII text; find the bounds of its words 64 bytes at a time."""
    first = out.word_offsets[i]
    count = _find_ascii_words(texts, i, first, out)
    position = out.normal_offsets[i]
    for k in range(first, count):
        start, length = out.starts[k], out.ends[k] - out.starts[k]
        # Copies 16 bytes at a time; the next word overwrites the surplus bytes.
        for ahead in range(0, length, 16):
            low, high = load64(texts.data, start + ahead), load64(texts.data, start + ahead + 8)
            store64(out.normal, position + ahead, low | _CASE)
            store64(out.normal, position + ahead + 8, high | _CASE)
        out.starts[k], out.ends[k] = position, position + length
        out.normal[position + length] = SPACE
        position += length + 1
    out.word_offsets[i + 1] = count
    out.normal_offsets[i + 1] = position - (count > first)


@inlined_kernel
def _find_ascii_words(texts: Utf8, i: int, first: int, out: Tokens) -> int:
    """Write the bounds of a text's words in its bytes; return the number after the last word."""
    begin, end = texts.offsets[i], texts.offsets[i + 1]
    starts, ends = first, first
    before = np.uint64(0)
    for block in range(begin, end, 64):
        letters = _letter_bits(texts.data, block, end)
        shifted = (letters << np.uint64(1)) | before
        before = letters >> np.uint64(63)
        bits = letters & ~shifted
        while bits:
            out.starts[starts] = block + trailing_zeros(bits)
            starts += 1
            bits &= bits - np.uint64(1)
        bits = ~letters & shifted
        while bits:
            out.ends[ends] = block + trailing_zeros(bits)
            ends += 1
            bits &= bits - np.uint64(1)
    if ends < starts:
        out.ends[ends] = end
    return starts


@inlined_kernel
def _letter_bits(data: ByteArray, block: int, end: int) -> np.uint64:
    """Return 64 bits, the lowest first: whether each byte is an ASCII letter or digit."""
    bits = np.uint64(0)
    size = min(64, end - block)
    for k in range(0, size, 8):
        eight = _letters(load64(data, block + k)) >> np.uint64(7)
        # The product brings the lowest bits of all bytes together in the highest byte.
        bits |= ((eight * _GATHER) >> np.uint64(56)) << np.uint64(k)
    return bits if size == 64 else bits & ((np.uint64(1) << np.uint64(size)) - np.uint64(1))


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
