"""From text to normal form and words.

A text is prepared, and brought to NFKC (see textsim_db.text.nfkc). Then:

1. Tatweel, vowel signs of Arabic and Hebrew, Koranic and enclosing marks are deleted; so are stress
   marks after Cyrillic letters, a dot above after i, and marks that follow no letter or number.
2. Letters are in simple (one-to-one) lower case. Final sigma becomes sigma, dotless i becomes i, sharp s
   becomes ss, each decimal digit an ASCII digit, and the Persian yeh and kaf and alef maksura become the
   Arabic yeh and kaf.
3. A word is a maximal run of letters, marks and numbers; words are joined by one space. In scripts that
   are written without spaces (Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar), each letter or number
   with the marks that follow it is a word. Plus and number signs belong to a word that ends with a
   letter, if no letter or number follows them, as in "c++" and "c#". A minus before a digit belongs to
   the number if a space, an opening bracket or nothing precedes it. It is written "-".
4. In a text without words, each symbol is a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from textsim_db.text.hashing import PADDING, hash_span
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
    normalize,
    tables,
    zero_bytes,
)
from textsim_db.text.numba_compiler import (
    BoolArray,
    ByteArray,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
    load64,
    store64,
    trailing_zeros,
)
from textsim_db.text.storable_text import to_bytes
from textsim_db.text.utf8 import (
    Utf8,
    check_batch_size,
    concatenate,
    copy_span,
    decode,
    decode_before,
    encode,
)


class Tokens(NamedTuple):
    """The normal forms of several documents, and where their words are."""

    normal: ByteArray
    """The normal forms in UTF-8, one after another."""
    normal_offsets: Int64Array
    """The bounds of each normal form: (documents + 1,)."""
    starts: Int32Array
    """The first byte of each word: (words,)."""
    ends: Int32Array
    """The byte after each word: (words,)."""
    word_offsets: Int64Array
    """The bounds of the words of each document: (documents + 1,)."""
    hashes: Int64Array
    """hashtextextended(word, 0) of each word: (words,)."""

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self.normal_offsets) - 1

    def parts(self, size: int) -> Iterator[Tokens]:
        """Yield the documents in parts with normal forms of about size bytes."""
        if len(self.normal) <= size:
            yield self
            return
        places = np.arange(0, len(self.normal) + size, size)
        cuts = np.unique(np.searchsorted(self.normal_offsets[:-1], places)).tolist()
        for first, last in pairwise([0, *cuts, self.documents]):
            if first < last:
                yield self._part(first, last)

    def _part(self, first: int, last: int) -> Tokens:
        start, end = self.word_offsets[first], self.word_offsets[last]
        return Tokens(
            self.normal,
            self.normal_offsets[first : last + 1],
            self.starts[start:end],
            self.ends[start:end],
            self.word_offsets[first : last + 1] - start,
            self.hashes[start:end],
        )

    def span(self, start: int, end: int) -> str:
        """Return the text of a span of bytes."""
        return self.normal[start:end].tobytes().decode()

    def forms(self) -> list[str]:
        """Return the normal form of each document."""
        return [self.span(start, end) for start, end in pairwise(self.normal_offsets.tolist())]

    def words(self, numbers: Int64Array) -> list[str]:
        """Return the texts of words by their numbers in the batch."""
        data = self.normal.data
        starts, ends = self.starts[numbers].tolist(), self.ends[numbers].tolist()
        return [str(data[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]


_EACH = np.uint64(0x0101010101010101)
_CASE = _EACH * np.uint64(0x20)
_FROM_A, _AFTER_Z = (_EACH * np.uint64(0x80 - ord(first)) for first in "a{")
_FROM_0, _AFTER_9 = (_EACH * np.uint64(0x80 - ord(first)) for first in "0:")
_GATHER = np.uint64(0x0102040810204080)


def tokenize(texts: Sequence[bytes]) -> Tokens:
    """Bring several texts in UTF-8 (see to_bytes) into normal form and find their words."""
    check_batch_size(sum(map(len, texts)))
    return tokenize_joined(concatenate(texts))


def tokenize_joined(texts: Utf8) -> Tokens:
    """Bring several texts into normal form and find their words."""
    return split_texts(normalize(texts), tables())


def tokens_of(normal_forms: Sequence[bytes]) -> Tokens:
    """Find the words of texts that are in normal form already, such as stored texts.

    Unlike tokenize(), it does not apply NFKC: lower case can leave a letter and a mark that NFKC would
    join, so tokenize() may change a normal form.
    """
    check_batch_size(sum(map(len, normal_forms)))
    return split_texts(concatenate(normal_forms), tables())


def normal_form(text: str) -> str:
    """Return the normal form of a text: NFKC, lower case, and words joined by one space.

    Raises `DocumentError` for a text with NUL or a lone surrogate.

        >>> normal_form("The QUICK,  brown fox!")
        'the quick brown fox'
    """
    return tokenize([to_bytes(text)]).normal.tobytes().decode()


def words(text: str) -> list[str]:
    """Return the words of a text's normal form, in order.

    Raises `DocumentError` for a text with NUL or a lone surrogate.
    """
    return normal_form(text).split()


class Places(NamedTuple):
    """The places of words in the texts that are split; empty if nobody asks."""

    starts: Int32Array
    """The first byte of each word: (words,)."""
    ends: Int32Array
    """The byte after each word: (words,)."""


_NO_PLACES = Places(np.empty(0, np.int32), np.empty(0, np.int32))


def split_texts(texts: Utf8, table: Tables) -> Tokens:
    """Fold the case of texts that are in NFKC, and split them into words."""
    return _split(texts, table, asks=False)[0]


def split_with_places(texts: Utf8, table: Tables) -> tuple[Tokens, Places]:
    """Split texts into words, and return the place of each word in them."""
    return _split(texts, table, asks=True)


def _split(texts: Utf8, table: Tables, asks: bool) -> tuple[Tokens, Places]:
    # Two bytes become at most three bytes and a space. A spaceless character, of three bytes or more,
    # gains one space. A symbol of one byte, in a text without words, gains one space, too.
    words = (len(texts.data) >> 1) + len(texts.offsets)
    symbols = 0
    while True:
        count = words + symbols
        out = _space_for_tokens(2 * len(texts.data), count, len(texts.offsets) - 1)
        places = _NO_PLACES
        if asks:
            places = Places(np.empty(count, np.int32), np.empty(count, np.int32))
        left_out = _split_texts(texts, table, symbols > 0, out, places)
        if symbols or not left_out:
            used = out.word_offsets[-1] if asks else 0
            return _used(out), Places(places.starts[:used], places.ends[:used])
        symbols = left_out


@kernel
def _split_texts(
    texts: Utf8, table: Tables, takes_symbols: bool, out: Tokens, places: Places
) -> int:
    """Split texts; return the number of symbols of texts without words.

    takes_symbols: the tokens have room for these symbols, too, so they are words.
    """
    symbols = 0
    for i in range(len(texts.offsets) - 1):
        if not len(places.starts) and is_plain(texts.data, texts.offsets[i], texts.offsets[i + 1]):
            _split_ascii(texts, i, out)
        else:
            _split_text(texts, i, table, out, places)
        if out.word_offsets[i] == out.word_offsets[i + 1]:
            symbols += _take_symbols(texts, i, table, takes_symbols, out, places)
        _hash_words(out, i)
    return symbols


_PLUS, _NUMBER_SIGN, _HYPHEN, _MINUS = (ord(sign) for sign in "+#-\u2212")
_PLUSES, _MINUSES, _SIGN_BIT = (_EACH * np.uint64(byte) for byte in (_PLUS, _HYPHEN, 0x08))
_GRAVE, _ACUTE, _DOT_ABOVE, _SHARP_S = 0x300, 0x301, 0x307, 0xDF


@inlined_kernel
def is_plain(data: ByteArray, start: int, end: int) -> bool:
    """Say whether a text is ASCII without signs that may belong to words, as in "c++", "c#" and "-5"."""
    if start == end:
        return True
    bits, signs = np.uint64(data[start]), np.uint64(data[start] == _HYPHEN)
    last = max(start, end - 9)
    last -= (last - start) % 8
    for k in range(start, last, 8):  # without branches, so that it takes 32 bytes at once
        before, here, after = load64(data, k), load64(data, k + 1), load64(data, k + 2)
        bits |= here
        # "#" and "+" differ in one bit.
        signs |= zero_bytes((here | _SIGN_BIT) ^ _PLUSES) & _letters(before)
        signs |= zero_bytes(here ^ _MINUSES) & ~_letters(before) & _digits(after)
    for k in range(last + 1, end):
        bits |= np.uint64(data[k])
        is_after_letter = _letters(np.uint64(data[k - 1])) != 0
        if data[k] in (_PLUS, _NUMBER_SIGN) and is_after_letter:
            return False
        is_before_digit = k + 1 < end and ord("0") <= data[k + 1] <= ord("9")
        if data[k] == _HYPHEN and is_before_digit and not is_after_letter:
            return False
    return bool(signs == 0 and bits & HIGH_BITS == 0)


@inlined_kernel
def _split_text(texts: Utf8, i: int, table: Tables, out: Tokens, places: Places) -> None:
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
            at, position = _copy_ascii(data, at, end, out.normal, position)
            _end_place(places, count, at)
            continue
        point, at = decode(data, at)
        kind = table.kind[point]
        if kind == SEPARATOR:
            if inside != SEPARATOR and point in (_PLUS, _NUMBER_SIGN):
                length = position
                at, position = _take_signs(data, start, end, table, out.normal, position)
                if position > length:
                    _end_place(places, count, at)
            elif inside == SEPARATOR and point in (_HYPHEN, _MINUS):
                digit = _number_after(data, at, end, before, table)
                if digit > 0:
                    position = _begin_word(out, count, first, position)
                    _begin_place(places, count, start)
                    count += 1
                    out.normal[position] = _HYPHEN
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
        if point in (_PLUS, _NUMBER_SIGN):
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
def _take_symbols(
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


@inlined_kernel
def _hash_words(out: Tokens, i: int) -> None:
    """Hash the words of a text while they are in the processor's cache."""
    for k in range(out.word_offsets[i], out.word_offsets[i + 1]):
        out.hashes[k] = np.int64(hash_span(out.normal, out.starts[k], out.ends[k]))


