"""Buckets of signatures: locality-sensitive hashing by bands; pure, with no database.

Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4.1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from textsim_db.config import Bands
from textsim_db.hashing import hash_bands


def buckets(signatures: npt.NDArray[np.int32], banding: Bands) -> npt.NDArray[np.int64]:
    """Return the bucket of each document in each band: int64 of shape (documents, bands).

    signatures has the shape (documents, num_hashes). The bucket of band j is PostgreSQL's
    hash_array_extended(signature[j * rows:(j + 1) * rows], j).
    """
    return hash_bands(signatures, banding.bands, banding.rows)
