"""Documents as rows of integers, word ids or code points, as the similarity kernels take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from textsim_db.compare.rows import Rows
from textsim_db.db.binary_format import dump_array
from textsim_db.db.binary_rows import load_int4_arrays
from textsim_db.db.dictionary import Dictionary, unknown_word
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import DatabaseError
from textsim_db.text.hashing import hash_spans
from textsim_db.text.tokens import Tokens, tokens_of

Tokenized = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]
"""All tokens, one document after another, and their offsets of shape (documents + 1,)."""


class Vocabulary:
    """Numbers for words that stay the same for the length of one search.

    They are the dictionary's ids, and negative numbers for words that it does not have, even where
    a word is added to it in the meantime.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self._unknown: dict[str, int] = {}
        self._hashes = np.empty(0, np.int64)

    def numbers(self, tokens: Tokens) -> npt.NDArray[np.int32]:
        """Return the number of each word: int32 of shape (words,)."""
        numbers = self.dictionary.find(tokens)
        if numbers.all() and not self._unknown:
            return numbers
        hashes = hash_spans(tokens.normal, tokens.starts, tokens.ends)
        suspects = np.flatnonzero((numbers == 0) | np.isin(hashes, self._hashes))
        for i, word in zip(suspects.tolist(), tokens.words(suspects), strict=True):
            if not numbers[i]:
                self._unknown.setdefault(word, -1 - len(self._unknown))
            numbers[i] = self._unknown.get(word, numbers[i])
        self._hashes = np.union1d(self._hashes, hashes[suspects])
        return numbers

    def texts(self, numbers: Sequence[int]) -> list[str]:
        """Return the words that numbers stand for; raises DatabaseError for one of none."""
        texts = self.dictionary.texts(number for number in numbers if number > 0)
        texts |= {number: word for word, number in self._unknown.items()}
        if unknown := set(numbers) - texts.keys():
            raise unknown_word(min(unknown))
        return [texts[number] for number in numbers]


class Documents:
    """Stored documents as rows of integers, for the similarity kernels.

    rows: (id, key, shingle count, word ids and signature as array_send gives them, normal form);
    word ids are None in a document whose words have none yet, and the normal form in the others.
    """

    def __init__(
        self, corpus: StoredCorpus, vocabulary: Vocabulary, rows: Sequence[tuple[Any, ...]]
    ) -> None:
        self.keys: list[str] = [row[1] for row in rows]
        self.shingle_counts = np.array([row[2] for row in rows], np.int64)
        self._signatures = [row[4] for row in rows]
        self._vocabulary = vocabulary
        self._words = [row[3] for row in rows]
        self._waiting = {i: row[5] for i, row in enumerate(rows) if row[3] is None}
        self._shingle = corpus.config.shingle
        self._tokenized = self._characters() if self._shingle.unit == "char" else self._numbers()

    def rows(self, of_shingles: bool = True) -> Rows:
        """Return what measures of shingles compare, word ids or code points, or else the words."""
        of_words = not of_shingles and self._shingle.unit == "char"
        tokens, offsets = self._numbers() if of_words else self._tokenized
        return Rows(tokens, offsets, self.shingle_counts, self._shingle.n)

    def _characters(self) -> Tokenized:
        words = [b"" if data is None else data for data in self._words]
        forms = normal_forms(*load_int4_arrays(words), self._vocabulary.dictionary)
        for i, form in self._waiting.items():
            forms[i] = form
        return _code_points(forms)

    def _numbers(self) -> Tokenized:
        return word_rows(self._words, self._waiting, self._vocabulary)

    def signatures(self, numbers: npt.NDArray[np.int64], num_hashes: int) -> npt.NDArray[np.int32]:
        """Return the signatures of some of the documents: int32 of shape (numbers, num_hashes).

        Raises DatabaseError where one has another length.
        """
        values, offsets = load_int4_arrays([self._signatures[i] for i in numbers.tolist()])
        for place in np.flatnonzero(np.diff(offsets) != num_hashes)[:1].tolist():
            raise DatabaseError(
                f'the signature of document "{self.keys[int(numbers[place])]}" has '
                f"{offsets[place + 1] - offsets[place]} values; expected {num_hashes}: "
                "run textsim check"
            )
        return values.reshape(len(numbers), num_hashes)


def word_rows(
    arrays: Sequence[bytes | None], waiting: Mapping[int, str], vocabulary: Vocabulary
) -> Tokenized:
    """Return the words of documents: word ids as array_send gives them, or for some normal forms."""
    words = list(arrays)
    if waiting:
        tokens = tokens_of([form.encode() for form in waiting.values()])
        numbers = vocabulary.numbers(tokens)
        spans = pairwise(tokens.word_offsets.tolist())
        for i, (start, end) in zip(waiting, spans, strict=True):
            words[i] = dump_array(numbers[start:end])
    return load_int4_arrays([data for data in words if data is not None])


def characters_of(tokens: Tokens) -> Tokenized:
    """Return the code points of the normal forms of a batch."""
    offsets = tokens.normal_offsets.tolist()
    return _code_points([tokens.span(start, end) for start, end in pairwise(offsets)])


def normal_forms(
    word_ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], dictionary: Dictionary
) -> list[str]:
    """Return the normal forms that word ids, as load_int4_arrays gives them, stand for."""
    texts = dictionary.texts(np.unique(word_ids).tolist())
    ids = word_ids.tolist()
    return [
        " ".join(map(texts.__getitem__, ids[start:end]))
        for start, end in pairwise(offsets.tolist())
    ]


def _code_points(forms: Sequence[str]) -> Tokenized:
    offsets = np.zeros(len(forms) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, forms), np.int64, len(forms)), out=offsets[1:])
    return np.frombuffer("".join(forms).encode("utf-32-le"), "<i4").astype(np.int32), offsets