@inlined_kernel
def _copy_ascii(
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
    return np.uint64((letters & ~eight & HIGH_BITS) | _digits(eight))


@inlined_kernel
def _digits(eight: np.uint64) -> np.uint64:
    """Return the highest bit of each of eight bytes that is an ASCII digit."""
    low = eight & ~HIGH_BITS
    return np.uint64((low + _FROM_0) & ~(low + _AFTER_9) & ~eight & HIGH_BITS)


@inlined_kernel
def _split_ascii(texts: Utf8, i: int, out: Tokens) -> None:
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


def leave_out(tokens: Tokens, is_left_out: BoolArray) -> Tokens:
    """Return documents without some of their words; is_left_out: (words,)."""
    out = _space_for_tokens(len(tokens.normal), len(tokens.starts), tokens.documents)
    _leave_out(tokens, is_left_out, out)
    return _used(out)


@kernel
def _leave_out(tokens: Tokens, is_left_out: BoolArray, out: Tokens) -> None:
    for document in range(len(tokens.word_offsets) - 1):
        _copy_words(tokens, document, is_left_out, out)


@inlined_kernel
def _copy_words(tokens: Tokens, document: int, is_left_out: BoolArray, out: Tokens) -> None:
    """Append the words of a document that are not left out."""
    first, count = out.normal_offsets[document], out.word_offsets[document]
    position = first
    for i in range(tokens.word_offsets[document], tokens.word_offsets[document + 1]):
        if is_left_out[i]:
            continue
        if position > first:
            out.normal[position] = SPACE
            position += 1
        out.starts[count] = position
        start, end = tokens.starts[i], tokens.ends[i]
        position = copy_span(tokens.normal, start, end, out.normal, position)
        out.ends[count] = position
        out.hashes[count] = tokens.hashes[i]
        count += 1
    out.normal_offsets[document + 1], out.word_offsets[document + 1] = position, count


def _space_for_tokens(normal_bytes: int, words: int, documents: int) -> Tokens:
    """Return arrays to fill. NumPy makes them, because it asks for large pages and kernels do not."""
    return Tokens(
        np.empty(normal_bytes + PADDING, np.uint8),
        np.zeros(documents + 1, np.int64),
        np.empty(words, np.int32),
        np.empty(words, np.int32),
        np.zeros(documents + 1, np.int64),
        np.empty(words, np.int64),
    )


def _used(tokens: Tokens) -> Tokens:
    """Return the arrays of tokens without unused space."""
    count = tokens.word_offsets[-1]
    return Tokens(
        tokens.normal[: tokens.normal_offsets[-1]],
        tokens.normal_offsets,
        tokens.starts[:count],
        tokens.ends[:count],
        tokens.word_offsets,
        tokens.hashes[:count],
    )
