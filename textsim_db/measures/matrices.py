"""Matrices of a few documents: items by document, and any measure of all pairs.

Items get integer ids in order of first appearance.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.errors import ConfigurationError, MeasureError, install_extra
from textsim_db.measures.by_name import measure_of
from textsim_db.measures.sets import Sequence, hashable, items_of, several_documents

if TYPE_CHECKING:
    from scipy.sparse import csc_array


class Vocabulary:
    """Words with ids from 0 on, in order of first appearance.

    It lives in memory and is independent of the dictionary in the database.

        >>> Vocabulary(["the", "cat"]).encode(["cat", "sat"])
        array([1, 2], dtype=int32)
    """

    def __init__(self, words: Iterable[Hashable] = ()) -> None:
        self._ids: dict[Hashable, int] = {}
        self._words: list[Hashable] = []
        self.encode(words)

    def __len__(self) -> int:
        return len(self._words)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def encode(self, words: Sequence) -> npt.NDArray[np.int32]:
        """Return the ids of words, int32 of shape (words,); new words get the next ids.

        Raises `MeasureError` for a word that cannot be hashed.
        """
        return np.array([self._id(word) for word in hashable(words)], np.int32)

    def decode(self, ids: Sequence) -> list[Hashable]:
        """Return the words of ids; raise `MeasureError` for an id that no word has."""
        words = []
        for word_id in items_of(ids):
            if not isinstance(word_id, int | np.integer) or not 0 <= word_id < len(self._words):
                raise MeasureError(f"no word has the id {word_id!r}; expected 0 to {len(self) - 1}")
            words.append(self._words[int(word_id)])
        return words

    def _id(self, word: Hashable) -> int:
        word_id = self._ids.setdefault(word, len(self._words))
        if word_id == len(self._words):
            self._words.append(word)
        return word_id


class CharacteristicMatrix(NamedTuple):
    """A matrix of items by documents, which is true if the document has the item."""

    matrix: csc_array
    """A `scipy.sparse.csc_array` of bool of shape (items, documents)."""
    items: list[Hashable]
    """The item of each row, in order of first appearance."""


def characteristic_matrix(documents: Iterable[Sequence]) -> CharacteristicMatrix:
    """Return the characteristic matrix of sets, with a column for each set.

    Raises `ConfigurationError` if SciPy is not installed. Leskovec, Rajaraman and Ullman, "Mining of
    Massive Datasets", section 3.3.1.

        >>> characteristic_matrix(["ab", "bc"]).matrix.toarray().tolist()
        [[True, False], [True, True], [False, True]]
    """
    try:
        from scipy.sparse import csc_array
    except ImportError as error:
        raise ConfigurationError(
            f"the characteristic matrix needs SciPy: {install_extra('measures')}"
        ) from error
    vocabulary = Vocabulary()
    rows = [
        np.unique(vocabulary.encode(each))
        for each in several_documents(documents, "characteristic_matrix")
    ]
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    indices = np.concatenate([np.empty(0, np.int32), *rows])
    ones = np.ones(len(indices), bool)
    matrix = csc_array((ones, indices, offsets), shape=(len(vocabulary), len(rows)))
    return CharacteristicMatrix(matrix, list(vocabulary))


def pairwise_matrix(
    documents: Iterable[Sequence], measure: str | Callable[[Sequence, Sequence], float]
) -> npt.NDArray[np.float64]:
    """Return a measure of all pairs of documents: float64 of shape (documents, documents).

    `measure` is a name in `MEASURES`, or a function of two sequences. Raises `MeasureError` for an
    unknown name, and the errors of the measure.

        >>> pairwise_matrix(["ab", "bc"], "jaccard").round(2).tolist()
        [[1.0, 0.33], [0.33, 1.0]]
    """
    items = [
        x if isinstance(x, str | Mapping | Set) else list(items_of(x))
        for x in several_documents(documents, "pairwise_matrix")
    ]
    function = measure_of(measure).function if isinstance(measure, str) else measure
    values = [[function(a, b) for b in items] for a in items]
    return np.array(values, np.float64).reshape(len(items), len(items))
