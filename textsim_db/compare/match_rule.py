"""Decides whether a candidate is a match, and whether two documents are taken for one; pure.

textsim._is_match and textsim._merges decide the same in SQL. Nothing else compares a similarity with a
threshold to decide. The exact check computes the similarity of many pairs at once by any measure; its
values equal those of textsim_db.measures on the documents' shingles or words.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from textsim_db.base.numba_compiler import (
    BoolArray,
    FloatArray,
    Int64Array,
    inlined_kernel,
    kernel,
    longest,
)
from textsim_db.compare.jaccard import Rows, jaccard_pairs
from textsim_db.measures.by_name import Edits, Measure, OfCounts, OfSets, SetCounts, Sums
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

    def accepted(self, values: FloatArray) -> BoolArray:
        sign = -1.0 if self.measure.is_distance else 1.0
        return which_match(sign * values, sign * self.threshold)

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
    everything = numbers.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return [everything[start:end] for start, end in pairwise(rows.offsets.tolist())]


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
