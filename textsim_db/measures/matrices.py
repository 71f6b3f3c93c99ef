"""Matrices of a few documents: items by document, signatures, and any measure of all pairs.

Items get integer ids in order of first appearance. The signatures are those of textbooks, for teaching:
h_i = min over the shingle values x of (a_i * x + b_i) mod p, with p = 2^31 - 1. Broder, Charikar,
Frieze and Mitzenmacher, "Min-wise independent permutations", 2000. Two of them estimate the Jaccard
similarity, with a standard error. A corpus does not use them: it uses textsim_db.sketch.fast_similarity,
which is many times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from textsim_db.errors import ConfigurationError, MeasureError, install_extra
from textsim_db.measures.by_name import measure_of
from textsim_db.measures.sets import Sequence, hashable, items_of, several_documents
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import MAX_HASHES
from textsim_db.sketch.fast_similarity import splitmix64
from textsim_db.text.hashing import hash_texts

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


PRIME = 2**31 - 1


class Coefficients(NamedTuple):
    """The hash functions (a x + b) mod p."""

    a: npt.NDArray[np.int64]
    """From 1 to p - 1: (num_hashes,)."""
    b: npt.NDArray[np.int64]
    """From 0 to p - 1: (num_hashes,)."""


@lru_cache(maxsize=64)
def coefficients(seed: int, num_hashes: int) -> Coefficients:
    """Draw a and b of each hash in turn from splitmix64."""
    draws = list(islice(splitmix64(seed), 2 * num_hashes))
    a = np.array([1 + draw % (PRIME - 1) for draw in draws[0::2]], np.int64)
    b = np.array([draw % PRIME for draw in draws[1::2]], np.int64)
    return Coefficients(a, b)


def signatures(
    hashes: npt.NDArray[np.uint64],
    offsets: npt.NDArray[np.int64],
    a: npt.NDArray[np.int64],
    b: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    """Return the signatures of several documents: int32 of shape (documents, num_hashes).

    hashes: the low 31 bits of the hash of each distinct shingle are used. offsets: (documents + 1,).
    The signature of a document without shingles is all p.
    """
    prime = np.uint64(PRIME)
    x = hashes & prime
    result = np.full((len(offsets) - 1, len(a)), PRIME, np.int32)
    documents = np.flatnonzero(np.diff(offsets))
    if len(documents):
        for k in range(len(a)):  # all products are below 2^62
            values = (np.uint64(a[k]) * x + np.uint64(b[k])) % prime
            result[documents, k] = np.minimum.reduceat(values, offsets[documents])
    return result


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


def signature_matrix(
    documents: Iterable[Sequence],
    num_hashes: int = 128,
    seed: int = 1,
    functions: Iterable[Callable[[int], int]] | None = None,
) -> npt.NDArray[np.int64]:
    """Return classic MinHash signatures of sets: int64 of shape (hashes, documents).

    A corpus has other signatures: see `textsim_db.sketch.fast_similarity`. Items that are not strings
    are hashed by their `repr()`. The column of an empty set is all 2^31 - 1.

    - `num_hashes`, `seed`: the number of hash functions, 1 to 4096, and their seed.
    - `functions`: hash functions to use instead. They take the items if all items are integers, else
      the items' rows in the characteristic matrix.

    Raises `ConfigurationError` for other numbers. Leskovec, Rajaraman and Ullman, "Mining of Massive
    Datasets", section 3.3.5.
    """
    sets = [
        list(dict.fromkeys(hashable(each)))
        for each in several_documents(documents, "signature_matrix")
    ]
    if functions is not None:
        return _by_functions(sets, list(functions))
    num_hashes = check_count(num_hashes, "num_hashes", 1, MAX_HASHES)
    seed = check_count(seed, "seed", 0, 2**63 - 1)
    offsets = np.zeros(len(sets) + 1, np.int64)
    np.cumsum([len(items) for items in sets], out=offsets[1:])
    hashes = hash_texts([_text(item) for items in sets for item in items])
    drawn = coefficients(seed, num_hashes)
    by_document = signatures(np.array(hashes, np.int64).view(np.uint64), offsets, *drawn)
    return by_document.T.astype(np.int64)


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


def _by_functions(
    sets: list[list[Hashable]], functions: list[Callable[[int], int]]
) -> npt.NDArray[np.int64]:
    rows: list[list[int]]
    if all(isinstance(item, int | np.integer) for items in sets for item in items):
        rows = [[int(cast(int, item)) for item in items] for items in sets]
    else:
        vocabulary = Vocabulary()
        rows = [vocabulary.encode(items).tolist() for items in sets]
    values = [[min(map(function, row), default=PRIME) for row in rows] for function in functions]
    return np.array(values, np.int64).reshape(len(functions), len(sets))


def _text(item: Hashable) -> str:
    if isinstance(item, str) and not any("\ud800" <= character <= "\udfff" for character in item):
        return item
    # No text contains NUL, so the string "1" and the integer 1 differ.
    return f"\0{item.item() if isinstance(item, np.generic) else item!r}"
