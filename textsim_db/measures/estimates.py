"""The Jaccard similarity estimated from two signatures, with its standard error."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.errors import MeasureError


class Estimate(NamedTuple):
    """An estimated Jaccard similarity."""

    similarity: float
    """From 0 to 1."""
    standard_error: float
    """The standard error of the estimate."""


def signature_estimate(a: npt.ArrayLike, b: npt.ArrayLike) -> Estimate:
    """Return the share s of equal values of two signatures, and the standard error of the estimate.

    `a` and `b` are one-dimensional and have the same length. The standard error is
    sqrt(s (1 - s) / length) for classic MinHash, and at most this for signatures of a corpus. An empty
    signature belongs to a text without words and gives 0. A signature does not tell its settings: of
    two corpora with other seeds or shingles the estimate is near 0 and says nothing. Raises
    `MeasureError` for signatures of different lengths. Broder, "On the resemblance and containment of
    documents", 1997; Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", section 3.3.3.

        >>> signature_estimate([3, 1, 4, 1], [3, 1, 4, 2])
        Estimate(similarity=0.75, standard_error=0.21650635094610965)
    """
    one, other = np.asarray(a), np.asarray(b)
    if one.ndim == other.ndim == 1 and not (len(one) and len(other)):
        return Estimate(0.0, 0.0)
    if one.ndim != 1 or one.shape != other.shape:
        raise MeasureError(
            f"signatures have shapes {one.shape} and {other.shape}; "
            "expected one dimension and equal lengths"
        )
    share = float(np.mean(one == other))
    return Estimate(share, math.sqrt(share * (1 - share) / len(one)))
