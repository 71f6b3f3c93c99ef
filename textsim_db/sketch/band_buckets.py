"""Buckets of signatures, by locality-sensitive hashing in bands.

Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.errors import DatabaseError
from textsim_db.settings import Bands
from textsim_db.text.array_types import Int16Array, Int32Array, Int64Array
from textsim_db.text.hashing import hash_bands
from textsim_db.text.numba_compiler import kernel


class Buckets(NamedTuple):
    """The buckets of several documents, which may have different numbers of buckets.

    values: int32, the buckets of all documents, one document after another; offsets:
    (documents + 1,), the start of each document's buckets. The band is the seed of the hash, so
    buckets of different bands are equal only by chance. A document may have the same bucket twice.
    """

    values: Int32Array
    offsets: Int64Array

    def take(self, numbers: Int64Array) -> Buckets:
        """Return the buckets of the documents with these numbers: int64 of shape (documents,)."""
        sizes = np.diff(self.offsets)[numbers]
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        first_places = self.offsets[:-1][numbers] - offsets[:-1]
        places = np.arange(offsets[-1]) + np.repeat(first_places, sizes)
        return Buckets(self.values[places], offsets)


def ragged(matrix: Int32Array) -> Buckets:
    """Return a matrix of shape (documents, bands) as Buckets."""
    documents, bands = matrix.shape
    return Buckets(matrix.ravel(), np.arange(0, documents * bands + 1, bands))


def buckets_of(signatures: Int16Array, shingle_counts: Int64Array, banding: Bands) -> Buckets:
    """Return the buckets of documents; a document with no shingles has none."""
    return Buckets(*_keep_filled(buckets(signatures, banding), shingle_counts))


@kernel
def _keep_filled(matrix: Int32Array, shingle_counts: Int64Array) -> tuple[Int32Array, Int64Array]:
    """Return the rows of documents with shingles, one after another, and the offsets of all rows."""
    documents, bands = matrix.shape
    values = np.empty(documents * bands, np.int32)
    offsets = np.zeros(documents + 1, np.int64)
    end = 0
    for document in range(documents):
        if shingle_counts[document]:
            values[end : end + bands] = matrix[document]
            end += bands
        offsets[document + 1] = end
    return values[:end], offsets


def buckets(signatures: Int16Array, banding: Bands) -> Int32Array:
    """Return the bucket of each document in each band: int32 of shape (documents, bands).

    signatures has the shape (documents, num_hashes). The bucket of band j is the low 32 bits, signed,
    of PostgreSQL's hash_array_extended(signature[j * rows:(j + 1) * rows], j). Raises DatabaseError if
    the signatures are too short; only stored signatures can be.
    """
    needed = banding.bands * banding.rows
    if signatures.shape[1] < needed:
        raise DatabaseError(
            f"a stored signature has {signatures.shape[1]} values, but {banding.bands} bands of "
            f"{banding.rows} rows need {needed}; run textsim check"
        )
    return hash_bands(signatures, banding.bands, banding.rows)
