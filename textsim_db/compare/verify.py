"""The exact check of candidates by any measure, many pairs at once.

The values equal the values of textsim_db.measures on the documents' shingles or words.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from textsim_db.compare.document_rows import Rows
from textsim_db.compare.jaccard import jaccard_pairs
from textsim_db.compare.shared_counts import sums_of_pairs
from textsim_db.measures.batches import Edits, OfCounts, OfSets, SetCounts
from textsim_db.measures.by_name import Measure
from textsim_db.measures.edits import as_text
from textsim_db.text.array_types import BoolArray, FloatArray, Int64Array


class Criterion(NamedTuple):
    """The measure and the threshold that decide whether a candidate is a match."""

    measure: Measure
    threshold: float
    language: str | None = None
    """Only documents in this language are candidates; None: documents in all languages."""
    scope: str | None = None
    """Only documents of this scope are candidates; None: documents of all scopes, or of no scope."""

    def accepted(self, values: FloatArray) -> BoolArray:
        """Say which values are at the threshold or closer."""
        return values <= self.threshold if self.measure.is_distance else values >= self.threshold

    @property
    def of_copies(self) -> float:
        """The value of two documents with the same words."""
        return 0.0 if self.measure.is_distance else 1.0


def values_of_pairs(
    criterion: Criterion, rows: Rows, left: Int64Array, right: Int64Array
) -> FloatArray:
    """Return the values of the criterion's measure for pairs of documents: float64 of shape (pairs,).

    left, right: (pairs,), numbers of documents; sort pairs by left for speed. Measures that do not
    compare shingles take each token as a word. Edits are counted only up to the threshold: a pair
    that is not accepted may get any value beyond it.
    """
    formula = criterion.measure.formula
    if isinstance(formula, OfSets):
        counts = rows.shingle_counts
        similarity = jaccard_pairs(rows, left, right)
        return formula.values(SetCounts(similarity, counts[left], counts[right]))
    if isinstance(formula, OfCounts):
        return formula.values(sums_of_pairs(rows, left, right))
    lengths = np.diff(rows.offsets)
    longest = np.maximum(lengths[left], lengths[right])
    most = formula.most_edits(criterion.threshold, int(longest.max(initial=0)))
    return formula.values(Edits(_edits(rows, left, right, most), longest))


def _edits(rows: Rows, left: Int64Array, right: Int64Array, most: float) -> FloatArray:
    """Return the edit distances of pairs; a distance above most may be any larger number."""
    documents = _as_comparable(rows)
    scored = process.cpdist(
        [documents[i] for i in left.tolist()],
        [documents[i] for i in right.tolist()],
        scorer=Levenshtein.distance,
        score_cutoff=int(min(most + 1, 2**31)),
        dtype=np.int64,
    )
    values: FloatArray = scored.astype(np.float64)
    return values


def _as_comparable(rows: Rows) -> list[Sequence[Hashable]]:
    """Return documents as sequences for RapidFuzz: as str if each token fits in a character."""
    numbers = rows.tokens.astype(np.int64) - int(rows.tokens.min(initial=0))
    if numbers.max(initial=0) > sys.maxunicode:
        numbers = np.unique(rows.tokens, return_inverse=True)[1]
    everything, _ = as_text((numbers.astype(np.int32), np.empty(0, np.int32)))
    return [everything[start:end] for start, end in pairwise(rows.offsets.tolist())]
