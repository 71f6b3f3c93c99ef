"""Texts in UTF-8, one after another, and their words; tables of words, and kernels for code points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import ByteArray, Int32Array, Int64Array, inlined_kernel, kernel
from textsim_db.errors import DocumentError
from textsim_db.text.hashing import (
    PADDING,
    SPREAD,
    HashTable,
    enter,
    find,
    find_next,
    hash_span,
    hash_table,
    is_taken,
    number_at,
)
from textsim_db.text.storable import MAX_BYTES

MAX_BATCH_BYTES = 2**30 - 16
"""Bytes of the largest batch: normal forms may be twice as long, and their spans are int32."""


class Utf8(NamedTuple):
    """Several texts in UTF-8."""

    data: ByteArray
    """One text after another; PADDING bytes follow in memory."""
    offsets: Int64Array
    """The bounds of each text: (texts + 1,)."""

    def of(self, text: int) -> bytes:
        return self.data[self.offsets[text] : self.offsets[text + 1]].tobytes()


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
        return len(self.normal_offsets) - 1

    @property
    def utf8(self) -> Utf8:
        return Utf8(self.normal, self.normal_offsets)

    def take(self, chosen: slice | Int64Array) -> Tokens:
        """Return the chosen words. The result does not tell which document has which words."""
        return self._replace(
            starts=self.starts[chosen], ends=self.ends[chosen], hashes=self.hashes[chosen]
        )

    def slices(self, size: int) -> Iterator[Tokens]:
        """Yield the documents in slices with normal forms of about size bytes."""
        if len(self.normal) <= size:
            yield self
            return
        places = np.arange(0, len(self.normal) + size, size)
        cuts = np.unique(np.searchsorted(self.normal_offsets[:-1], places)).tolist()
        for first, last in pairwise([0, *cuts, self.documents]):
            if first < last:
                yield self.consecutive(slice(first, last))

    def consecutive(self, documents: slice) -> Tokens:
        """Return consecutive documents; the slice has a start and a stop."""
        bounds = slice(documents.start, documents.stop + 1)
        start, end = self.word_offsets[documents.start], self.word_offsets[documents.stop]
        return self.take(slice(start, end))._replace(
            normal_offsets=self.normal_offsets[bounds],
            word_offsets=self.word_offsets[bounds] - start,
        )

    def span(self, start: int, end: int) -> str:
        return self.normal[start:end].tobytes().decode()

    def form_of(self, document: int) -> str:
        return self.span(int(self.normal_offsets[document]), int(self.normal_offsets[document + 1]))

    def forms(self) -> list[str]:
        return [self.span(start, end) for start, end in pairwise(self.normal_offsets.tolist())]

    def words(self, numbers: Int64Array) -> list[str]:
        data = self.normal.data
        starts, ends = self.starts[numbers].tolist(), self.ends[numbers].tolist()
        return [str(data[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]


class Places(NamedTuple):
    """The places of words in the texts that are split; empty if nobody asks."""

    starts: Int32Array
    """The first byte of each word: (words,)."""
    ends: Int32Array
    """The byte after each word: (words,)."""


def concatenate(texts: Sequence[bytes | memoryview]) -> Utf8:
    """Return the texts as one array of bytes with offsets."""
    return _with_offsets(bytearray().join((*texts, bytes(PADDING))), texts)


def encode_all(texts: Sequence[str]) -> Utf8 | None:
    """Return texts as one array; None if to_bytes() might refuse one of them."""
    if any("\0" in text or len(text) > MAX_BYTES // 4 for text in texts):  # at most four bytes each
        return None
    if all(map(str.isascii, texts)):
        return _with_offsets(bytearray("".join([*texts, " " * PADDING]), "ascii"), texts)
    try:
        return concatenate([text.encode() for text in texts])
    except UnicodeEncodeError:
        return None


def _with_offsets(data: bytearray, texts: Sequence[Sized]) -> Utf8:
    """Return the joined texts as an array; data: the texts in UTF-8, with padding.

    Kernels make arrays that can be written. For others they would be compiled a second time.
    """
    ends = accumulate(map(len, texts), initial=0)
    offsets = np.fromiter(ends, np.int64, len(texts) + 1)
    return Utf8(np.frombuffer(data, np.uint8)[:-PADDING], offsets)


def check_batch_size(size: int) -> None:
    if size > MAX_BATCH_BYTES:
        raise DocumentError(
            f"the texts of a batch are {size} bytes long; at most {MAX_BATCH_BYTES} are possible; "
            "add fewer or shorter texts at once"
        )


@inlined_kernel
def decode(data: ByteArray, at: int) -> tuple[np.int64, int]:
    """Return the code point that starts at a byte of valid UTF-8, and the start of the next one."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, at + 1
    second = np.int64(data[at + 1]) & 0x3F
    if first < 0xE0:
        return (first & 0x1F) << 6 | second, at + 2
    third = np.int64(data[at + 2]) & 0x3F
    if first < 0xF0:
        return (first & 0x0F) << 12 | second << 6 | third, at + 3
    fourth = np.int64(data[at + 3]) & 0x3F
    return (first & 0x07) << 18 | second << 12 | third << 6 | fourth, at + 4


