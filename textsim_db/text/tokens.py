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

from collections.abc import Sequence

import numpy as np

from textsim_db.base.numba_compiler import (
    BoolArray,
    inlined_kernel,
    kernel,
)
from textsim_db.text.hashing import PADDING, hash_span
from textsim_db.text.nfkc import SPACE, Tables, normalize, tables
from textsim_db.text.split_words import is_plain, split_ascii, split_text, take_symbols
from textsim_db.text.storable import to_bytes
from textsim_db.text.utf8 import Places, Tokens, Utf8, check_batch_size, concatenate, copy_span


def tokenize(texts: Sequence[bytes]) -> Tokens:
    """Bring several texts in UTF-8 (see to_bytes) into normal form and find their words."""
    check_batch_size(sum(map(len, texts)))
    return tokenize_joined(concatenate(texts))


def tokenize_joined(texts: Utf8) -> Tokens:
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
            split_ascii(texts, i, out)
        else:
            split_text(texts, i, table, out, places)
        if out.word_offsets[i] == out.word_offsets[i + 1]:
            symbols += take_symbols(texts, i, table, takes_symbols, out, places)
        _hash_words(out, i)
    return symbols


@inlined_kernel
def _hash_words(out: Tokens, i: int) -> None:
    """Hash the words of a text while they are in the processor's cache."""
    for k in range(out.word_offsets[i], out.word_offsets[i + 1]):
        out.hashes[k] = np.int64(hash_span(out.normal, out.starts[k], out.ends[k]))


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
    count = tokens.word_offsets[-1]
    return Tokens(
        tokens.normal[: tokens.normal_offsets[-1]],
        tokens.normal_offsets,
        tokens.starts[:count],
        tokens.ends[:count],
        tokens.word_offsets,
        tokens.hashes[:count],
    )
