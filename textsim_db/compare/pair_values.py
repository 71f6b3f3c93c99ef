"""Computes any measure for many pairs at once; the values equal those of textsim_db.measures.

A measure compares sets of shingles, counts of tokens, or the order of tokens by the edits between them.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from itertools import pairwise

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from textsim_db.base.numba_compiler import FloatArray, Int64Array, kernel
from textsim_db.compare.jaccard import Rows, jaccard_pairs
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.packed_pairs import left_of, pack
from textsim_db.measures.by_name import Edits, OfCounts, OfSets, SetCounts, Sums


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
    everything = numbers.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return [everything[start:end] for start, end in pairwise(rows.offsets.tolist())]


def sums_of_pairs(rows: Rows, left: Int64Array, right: Int64Array) -> Sums:
    """Return the sums over the tokens of pairs of documents; left, right: (pairs,)."""
    lengths = np.diff(rows.offsets)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    distinct, counts = np.unique(pack(owners, rows.tokens), return_counts=True)
    bounds = np.searchsorted(left_of(distinct), np.arange(len(lengths) + 1))
    squares = np.diff(np.append(0, np.cumsum(counts * counts))[bounds])
    products, shared = _common(distinct & 0xFFFFFFFF, counts, bounds, left, right)
    differences = lengths[left] + lengths[right] - 2 * shared
    return Sums(products, squares[left], squares[right], differences, shared)


@kernel
def _common(
    tokens: Int64Array, counts: Int64Array, bounds: Int64Array, left: Int64Array, right: Int64Array
) -> Int64Array:
    """Return the sums of x y and of min(x, y) over the tokens of both documents of pairs: (2, pairs).

    tokens, counts, bounds: the distinct tokens of each document, in one order for all documents.
    """
    sums = np.zeros((2, len(left)), np.int64)
    for pair in range(len(left)):
        a, end = bounds[left[pair]], bounds[left[pair] + 1]
        b, other_end = bounds[right[pair]], bounds[right[pair] + 1]
        while a < end and b < other_end:
            if tokens[a] == tokens[b]:
                sums[0, pair] += counts[a] * counts[b]
                sums[1, pair] += min(counts[a], counts[b])
                a += 1
                b += 1
            elif tokens[a] < tokens[b]:
                a += 1
            else:
                b += 1
    return sums
