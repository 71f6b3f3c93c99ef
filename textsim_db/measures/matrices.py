"""Matrices of a few documents: items by document, signatures, and any measure of all pairs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from textsim_db.check_values import check_count
from textsim_db.errors import ConfigurationError, install_extra
from textsim_db.measures import classic_minhash
from textsim_db.measures.by_name import measure_of
from textsim_db.measures.sequences import Sequence, hashable, items_of
from textsim_db.measures.vocabulary import Vocabulary
from textsim_db.settings import MAX_HASHES
from textsim_db.text.hashing import hash_texts

if TYPE_CHECKING:
    from scipy.sparse import csc_array


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
    rows = [np.unique(vocabulary.encode(document)) for document in documents]
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
    sets = [list(dict.fromkeys(hashable(document))) for document in documents]
    if functions is not None:
        return _by_functions(sets, list(functions))
    num_hashes = check_count(num_hashes, "num_hashes", 1, MAX_HASHES)
    seed = check_count(seed, "seed", 0, 2**63 - 1)
    offsets = np.zeros(len(sets) + 1, np.int64)
    np.cumsum([len(items) for items in sets], out=offsets[1:])
    hashes = hash_texts([_text(item) for items in sets for item in items])
    drawn = classic_minhash.coefficients(seed, num_hashes)
    signatures = classic_minhash.signatures(
        np.array(hashes, np.int64).view(np.uint64), offsets, *drawn
    )
    return signatures.T.astype(np.int64)


def pairwise_matrix(
    documents: Iterable[Sequence], measure: str | Callable[[Sequence, Sequence], float]
) -> npt.NDArray[np.float64]:
    """Return a measure of all pairs of documents: float64 of shape (documents, documents).

    `measure` is a name in `MEASURES`, or a function of two sequences. Raises `MeasureError` for an
    unknown name, and the errors of the measure.

        >>> pairwise_matrix(["ab", "bc"], "jaccard").round(2).tolist()
        [[1.0, 0.33], [0.33, 1.0]]
    """
    items = [x if isinstance(x, str | Mapping | Set) else list(items_of(x)) for x in documents]
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
    values = [
        [min(map(function, row), default=classic_minhash.PRIME) for row in rows]
        for function in functions
    ]
    return np.array(values, np.int64).reshape(len(functions), len(sets))


def _text(item: Hashable) -> str:
    if isinstance(item, str) and not any("\ud800" <= character <= "\udfff" for character in item):
        return item
    # No text contains NUL, so the string "1" and the integer 1 differ.
    return f"\0{item.item() if isinstance(item, np.generic) else item!r}"
