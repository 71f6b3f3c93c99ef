"""Stored documents as the exact measures compare them: rows of word ids, or normal forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import ByteArray, Int32Array, Int64Array, inlined_kernel, kernel
from textsim_db.compare.pair_values import Rows, code_points
from textsim_db.db.binary_format import dump_array, load_int4_arrays, load_signatures
from textsim_db.db.dictionary import Dictionary, dictionary_of, unknown_word
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.settings.named_values import Shingle
from textsim_db.sketch.ragged import Parts, Signatures
from textsim_db.text.hashing import SPREAD, enter, find, hash_table, is_taken, number_at
from textsim_db.text.tokens import tokens_of
from textsim_db.text.utf8 import Tokens, Utf8, concatenate, copy_span

_SPACE = 0x20


def compose_forms(
    word_ids: Int32Array, offsets: Int64Array, texts_of: Callable[[list[int]], Mapping[int, str]]
) -> list[bytes]:
    """Return the normal form of each document in UTF-8.

    word_ids, offsets: as load_int4_arrays returns them; texts_of: returns the words of distinct ids.
    A word that it does not return is left empty.
    """
    distinct, places = _distinct(word_ids, SPREAD)
    ids = distinct.tolist()
    texts = texts_of(ids)
    words = concatenate([texts.get(id_, "").encode() for id_ in ids])
    data, bounds = _compose(words, places, offsets)
    composed = data.tobytes()
    return [composed[start:end] for start, end in pairwise(bounds.tolist())]


@kernel
def _distinct(word_ids: Int32Array, spread: int) -> tuple[Int32Array, Int64Array]:
    """Return the distinct ids, and for each id its place among them."""
    table = hash_table(np.empty(len(word_ids), np.uint64), len(word_ids), spread)
    distinct = np.empty(len(word_ids), np.int32)
    places = np.empty(len(word_ids), np.int64)
    count = 0
    for i in range(len(word_ids)):
        key = np.uint64(word_ids[i])
        slot = find(table, key)
        if not is_taken(table, slot):
            enter(table, slot, count)
            table.hashes[count], distinct[count] = key, word_ids[i]
            count += 1
        places[i] = number_at(table, slot)
    return distinct[:count], places


@kernel
def _compose(words: Utf8, places: Int64Array, offsets: Int64Array) -> tuple[ByteArray, Int64Array]:
    """Return all forms in one array, and the bounds of each form."""
    out = np.empty(_total_size(words, places), np.uint8)
    bounds = np.zeros(len(offsets), np.int64)
    at = 0
    for document in range(len(offsets) - 1):
        for i in range(offsets[document], offsets[document + 1]):
            if i > offsets[document]:
                out[at] = _SPACE
                at += 1
            start, end = words.offsets[places[i]], words.offsets[places[i] + 1]
            at = copy_span(words.data, start, end, out, at)
        bounds[document + 1] = at
    return out[:at], bounds


@inlined_kernel
def _total_size(words: Utf8, places: Int64Array) -> int:
    size = len(places)
    for place in places:
        size += words.offsets[place + 1] - words.offsets[place]
    return size


DOCUMENTS_AT_ONCE = 5_000
"""Documents read at once when a whole corpus is read. More take more memory."""

TokensAndBounds = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]
"""All tokens, one document after another, and their offsets of shape (documents + 1,)."""


class WordNumbers:
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

    rows: (id, key, shingle count, word ids, normal form, part, guard), and the signature if
    signatures() is called. Word ids and signature are in the format of array_send. A document has
    either word ids, or a normal form: in a corpus of characters, or while its words have no ids.
    """

    def __init__(
        self, corpus: StoredCorpus, vocabulary: WordNumbers, rows: Sequence[tuple[Any, ...]]
    ) -> None:
        self.keys: list[str] = [row[1] for row in rows]
        self.shingle_counts = np.array([row[2] for row in rows], np.int64)
        self._rows = rows
        self._waiting = {i: row[4] for i, row in enumerate(rows) if row[3] is None}
        self._vocabulary = vocabulary
        self.config = corpus.config
        self._shingle = corpus.config.shingle

    @cached_property
    def ids(self) -> npt.NDArray[np.int64]:
        return np.array([row[0] for row in self._rows], np.int64)

    @property
    def parts(self) -> Parts:
        return np.array([row[5] for row in self._rows], np.int64) if self.config.scoped else None

    @property
    def guards(self) -> Int64Array | None:
        return np.array([row[6] for row in self._rows], np.int64) if self.config.guards else None

    def rows(self, of_shingles: bool = True) -> Rows:
        """Return the integers that a measure compares: word ids, or code points of characters."""
        is_char = of_shingles and self._shingle.unit == "char"
        tokens, offsets = self._characters() if is_char else self._words()
        return Rows(tokens, offsets, self.shingle_counts, self._shingle.n)

    def _words(self) -> TokensAndBounds:
        return stored_word_numbers([row[3] for row in self._rows], self._waiting, self._vocabulary)

    def _characters(self) -> TokensAndBounds:
        word_ids, stored = [row[3] for row in self._rows], [row[4] for row in self._rows]
        return code_points(normal_forms(word_ids, stored, self._vocabulary.dictionary))

    def forms(self, numbers: npt.NDArray[np.int64]) -> list[str]:
        rows = [self._rows[i] for i in numbers.tolist()]
        columns = [row[3] for row in rows], [row[4] for row in rows]
        return normal_forms(*columns, self._vocabulary.dictionary)

    def signatures(self, numbers: npt.NDArray[np.int64]) -> Signatures:
        """Return the signatures of documents by number; raises DatabaseError for a damaged one."""
        chosen = numbers.tolist()
        values = [self._rows[i][7] for i in chosen]
        return load_signatures(values, [self.keys[i] for i in chosen], self.config)


