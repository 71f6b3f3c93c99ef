"""Split ASCII texts into words, many bytes at a time; most texts are ASCII."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from textsim_db.text.nfkc import HIGH_BITS, SPACE, zero_bytes
from textsim_db.text.numba_compiler import (
    ByteArray,
    inlined_kernel,
    load64,
    store64,
    trailing_zeros,
)
from textsim_db.text.utf8 import Utf8

if TYPE_CHECKING:
    from textsim_db.text.tokens import Tokens

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
