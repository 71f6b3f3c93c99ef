"""Buckets of signatures, by locality-sensitive hashing in bands.

Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4.1.
"""

from __future__ import annotations

from textsim_db.choose_bands import Bands
from textsim_db.errors import DatabaseError
from textsim_db.text.array_types import Int16Array, Int32Array
from textsim_db.text.hashing import hash_bands


def buckets(signatures: Int16Array, banding: Bands) -> Int32Array:
    """Return the bucket of each document in each band: int32 of shape (documents, bands).

    signatures has the shape (documents, num_hashes). The bucket of band j is the low 32 bits, signed,
    of PostgreSQL's hash_array_extended(signature[j * rows:(j + 1) * rows], j). The band is the seed of
    the hash, so buckets of different bands are equal by chance only. Raises DatabaseError for
    signatures that are too short, which only stored ones can be.
    """
    needed = banding.bands * banding.rows
    if signatures.shape[1] < needed:
        raise DatabaseError(
            f"a stored signature has {signatures.shape[1]} values, but {banding.bands} bands of "
            f"{banding.rows} rows need {needed}; run textsim check"
        )
    return hash_bands(signatures, banding.bands, banding.rows)
