"""From text to normal form, words and shingles; pure, with no database.

The normal form: code points not assigned in Unicode 13.0 become spaces; the marks past the 30th of a
run are dropped; NFKC; simple (one-to-one) lower case; every maximal run of letters, marks and numbers
is a word, except that a letter or number of a script written without spaces (Han, Hiragana, Katakana,
Thai, Lao, Khmer, Myanmar), with the marks that follow it, is a word of its own. Words are joined by
one space.

Only NFKC's sorting of marks is not linear, and no script writes 30 of them. Counted as marks are
category M and the half-width U+FF9E and U+FF9F, which NFKC turns into marks.
"""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from textsim_db.errors import DocumentError
from textsim_db.settings import Shingle
from textsim_db.text import text_kernels
from textsim_db.text.unicode_tables import Tables, tables

MAX_BYTES = 128 * 1024 * 1024
"""The longest document in bytes of UTF-8: its word ids must fit one PostgreSQL value."""
MAX_BATCH_BYTES = 2**30 - 16
"""The most that is taken at once: normal forms may be twice as long, and spans are int32."""

PIECE_BYTES = 64 * 1024
"""NFKC takes this many bytes at a time: it holds the GIL, and signals wait until it returns."""

_SPREAD = np.uint64(secrets.randbits(64) | 1)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The normal forms of several documents, and where their words are.

    normal: uint8, the normal forms in UTF-8, one after another. normal_offsets: int64 of shape
    (documents + 1,), where each begins and ends. starts, ends: int32 of shape (words,), the bytes
    of each word. word_offsets: int64 of shape (documents + 1,), the words of each document.
    """

    normal: npt.NDArray[np.uint8]
    normal_offsets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]
    word_offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.normal_offsets) - 1

    def span(self, start: int, end: int) -> str:
        """Return the text of a span of bytes."""
        return self.normal[start:end].tobytes().decode()

    def words(self, numbers: npt.NDArray[np.int64]) -> list[str]:
        """Return the texts of words by their numbers in the batch."""
        data = self.normal.data
        starts, ends = self.starts[numbers].tolist(), self.ends[numbers].tolist()
        return [str(data[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]


@dataclass(frozen=True, slots=True)
class Shingles:
    """The distinct shingles of several documents, in order of first appearance.

    hashes: uint64 of shape (distinct shingles,), hashtextextended(shingle, 0). offsets: int64 of shape
    (documents + 1,). firsts, lasts: int32, the bytes of every shingle in the normal forms, and
    chosen: int32 of shape (distinct shingles,), which of those are the distinct ones.
    """

    hashes: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]
    firsts: npt.NDArray[np.int32]
    lasts: npt.NDArray[np.int32]
    chosen: npt.NDArray[np.int32]


def to_bytes(text: str) -> bytes:
    """Return the text as UTF-8; raise DocumentError for what PostgreSQL cannot store.

    That is a text that is not a str, a NUL character, a lone surrogate, or over 128 MiB.
    """
    if not isinstance(text, str):
        raise DocumentError(f"the text is of type {type(text).__name__}; expected str")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise DocumentError(
            f"the text has a lone surrogate U+{ord(text[error.start]):04X} "
            f"at character {error.start + 1}"
        ) from None
    if b"\0" in data:
        raise DocumentError(f"the text has a NUL character at character {text.index(chr(0)) + 1}")
    if len(data) > MAX_BYTES:
        raise DocumentError(
            f"the text is {len(data)} bytes long; at most {MAX_BYTES} can be indexed"
        )
    return data


def tokenize(texts: Sequence[bytes]) -> Tokens:
    """Bring several texts in UTF-8 (see to_bytes) into normal form and find their words."""
    table = tables()
    data, offsets = _concatenate(texts)
    unstable = np.flatnonzero(text_kernels.find_unstable(data, offsets, table.order, table.kind))
    if len(unstable):
        mended = list(texts)
        for i in unstable:
            mended[i] = _compose(mended[i], table)
        data, offsets = _concatenate(mended)
    return Tokens(*text_kernels.split_words(data, offsets, table.kind, table.lower))


def tokens_of(normal_forms: Sequence[bytes]) -> Tokens:
    """Find the words of texts that are in normal form already, such as stored ones.

    All of tokenize but NFKC: folding a capital can leave a letter and a mark that NFKC would join,
    so that the normal form of a normal form is not always itself. What changes here was none.
    """
    table = tables()
    data, offsets = _concatenate(normal_forms)
    return Tokens(*text_kernels.split_words(data, offsets, table.kind, table.lower))


def find_shingles(tokens: Tokens, shingle: Shingle) -> Shingles:
    """Return the distinct shingles of each document.

    A document with words but fewer than n has one shingle, its whole normal form; a document with
    no words has none.
    """
    if shingle.unit == "word":
        firsts, lasts, offsets = text_kernels.word_shingles(
            tokens.starts, tokens.ends, tokens.word_offsets, shingle.n
        )
    else:
        firsts, lasts, offsets = text_kernels.char_shingles(
            tokens.normal, tokens.normal_offsets, shingle.n
        )
    hashes, chosen, offsets = text_kernels.distinct_shingles(
        tokens.normal, firsts, lasts, offsets, _SPREAD
    )
    return Shingles(hashes, offsets, firsts, lasts, chosen)


def normal_form(text: str) -> str:
    """Return the normal form of a text; raises DocumentError for NUL and lone surrogates."""
    return tokenize([to_bytes(text)]).normal.tobytes().decode()


def words(text: str) -> list[str]:
    """Return the words of a text in order; raises DocumentError for NUL and lone surrogates."""
    return normal_form(text).split()


def shingles(text: str, shingle: str) -> list[str]:
    """Return the distinct shingles of a text in order of first appearance.

    shingle is "word:N" or "char:N". Raises ConfigurationError for anything else and DocumentError
    for NUL and lone surrogates. Broder, "On the resemblance and containment of documents", 1997.
    """
    tokens = tokenize([to_bytes(text)])
    found = find_shingles(tokens, Shingle.parse(shingle))
    firsts, lasts = found.firsts[found.chosen], found.lasts[found.chosen]
    return [tokens.span(a, b) for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True)]


def _compose(text: bytes, table: Tables) -> bytes:
    """Return the text in NFKC, as every version of Unicode since 13.0 computes it."""
    data, cuts = text_kernels.prepare_pieces(
        np.frombuffer(text, np.uint8), table.order, table.kind, PIECE_BYTES
    )
    pieces: list[bytes] = []
    size = 0
    for start, end in pairwise(cuts.tolist()):
        piece = str(data.data[start:end], "utf-8")
        pieces.append(unicodedata.normalize("NFKC", piece).encode())
        size += len(pieces[-1])
        _check_batch_size(size)
    return b"".join(pieces)


def _concatenate(texts: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
    _check_batch_size(int(offsets[-1]))
    return np.frombuffer(b"".join(texts), np.uint8), offsets


def _check_batch_size(size: int) -> None:
    if size > MAX_BATCH_BYTES:
        raise DocumentError(
            f"the texts of a batch are {size} bytes long; at most {MAX_BATCH_BYTES} can be"
        )
