"""Buckets of signatures: locality-sensitive hashing by bands; pure, with no database.

Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4.1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from textsim_db.errors import DatabaseError
from textsim_db.settings import Bands
from textsim_db.text.hashing import hash_bands


def buckets(signatures: npt.NDArray[np.int32], banding: Bands) -> npt.NDArray[np.int64]:
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