def rows_of_tokens(
    tokens: Tokens,
    shingle_counts: npt.NDArray[np.int64],
    vocabulary: WordNumbers,
    shingle: Shingle,
    of_shingles: bool,
) -> Rows:
    """Return texts that are not stored as rows that can be compared with stored documents."""
    if of_shingles and shingle.unit == "char":
        numbers, offsets = code_points(tokens.forms())
    else:
        numbers, offsets = vocabulary.numbers(tokens), tokens.word_offsets
    return Rows(numbers, offsets, shingle_counts, shingle.n)


def stored_word_numbers(
    arrays: Sequence[bytes | None], waiting: Mapping[int, str], vocabulary: WordNumbers
) -> TokensAndBounds:
    """Return the words of documents as numbers; waiting: the forms of those without ids, by place."""
    arrays = list(arrays)
    if waiting:
        tokens = tokens_of([form.encode() for form in waiting.values()])
        numbers = vocabulary.numbers(tokens)
        spans = pairwise(tokens.word_offsets.tolist())
        for i, (start, end) in zip(waiting, spans, strict=True):
            arrays[i] = dump_array(numbers[start:end])
    return load_int4_arrays([data for data in arrays if data is not None])


def normal_forms(
    word_ids: Sequence[bytes | None], stored: Sequence[str | None], dictionary: Dictionary
) -> list[str]:
    """Return the normal forms of documents: the stored form, or the form composed from the word ids."""
    if None not in stored:
        return [text for text in stored if text is not None]
    arrays = load_int4_arrays([data or b"" for data in word_ids])
    composed = compose_forms(*arrays, dictionary.texts)
    forms = zip(composed, stored, strict=True)
    return [form.decode() if text is None else text for form, text in forms]


def forms_of_rows(store: Store, rows: Sequence[tuple[Any, ...]]) -> list[str]:
    return normal_forms([row[3] for row in rows], [row[4] for row in rows], dictionary_of(store))


class Traits(NamedTuple):
    language: str | None = None
    scope: str | None = None
    source_id: int | None = None
    """The id of its attached table; None if a client added it."""
    guard: int | None = None


def traits(store: Store, keys: Sequence[str]) -> dict[str, Traits]:
    rows = store.read(statements.TRAITS_OF_KEYS, [list(keys)])
    return {key: Traits(*row) for key, *row in rows}


def forms(store: Store, keys: Sequence[str]) -> dict[str, str]:
    rows = rows_of_keys(store, keys)
    return dict(zip((row[1] for row in rows), forms_of_rows(store, rows), strict=True))


def rows_of_keys(store: Store, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return documents in the form that StoredDocuments expects, each with its source at the end."""
    return store.read(statements.DOCUMENTS_OF_KEYS, [list(keys)], binary=True)
