"""The Jaccard similarity that two signatures suggest, with its standard error."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.errors import MeasureError


class Estimate(NamedTuple):
    """An estimated Jaccard similarity, from 0 to 1, and its standard error."""

    similarity: float
    standard_error: float


def signature_estimate(a: npt.ArrayLike, b: npt.ArrayLike) -> Estimate:
    """Return the share of equal values s of two signatures, with sqrt(s (1 - s) / hashes).

    That is the standard error of classic MinHash, and the most that it is for signatures of a corpus.
    a, b: one-dimensional, of one length. 0 where one is empty, which stands for a text without words.
    Raises MeasureError for signatures of different lengths. Broder, "On the resemblance and
    containment of documents", 1997; "Mining of Massive Datasets", section 3.3.3.
    """
    one, other = np.asarray(a), np.asarray(b)
    if one.ndim == other.ndim == 1 and not (len(one) and len(other)):
        return Estimate(0.0, 0.0)
    if one.ndim != 1 or one.shape != other.shape:
        raise MeasureError(f"signatures have shapes {one.shape} and {other.shape}; expected one")
    share = float(np.mean(one == other))
    return Estimate(share, math.sqrt(share * (1 - share) / len(one)))
