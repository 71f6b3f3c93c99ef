"""Stored documents as rows of integers, word ids or code points, which the exact measures compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from textsim_db.compare.document_rows import Rows
from textsim_db.db.binary_format import dump_array
from textsim_db.db.binary_rows import load_int4_arrays
from textsim_db.db.dictionary import Dictionary, unknown_word
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import DatabaseError
from textsim_db.read.normal_forms import compose_forms
from textsim_db.settings import Shingle
from textsim_db.text.array_types import Int16Array
from textsim_db.text.tokens import Tokens, tokens_of

_ARRAY_HEADER = 20
_INT2 = np.dtype([("length", ">i4"), ("value", ">i2")])

Ragged = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]
"""All tokens, one document after another, and their offsets of shape (documents + 1,)."""


class Vocabulary:
    """Numbers of words, which stay the same during one search.

    A word of the dictionary has its id. A word that is not in the dictionary gets a negative number,
    and keeps it even if another session adds the word during the search.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self._unknown: dict[str, int] = {}
        self._hashes = np.empty(0, np.int64)

    def numbers(self, tokens: Tokens) -> npt.NDArray[np.int32]:
        """Return the number of each word: int32 of shape (words,)."""
        numbers = self.dictionary.find(tokens)
        if not self._unknown and numbers.all():
            return numbers
        hashes = tokens.hashes
        suspects = np.flatnonzero((numbers == 0) | np.isin(hashes, self._hashes))
        for i, word in zip(suspects.tolist(), tokens.words(suspects), strict=True):
            if not numbers[i]:
                self._unknown.setdefault(word, -1 - len(self._unknown))
            numbers[i] = self._unknown.get(word, numbers[i])
        self._hashes = np.union1d(self._hashes, hashes[suspects])
        return numbers

    def texts(self, numbers: Sequence[int]) -> list[str]:
        """Return the words of numbers; raises DatabaseError for a number without a word."""
        texts = self.dictionary.texts(number for number in numbers if number > 0)
        texts |= {number: word for word, number in self._unknown.items()}
        if unknown := set(numbers) - texts.keys():
            raise unknown_word(min(unknown))
        return [texts[number] for number in numbers]


class StoredDocuments:
    """Stored documents, as a search or a comparison reads them.

    rows: (id, key, shingle count, word ids, normal form), and the signature if signatures() is
    called. Word ids and signature are in the format of array_send. A document has either word ids, or
    a normal form if its words have no ids yet.
    """

    def __init__(
        self, corpus: StoredCorpus, vocabulary: Vocabulary, rows: Sequence[tuple[Any, ...]]
    ) -> None:
        self.keys: list[str] = [row[1] for row in rows]
        self.shingle_counts = np.array([row[2] for row in rows], np.int64)
        self._rows = rows
        self._waiting = {i: row[4] for i, row in enumerate(rows) if row[3] is None}
        self._vocabulary = vocabulary
        self._shingle = corpus.config.shingle

    @cached_property
    def ids(self) -> npt.NDArray[np.int64]:
        """The ids: int64 of shape (documents,)."""
        return np.array([row[0] for row in self._rows], np.int64)

    def rows(self, of_shingles: bool = True) -> Rows:
        """Return the integers that a measure compares: word ids, or code points.

        Code points only if the measure compares shingles and the shingles are characters.
        """
        is_char = of_shingles and self._shingle.unit == "char"
        tokens, offsets = self._characters() if is_char else self._words()
        return Rows(tokens, offsets, self.shingle_counts, self._shingle.n)

    def _words(self) -> Ragged:
        return word_numbers([row[3] for row in self._rows], self._waiting, self._vocabulary)

    def _characters(self) -> Ragged:
        word_ids = [row[3] or b"" for row in self._rows]
        forms = normal_forms(*load_int4_arrays(word_ids), self._vocabulary.dictionary)
        for i, form in self._waiting.items():
            forms[i] = form
        return _code_points(forms)

    def signatures(self, numbers: npt.NDArray[np.int64], num_hashes: int) -> Int16Array:
        """Return the signatures of documents by their place: int16 of shape (numbers, num_hashes).

        Raises DatabaseError if a signature has another length.
        """
        signatures = [self._rows[i][5] for i in numbers.tolist()]
        layout = _signature_layout(num_hashes)
        for i, signature in zip(numbers.tolist(), signatures, strict=True):
            if len(signature) != layout.itemsize:
                size = max(len(signature) - _ARRAY_HEADER, 0) // _INT2.itemsize
                raise DatabaseError(
                    f'the signature of document "{self.keys[i]}" has {size} values, '
                    f"expected {num_hashes}; run textsim check"
                )
        values: Int16Array = np.frombuffer(b"".join(signatures), layout)["values"]["value"]
        return values.astype(np.int16)


def signatures_as_sent(signatures: Int16Array) -> list[bytes]:
    """Return each signature in the format of array_send; signatures: (documents, num_hashes)."""
    layout = _signature_layout(signatures.shape[1])
    rows = np.zeros(len(signatures), layout)
    header = dump_array(np.zeros(signatures.shape[1], np.int16))[:_ARRAY_HEADER]
    rows["header"] = np.frombuffer(header, layout["header"])
    rows["values"]["length"], rows["values"]["value"] = signatures.itemsize, signatures
    data, size = rows.tobytes(), layout.itemsize
    return [data[start : start + size] for start in range(0, len(data), size)]


@lru_cache(maxsize=16)
def _signature_layout(num_hashes: int) -> np.dtype[np.void]:
    """Return the layout in which array_send sends an int2[] of num_hashes values."""
    return np.dtype([("header", f"V{_ARRAY_HEADER}"), ("values", _INT2, num_hashes)])


def rows_of_tokens(
    tokens: Tokens,
    shingle_counts: npt.NDArray[np.int64],
    vocabulary: Vocabulary,
    shingle: Shingle,
    of_shingles: bool,
) -> Rows:
    """Return texts that are not stored as rows that can be compared with stored documents."""
    if of_shingles and shingle.unit == "char":
        spans = pairwise(tokens.normal_offsets.tolist())
        numbers, offsets = _code_points([tokens.span(start, end) for start, end in spans])
    else:
        numbers, offsets = vocabulary.numbers(tokens), tokens.word_offsets
    return Rows(numbers, offsets, shingle_counts, shingle.n)


def word_numbers(
    arrays: Sequence[bytes | None], waiting: Mapping[int, str], vocabulary: Vocabulary
) -> Ragged:
    """Return the words of documents as numbers.

    arrays: the word ids of each document in the format of array_send, or None if its words have no
    ids yet. waiting: the normal forms of the documents with None, by their place.
    """
    arrays = list(arrays)
    if waiting:
        tokens = tokens_of([form.encode() for form in waiting.values()])
        numbers = vocabulary.numbers(tokens)
        spans = pairwise(tokens.word_offsets.tolist())
        for i, (start, end) in zip(waiting, spans, strict=True):
            arrays[i] = dump_array(numbers[start:end])
    return load_int4_arrays([data for data in arrays if data is not None])


def normal_forms(
    word_ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], dictionary: Dictionary
) -> list[str]:
    """Return the normal forms of documents, from word ids as load_int4_arrays returns them."""
    return [form.decode() for form in compose_forms(word_ids, offsets, dictionary.texts)]


def _code_points(forms: Sequence[str]) -> Ragged:
    offsets = np.zeros(len(forms) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, forms), np.int64, len(forms)), out=offsets[1:])
    return np.frombuffer("".join(forms).encode("utf-32-le"), "<i4").astype(np.int32), offsets
