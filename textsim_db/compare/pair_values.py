"""Computes any measure for many pairs at once; the values equal those of textsim_db.measures.

A measure compares sets of shingles, counts of tokens, or the order of tokens by the edits between them.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from textsim_db.base.numba_compiler import FloatArray, Int64Array, inlined_kernel, kernel, longest
from textsim_db.compare.jaccard import Rows, jaccard_pairs
from textsim_db.compare.match_rule import Criterion
from textsim_db.measures.by_name import Edits, OfCounts, OfSets, SetCounts, Sums
from textsim_db.text.hashing import (
    SPREAD,
    HashTable,
    emptied,
    enter,
    find,
    hash_table,
    is_taken,
    leave,
    number_at,
)


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


class _Counts(NamedTuple):
    """The distinct tokens of the left document, and of the right document during a pair."""

    table: HashTable
    """The number of each token."""
    of_left: Int64Array
    """The occurrences in the left document, by the number of the token."""
    of_right: Int64Array
    """The occurrences in the right document, by the number of the token."""
    met: Int64Array
    """The slots of the tokens of the right document."""


def sums_of_pairs(rows: Rows, left: Int64Array, right: Int64Array) -> Sums:
    """Return the sums over the tokens of pairs of documents.

    left, right: (pairs,), numbers of documents; sort pairs by left for speed.
    """
    return Sums(*_sums(rows, left, right, SPREAD))


@kernel
def _sums(rows: Rows, left: Int64Array, right: Int64Array, spread: int) -> Int64Array:
    sums = np.empty((5, len(left)), np.int64)
    counts = _empty_counts(2 * longest(rows.offsets), spread)
    distinct, squares = 0, 0
    for pair in range(len(left)):
        a, b = left[pair], right[pair]
        if pair == 0 or a != left[pair - 1]:
            counts = _emptied_counts(counts)
            distinct, squares = _enter_left(counts, rows, a)
        product, other_squares, shared = _compare_right(counts, rows, b, distinct)
        sums[0, pair], sums[1, pair], sums[2, pair] = product, squares, other_squares
        sums[3, pair], sums[4, pair] = _length(rows, a) + _length(rows, b) - 2 * shared, shared
    return sums


@inlined_kernel
def _length(rows: Rows, document: int) -> int:
    return int(rows.offsets[document + 1] - rows.offsets[document])


@kernel
def _empty_counts(size: int, spread: int) -> _Counts:
    table = hash_table(np.empty(size, np.uint64), size, spread)
    zeros = np.zeros((3, size), np.int64)
    return _Counts(table, zeros[0], zeros[1], zeros[2])


@kernel
def _emptied_counts(counts: _Counts) -> _Counts:
    hashes = counts.table.hashes
    table = emptied(counts.table, hashes, counts.table.first + len(hashes), len(hashes))
    return _Counts(table, counts.of_left, counts.of_right, counts.met)


@inlined_kernel
def _enter_left(counts: _Counts, rows: Rows, document: int) -> tuple[int, int]:
    """Count the tokens of a document; return the number of distinct tokens and the sum of x^2."""
    table = counts.table
    distinct, squares = 0, 0
    for i in range(rows.offsets[document], rows.offsets[document + 1]):
        slot = _slot_of(counts, rows.tokens[i], distinct)
        number = number_at(table, slot)
        distinct += number == distinct
        squares += 2 * counts.of_left[number] + 1  # (x + 1)^2 - x^2
        counts.of_left[number] += 1
    return distinct, squares


@inlined_kernel
def _slot_of(counts: _Counts, token: np.int32, new_number: int) -> np.uint64:
    """Return the slot of a token; if it has none, enter it under the new number with counts of 0."""
    table = counts.table
    slot = find(table, np.uint64(token))
    if not is_taken(table, slot):
        enter(table, slot, new_number)
        table.hashes[new_number] = np.uint64(token)
        counts.of_left[new_number], counts.of_right[new_number] = 0, 0
    return slot


@inlined_kernel
def _compare_right(
    counts: _Counts, rows: Rows, document: int, distinct: int
) -> tuple[int, int, int]:
    """Return the sums of x y, y^2 and min(x, y) of the left document and this right document."""
    table = counts.table
    product, squares, shared, met = 0, 0, 0, 0
    for i in range(rows.offsets[document], rows.offsets[document + 1]):
        slot = _slot_of(counts, rows.tokens[i], distinct + met)
        number = number_at(table, slot)
        x, y = counts.of_left[number], counts.of_right[number]
        if y == 0:
            counts.met[met] = slot
            met += 1
        product += x
        squares += 2 * y + 1
        shared += y < x
        counts.of_right[number] = y + 1
    _forget_right(counts, distinct, met)
    return product, squares, shared


@inlined_kernel
def _forget_right(counts: _Counts, distinct: int, met: int) -> None:
    """Reset the counts of the right document, and free the slots that only its tokens use."""
    for k in range(met):
        slot = np.uint64(counts.met[k])
        number = number_at(counts.table, slot)
        counts.of_right[number] = 0
        if number >= distinct:
            leave(counts.table, slot)
