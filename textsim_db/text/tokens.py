"""From text to normal form and words; pure, with no database.

The normal form: NFKC (see textsim_db.text.nfkc); simple (one-to-one) lower case; every maximal run of
letters, marks and numbers is a word, except that a letter or number of a script written without spaces
(Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar), with the marks that follow it, is a word of its
own. Words are joined by one space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from textsim_db.text.array_types import BoolArray, ByteArray, Int32Array, Int64Array
from textsim_db.text.hashing import PADDING, hash_span
from textsim_db.text.nfkc import normalize
from textsim_db.text.numba_compiler import inlined_kernel, kernel
from textsim_db.text.unicode_tables import (
    MARK,
    SEPARATOR,
    SPACE,
    SPACELESS,
    WORD,
    Tables,
    tables,
)
from textsim_db.text.utf8 import (
    Utf8,
    check_batch_size,
    concatenate,
    copy_span,
    decode,
    encode,
    to_bytes,
)


class Tokens(NamedTuple):
    """The normal forms of several documents, and where their words are.

    normal: uint8, the normal forms in UTF-8, one after another. normal_offsets: int64 of shape
    (documents + 1,), where each begins and ends. starts, ends: int32 of shape (words,), the bytes
    of each word. word_offsets: int64 of shape (documents + 1,), the words of each document. hashes:
    int64 of shape (words,), hashtextextended(word, 0).
    """

    normal: ByteArray
    normal_offsets: Int64Array
    starts: Int32Array
    ends: Int32Array
    word_offsets: Int64Array
    hashes: Int64Array

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self.normal_offsets) - 1

    def span(self, start: int, end: int) -> str:
        """Return the text of a span of bytes."""
        return self.normal[start:end].tobytes().decode()

    def words(self, numbers: Int64Array) -> list[str]:
        """Return the texts of words by their numbers in the batch."""
        data = self.normal.data
        starts, ends = self.starts[numbers].tolist(), self.ends[numbers].tolist()
        return [str(data[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]


_TokenArrays = tuple[ByteArray, Int64Array, Int32Array, Int32Array, Int64Array, Int64Array]


def tokenize(texts: Sequence[bytes]) -> Tokens:
    """Bring several texts in UTF-8 (see to_bytes) into normal form and find their words."""
    return Tokens(*_split_texts(normalize(texts), tables()))


def tokens_of(normal_forms: Sequence[bytes]) -> Tokens:
    """Find the words of texts that are in normal form already, such as stored ones.

    All of tokenize except NFKC: folding a capital can leave a letter and a mark that NFKC would
    join, so that the normal form of a normal form is not always itself.
    """
    check_batch_size(sum(map(len, normal_forms)))
    return Tokens(*_split_texts(concatenate(normal_forms), tables()))


def normal_form(text: str) -> str:
    """Return the normal form of a text; raises DocumentError for NUL and lone surrogates."""
    return tokenize([to_bytes(text)]).normal.tobytes().decode()


def words(text: str) -> list[str]:
    """Return the words of a text in order; raises DocumentError for NUL and lone surrogates."""
    return normal_form(text).split()


@kernel
def _split_texts(texts: Utf8, table: Tables) -> _TokenArrays:
    """Fold case and split texts in NFKC into words."""
    # Two bytes become three and a space at most; a spaceless character (three or more) gains
    # one space.
    out = _room_for_tokens(
        2 * len(texts.data), (len(texts.data) >> 1) + len(texts.offsets), len(texts.offsets) - 1
    )
    for i in range(len(texts.offsets) - 1):
        _split_text(texts, i, table, out)
        _hash_words(out, i)
    return _used(out)


@inlined_kernel
def _split_text(texts: Utf8, i: int, table: Tables, out: Tokens) -> None:
    """Fold and split a text; its words come after those of the text before it."""
    at, end = texts.offsets[i], texts.offsets[i + 1]
    first, count = out.normal_offsets[i], out.word_offsets[i]
    position = first
    inside = SEPARATOR
    while at < end:
        if inside == WORD:
            at, position = _copy_ascii(texts.data, at, end, table, out.normal, position)
            if at == end:
                break
        point, at = decode(texts.data, at)
        kind = table.kind[point]
        if kind == SEPARATOR:
            inside = SEPARATOR
            continue
        # A word begins after a separator, at each spaceless character, and where a run of
        # other letters follows a spaceless character.
        if inside == SEPARATOR or kind == SPACELESS or (inside == SPACELESS and kind != MARK):
            if position > first:
                out.ends[count - 1] = position
                out.normal[position] = SPACE
                position += 1
            out.starts[count] = position
            count += 1
            inside = kind
        position = encode(out.normal, position, table.lower[point])
    if position > first:
        out.ends[count - 1] = position
    out.normal_offsets[i + 1], out.word_offsets[i + 1] = position, count


@inlined_kernel
def _hash_words(out: Tokens, i: int) -> None:
    """Hash the words of a text while they are in the processor's cache."""
    for k in range(out.word_offsets[i], out.word_offsets[i + 1]):
        out.hashes[k] = np.int64(hash_span(out.normal, out.starts[k], out.ends[k]))


@inlined_kernel
def _copy_ascii(
    data: ByteArray, at: int, end: int, table: Tables, out: ByteArray, position: int
) -> tuple[int, int]:
    """Fold ASCII letters and digits up to another byte: most bytes of most texts are such.

    Returns where the other byte is, and where the next byte is written.
    """
    while at < end:
        folded = table.ascii_letters[data[at]]
        if not folded:
            break
        out[position] = folded
        position += 1
        at += 1
    return at, position


def leave_out(tokens: Tokens, is_left_out: BoolArray) -> Tokens:
    """Return documents without some of their words; is_left_out: (words,)."""
    return Tokens(*_leave_out(tokens, is_left_out))


@kernel
def _leave_out(tokens: Tokens, is_left_out: BoolArray) -> _TokenArrays:
    documents = len(tokens.word_offsets) - 1
    out = _room_for_tokens(len(tokens.normal), len(tokens.starts), documents)
    for document in range(documents):
        _copy_words(tokens, document, is_left_out, out)
    return _used(out)


@inlined_kernel
def _copy_words(tokens: Tokens, document: int, is_left_out: BoolArray, out: Tokens) -> None:
    """Copy the other words of a document after those of the document before it."""
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


@kernel
def _room_for_tokens(normal_bytes: int, words: int, documents: int) -> Tokens:
    return Tokens(
        np.empty(normal_bytes + PADDING, np.uint8),
        np.zeros(documents + 1, np.int64),
        np.empty(words, np.int32),
        np.empty(words, np.int32),
        np.zeros(documents + 1, np.int64),
        np.empty(words, np.int64),
    )


@kernel
def _used(tokens: Tokens) -> _TokenArrays:
    """Return the arrays of tokens without the room that was not needed."""
    count = tokens.word_offsets[-1]
    return (
        tokens.normal[: tokens.normal_offsets[-1]],
        tokens.normal_offsets,
        tokens.starts[:count],
        tokens.ends[:count],
        tokens.word_offsets,
        tokens.hashes[:count],
    )