@inlined_kernel
def decode_before(data: ByteArray, end: int) -> tuple[np.int64, int]:
    """Return the code point that ends before a byte of valid UTF-8, and where it starts."""
    at = end - 1
    while data[at] & 0xC0 == 0x80:
        at -= 1
    return decode(data, at)[0], at


@inlined_kernel
def encode(out: ByteArray, at: int, point: int | np.int64) -> int:
    """Write a code point as UTF-8; return the position after it."""
    if point < 0x80:
        out[at] = point
        return at + 1
    if point < 0x800:
        out[at] = 0xC0 | point >> 6
        out[at + 1] = 0x80 | point & 0x3F
        return at + 2
    if point < 0x10000:
        out[at] = 0xE0 | point >> 12
        out[at + 1] = 0x80 | point >> 6 & 0x3F
        out[at + 2] = 0x80 | point & 0x3F
        return at + 3
    out[at] = 0xF0 | point >> 18
    out[at + 1] = 0x80 | point >> 12 & 0x3F
    out[at + 2] = 0x80 | point >> 6 & 0x3F
    out[at + 3] = 0x80 | point & 0x3F
    return at + 4


@inlined_kernel
def copy_span(data: ByteArray, start: int, end: int, out: ByteArray, at: int) -> int:
    for k in range(start, end):
        out[at] = data[k]
        at += 1
    return at


@inlined_kernel
def same_spans(
    a: ByteArray, start: int, end: int, b: ByteArray, other_start: int, other_end: int
) -> bool:
    if end - start != other_end - other_start:
        return False
    for i in range(end - start):
        if a[start + i] != b[other_start + i]:
            return False
    return True


class WordTable(NamedTuple):
    """Distinct words, to look words up in."""

    words: Utf8
    """The words in UTF-8."""
    table: HashTable
    """The number of each word, by its hash."""


def word_table(words: Sequence[bytes]) -> WordTable:
    return _table_of_words(concatenate(words), SPREAD)


@kernel
def _table_of_words(words: Utf8, spread: int) -> WordTable:
    hashes = np.empty(len(words.offsets) - 1, np.uint64)
    table = hash_table(hashes, len(hashes), spread)
    for number in range(len(hashes)):
        hashes[number] = hash_span(words.data, words.offsets[number], words.offsets[number + 1])
        slot = find(table, hashes[number])
        while is_taken(table, slot):
            slot = find_next(table, hashes[number], slot)
        enter(table, slot, number)
    return WordTable(words, table)


@inlined_kernel
def number_of_span(
    words: WordTable, data: ByteArray, start: int, end: int, span_hash: np.uint64
) -> int:
    """Return the number of a span of bytes in a table, or -1; span_hash: hash_span() of it."""
    listed, offsets = words.words
    slot = find(words.table, span_hash)
    while is_taken(words.table, slot):
        k = number_at(words.table, slot)
        if same_spans(data, start, end, listed, offsets[k], offsets[k + 1]):
            return k
        slot = find_next(words.table, span_hash, slot)
    return -1
