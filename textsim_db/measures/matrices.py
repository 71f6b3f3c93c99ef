"""Matrices of a few documents: items by document, any measure of all pairs, and classic MinHash.

Items get integer ids in order of first appearance. The signature of a set has one value for each hash
function: the smallest hash of its items. Two sets have the same smallest hash with a probability equal
to their Jaccard similarity. Broder, Charikar, Frieze and Mitzenmacher, "Min-wise independent
permutations", 2000. Locality-sensitive hashing cuts the signature matrix into bands of some rows. Two
documents are candidates if all their values in one band are equal: Indyk and Motwani, "Approximate
nearest neighbors", 1998.

A corpus does not use this: textsim_db.sketch.fast_similarity is many times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from textsim_db.errors import MeasureError, needs_extra, suggestion
from textsim_db.measures.by_name import measure_of
from textsim_db.measures.sets import Sequence, hashable, several_documents
from textsim_db.settings.check_values import check_count, items_of
from textsim_db.settings.choose_bands import MAX_HASHES
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
    with needs_extra("measures", "the characteristic matrix needs SciPy"):
        from scipy.sparse import csc_array
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


PRIME = 2**31 - 1
HashFunction = Callable[[int], int]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]


class Coefficients(NamedTuple):
    """The hash functions (a x + b) mod p."""

    a: Int64Array
    """From 1 to p - 1: (num_hashes,)."""
    b: Int64Array
    """From 0 to p - 1: (num_hashes,)."""


@lru_cache(maxsize=64)
def coefficients(seed: int, num_hashes: int) -> Coefficients:
    """Draw a and b of each hash in turn from splitmix64."""
    draws = list(islice(splitmix64(seed), 2 * num_hashes))
    a = np.array([1 + draw % (PRIME - 1) for draw in draws[0::2]], np.int64)
    b = np.array([draw % PRIME for draw in draws[1::2]], np.int64)
    return Coefficients(a, b)


class Family(NamedTuple):
    """A family of universal hash functions."""

    values: Callable[[UInt64Array, int, int], Iterator[UInt64Array]]
    """Takes the hashes of items, a number of functions and a seed; yields the values by function."""
    above: int
    """Above every value; an empty set has this value."""


def _mod_prime(hashes: UInt64Array, num_hashes: int, seed: int) -> Iterator[UInt64Array]:
    prime = np.uint64(PRIME)
    for a, b in zip(*coefficients(seed, num_hashes), strict=True):  # products are below 2^62
        yield (np.uint64(a) * (hashes & prime) + np.uint64(b)) % prime


def _multiply_shift(hashes: UInt64Array, num_hashes: int, seed: int) -> Iterator[UInt64Array]:
    draws = splitmix64(seed)
    half = np.uint64(32)
    for _ in range(num_hashes):
        a, b = np.array([next(draws), next(draws)], np.uint64)  # the product wraps at 2^64
        yield (a * (hashes & np.uint64(2**32 - 1)) + b) >> half


FAMILIES = {
    "mod_prime": Family(_mod_prime, PRIME),
    "multiply_shift": Family(_multiply_shift, 2**32),
}
"""The families of hash functions by name."""


def signature_matrix(
    documents: Iterable[Sequence],
    num_hashes: int = 128,
    seed: int = 1,
    functions: str | Iterable[HashFunction] = "mod_prime",
) -> npt.NDArray[np.int64]:
    """Return classic MinHash signatures of sets: int64 of shape (hashes, documents).

    A corpus has other signatures: see `textsim_db.sketch.fast_similarity`. Items that are not strings
    are hashed by their `repr()`. The column of an empty set has a value above all others.

    - `num_hashes`, `seed`: the number of hash functions, 1 to 4096, and their seed.
    - `functions`: a family of universal hash functions by its name. `"mod_prime"`: (a x + b) mod p with
      p = 2^31 - 1; Carter and Wegman, "Universal classes of hash functions", 1979. `"multiply_shift"`:
      the high 32 bits of a x + b mod 2^64; Dietzfelbinger, "Universal hashing and k-wise independent
      random variables via integer arithmetic without primes", 1996. Or functions of your own, which
      take the items if all items are integers, else the items' rows in the characteristic matrix.

    Raises `ConfigurationError` for other numbers, and `MeasureError` for an unknown family. Leskovec,
    Rajaraman and Ullman, "Mining of Massive Datasets", section 3.3.5.
    """
    several = several_documents(documents, "signature_matrix")
    sets = [list(dict.fromkeys(hashable(document))) for document in several]
    if not isinstance(functions, str):
        return _by_functions(sets, list(functions))
    family = FAMILIES.get(functions)
    if family is None:
        raise MeasureError(
            f'there is no family "{functions}"{suggestion(functions, FAMILIES)}; expected one of '
            f"{', '.join(FAMILIES)}, or functions"
        )
    num_hashes = check_count(num_hashes, "num_hashes", 1, MAX_HASHES)
    seed = check_count(seed, "seed", 0, 2**63 - 1)
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    hashes = np.array(hash_texts([_text(item) for items in sets for item in items]), np.int64)
    return signatures(hashes.view(np.uint64), offsets, family, num_hashes, seed)


def signatures(
    hashes: UInt64Array, offsets: Int64Array, family: Family, num_hashes: int, seed: int
) -> Int64Array:
    """Return the signatures of several documents: int64 of shape (num_hashes, documents).

    hashes: the hashes of the distinct items of all documents.
    offsets: (documents + 1,).
    """
    result = np.full((num_hashes, len(offsets) - 1), family.above, np.int64)
    filled = np.flatnonzero(np.diff(offsets))
    if len(filled):
        for k, values in enumerate(family.values(hashes, num_hashes, seed)):
            result[k, filled] = np.minimum.reduceat(values, offsets[filled])
    return result


def lsh_buckets(signatures: npt.ArrayLike, rows: int) -> npt.NDArray[np.int64]:
    """Return the buckets of a signature matrix: int64 of shape (bands, documents).

    The matrix of shape (hashes, documents) is cut into bands of this many rows. Two documents have the
    same bucket in a band if all their values in the band are equal. Buckets are numbered from 0 on in
    each band. A pair of similarity s shares a bucket with the probability 1 - (1 - s^rows)^bands.

    Raises `ConfigurationError` if the hashes cannot be cut into such bands, and `MeasureError` if the
    matrix has no integers. Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", section 3.4.1.

        >>> lsh_buckets([[1, 3, 0, 1], [0, 2, 0, 0]], rows=1).tolist()
        [[1, 2, 0, 1], [0, 1, 0, 0]]
    """
    matrix = np.asarray(signatures)
    if matrix.ndim != 2 or (matrix.dtype.kind not in "iu" and matrix.size):
        raise MeasureError(
            f"the signatures are an array of {matrix.dtype} with the shape {matrix.shape}; expected "
            "integers with the shape (hashes, documents), as signature_matrix() returns"
        )
    hashes = len(matrix)
    rows = check_count(rows, "rows", 1, max(1, hashes))
    if hashes % rows:
        raise MeasureError(f"{hashes} hashes cannot be cut into bands of {rows} rows")
    bands = [matrix[first : first + rows] for first in range(0, hashes, rows)]
    buckets = [np.unique(band, axis=1, return_inverse=True)[1].ravel() for band in bands]
    return np.array(buckets, np.int64).reshape(len(bands), matrix.shape[1])


def lsh_candidates(signatures: npt.ArrayLike, rows: int) -> npt.NDArray[np.int64]:
    """Return the pairs of columns that share a bucket of lsh_buckets(): int64 of shape (pairs, 2).

    Each pair comes once, the lower number first, in order. Raises the errors of lsh_buckets().

        >>> lsh_candidates([[1, 3, 0, 1], [0, 2, 0, 0]], rows=2).tolist()
        [[0, 3]]
    """
    buckets = lsh_buckets(signatures, rows)
    documents = buckets.shape[1]
    found = [np.empty(0, np.int64)]
    for band in buckets:
        order = np.argsort(band, kind="stable")
        for distance in range(1, documents):  # up to the size of the largest bucket
            is_equal = band[order[distance:]] == band[order[:-distance]]
            if not is_equal.any():
                break
            found.append((order[:-distance] * documents + order[distance:])[is_equal])
    pairs = np.unique(np.concatenate(found))
    return np.stack(np.divmod(pairs, max(1, documents)), axis=1)


def lsh_candidates_of(signatures: npt.ArrayLike, rows: int, column: int) -> npt.NDArray[np.int64]:
    """Return the other columns that share a bucket with one column: int64 of shape (candidates,).

    Raises the errors of lsh_buckets(), and `ConfigurationError` if there is no such column.

        >>> lsh_candidates_of([[1, 3, 0, 1], [0, 2, 0, 0]], rows=1, column=2).tolist()
        [0, 3]
    """
    buckets = lsh_buckets(signatures, rows)
    column = check_count(column, "column", 0, buckets.shape[1] - 1)
    shares = (buckets == buckets[:, [column]]).any(axis=0)
    shares[column] = False
    return np.flatnonzero(shares)


def _by_functions(sets: list[list[Hashable]], functions: list[HashFunction]) -> Int64Array:
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
