"""Buckets of signatures: locality-sensitive hashing by bands; pure, with no database.

Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.errors import DatabaseError
from textsim_db.settings import Bands
from textsim_db.text.arrays import Int32Array, Int64Array
from textsim_db.text.hashing import hash_bands


class Buckets(NamedTuple):
    """The buckets of several documents, as many of each as it has.

    values: int64, those of all documents, one after another; offsets: (documents + 1,). Buckets of
    different bands are different, because the band is the seed of their hash.
    """

    values: Int64Array
    offsets: Int64Array


def ragged(matrix: Int64Array) -> Buckets:
    """Return buckets of shape (documents, bands) as kernels take them."""
    documents, bands = matrix.shape
    return Buckets(matrix.ravel(), np.arange(documents + 1) * bands)


def buckets(signatures: Int32Array, banding: Bands) -> Int64Array:
    """Return the bucket of each document in each band: int64 of shape (documents, bands).

    signatures has the shape (documents, num_hashes). The bucket of band j is PostgreSQL's
    hash_array_extended(signature[j * rows:(j + 1) * rows], j). Raises DatabaseError for signatures
    that are too short, which only stored ones can be.
    """
    needed = banding.bands * banding.rows
    if signatures.shape[1] < needed:
        raise DatabaseError(
            f"a signature has {signatures.shape[1]} values; {banding.bands} bands of {banding.rows} "
            f"rows need {needed}: run textsim check"
        )
    return hash_bands(signatures, banding.bands, banding.rows)
