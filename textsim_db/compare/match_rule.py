"""Decides whether a candidate is a match, and whether two documents are taken for one; pure.

textsim._is_match and textsim._merges decide the same in SQL. Nothing else compares a similarity with a
threshold to decide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, FloatArray, Int64Array, inlined_kernel, kernel
from textsim_db.measures.by_name import Measure


class Criterion(NamedTuple):
    """The measure and the threshold that decide whether a candidate is a match."""

    measure: Measure
    threshold: float
    language: str | None = None
    """Only documents in this language are candidates; None: documents in all languages."""
    part: int | None = None
    """Only documents of this part of the corpus are candidates; None: documents of all parts."""
    for_merges: bool = False
    """Only documents with equal guards are candidates, because others are never merged."""
    finds_rejected: bool = False
    """Rejected documents of a unique corpus are candidates, too."""

    def accepted(self, values: FloatArray) -> BoolArray:
        sign = -1.0 if self.measure.is_distance else 1.0
        return which_match(sign * values, sign * self.threshold)

    @property
    def of_copies(self) -> float:
        """The value of two documents with the same words."""
        return 0.0 if self.measure.is_distance else 1.0


@inlined_kernel
def is_match(similarity: float, threshold: float) -> bool:
    """Return whether a candidate is a match; of distances both numbers are negative.

    Copies are matches by any rule, so they are not asked.
    """
    return similarity >= threshold


@kernel
def which_match(similarities: FloatArray, threshold: float) -> BoolArray:
    """Return for each pair whether its documents match: (pairs,)."""
    are_matches = np.zeros(len(similarities), np.bool_)
    for pair in range(len(similarities)):
        are_matches[pair] = is_match(similarities[pair], threshold)
    return are_matches


def form_hash(form: str) -> str:
    """Return the hash by which a judgement remembers a normal form, as textsim._form_hash does."""
    return str(UUID(bytes=hashlib.sha256(form.encode()).digest()[:16]))


def is_stale(judged: Sequence[str | None], present: Sequence[str | None]) -> bool:
    """Return whether a text of a judgement has changed, as textsim._is_stale does.

    judged: the hashes of the texts that were judged; None: any text. present: the hashes of the texts of
    today; None: there is none.
    """
    return any(
        None not in (one, other) and one != other
        for one, other in zip(judged, present, strict=True)
    )


class Separation(NamedTuple):
    """The reasons that keep documents from being merged, although they match."""

    apart: Int64Array = np.empty(0, np.int64)
    """The pairs that were judged different: packed by pack(), either document on the left; sorted."""
    guards: Int64Array = np.empty(0, np.int64)
    """The guard of each document: (documents,); (0,) in a corpus without guards."""


NOTHING_SEPARATES = Separation()


@inlined_kernel
def merges(
    similarity: float, threshold: float, left: int, right: int, separation: Separation
) -> bool:
    """Return whether two documents match, have equal guards, and nobody judged them different."""
    if not is_match(similarity, threshold):
        return False
    apart, guards = separation
    if len(guards) and guards[left] != guards[right]:
        return False
    pair = (np.int64(left) << 32) | np.int64(right)
    place = np.searchsorted(apart, pair)
    return not (place < len(apart) and apart[place] == pair)


@kernel
def which_merge(
    similarities: FloatArray,
    threshold: float,
    left: Int64Array,
    right: Int64Array,
    separation: Separation,
) -> BoolArray:
    """Return for each pair whether its documents merge: (pairs,)."""
    are_merged = np.zeros(len(left), np.bool_)
    for pair in range(len(left)):
        are_merged[pair] = merges(
            similarities[pair], threshold, left[pair], right[pair], separation
        )
    return are_merged
