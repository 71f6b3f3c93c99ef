"""Computes any measure for many pairs at once; the values equal those of textsim_db.measures.

A measure compares sets of shingles, counts of tokens, or the order of tokens by the edits between them.
Documents are rows of integers, or hashes of shingles.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from textsim_db.base.numba_compiler import (
    FloatArray,
    HashArray,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
    longest,
)
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.packed_pairs import left_of, pack
from textsim_db.measures.by_name import Edits, OfCounts, OfSets, SetCounts, Sums
from textsim_db.sketch.ragged import Ragged
from textsim_db.text.hashing import (
    SPREAD,
    HashTable,
    emptied,
    enter,
    find,
    find_next,
    hash_table,
    is_taken,
    number_at,
)
from textsim_db.text.shingles import characters
from textsim_db.text.utf8 import concatenate


class Rows(NamedTuple):
    """Several documents, each a row of word ids or code points."""

    tokens: Int32Array
    """The tokens of all documents, one document after another."""
    offsets: Int64Array
    """The bounds of each document: (documents + 1,)."""
    shingle_counts: Int64Array
    """The distinct shingles of each document, read from the database and perhaps damaged."""
    n: int
    """Tokens in a shingle."""


def take(rows: Rows, documents: Int64Array) -> Rows:
    """Return the rows of some documents, in the order of their numbers: int64 of shape (documents,)."""
    taken = Ragged(rows.tokens, rows.offsets).take(documents)
    return Rows(taken.values, taken.offsets, rows.shingle_counts[documents], rows.n)


def concatenated(rows: Rows, others: Rows) -> Rows:
    return Rows(
        np.concatenate((rows.tokens, others.tokens)),
        np.concatenate((rows.offsets, others.offsets[1:] + rows.offsets[-1])),
        np.concatenate((rows.shingle_counts, others.shingle_counts)),
        rows.n,
    )


def code_points(forms: Sequence[str]) -> tuple[Int32Array, Int64Array]:
    """Return the code points of the characters of normal forms, one after another, and their bounds."""
    data, offsets = characters(concatenate([form.encode() for form in forms]))
    points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), "<i4").astype(np.int32)
    if len(points) < len(data):
        offsets = np.append(0, np.cumsum(data & 0xC0 != 0x80))[offsets]
    return points, offsets


@inlined_kernel
def width_of(rows: Rows, document: int) -> int:
    """Return the length of a document's shingles: n, or the document's length if it is less."""
    return min(rows.n, int(rows.offsets[document + 1] - rows.offsets[document]))


@inlined_kernel
def shingle_places(rows: Rows, document: int) -> int:
    """Return how many shingles a document has, repeated shingles included."""
    width = width_of(rows, document)
    length = rows.offsets[document + 1] - rows.offsets[document]
    return length - width + 1 if width else 0


@inlined_kernel
def most_shingles(rows: Rows) -> int:
    """Return an upper bound of the distinct shingles of all documents together.

    It does not use the shingle counts: they may be damaged, so no array gets its length from them.
    """
    total = 0
    for document in range(len(rows.offsets) - 1):
        total += shingle_places(rows, document)
    return total


@inlined_kernel
def rolling_hashes(rows: Rows, document: int, odd_base: int, out: HashArray) -> int:
    """Write a hash of each shingle of a document, and return how many there are.

    Karp and Rabin, "Efficient randomized pattern-matching algorithms", 1987.
    """
    width, count = width_of(rows, document), shingle_places(rows, document)
    if count == 0:
        return 0
    start = rows.offsets[document]
    base = np.uint64(odd_base)
    value = np.uint64(0)
    leaving = np.uint64(1)
    for i in range(start, start + width):
        value = value * base + np.uint64(rows.tokens[i]) + np.uint64(1)
        leaving *= base
    out[0] = value
    for k in range(1, count):
        gone = np.uint64(rows.tokens[start + k - 1]) + np.uint64(1)
        come = np.uint64(rows.tokens[start + k - 1 + width]) + np.uint64(1)
        value = value * base + come - gone * leaving
        out[k] = value
    return count


class ShingleSet(NamedTuple):
    """The distinct shingles of one document at a time, to compare other documents with."""

    table: HashTable
    """The first place of each shingle in the document."""
    document: int
    start: int
    """The first token of the document."""
    width: int
    """Tokens in a shingle."""
    counted: Int64Array
    """By place, the mark of the last call that counted its shingle."""
    other_hashes: HashArray
    """Space for the hashes of another document."""


def jaccard_pairs(rows: Rows, left: Int64Array, right: Int64Array) -> FloatArray:
    """Return the Jaccard similarity of the shingle sets of pairs of documents: shape (pairs,).

    left, right: (pairs,), numbers of documents; sort pairs by left for speed. A hash only finds the
    place to look: two shingles are equal if all their tokens are equal. The similarity of documents
    without shingles is 0.
    """
    return _jaccard_pairs(rows, left, right, SPREAD)


@kernel
def _jaccard_pairs(rows: Rows, left: Int64Array, right: Int64Array, spread: int) -> FloatArray:
    similarities = np.zeros(len(left), np.float64)
    shingles = shingle_set(rows, spread)
    for pair in range(len(left)):
        if left[pair] != shingles.document:
            shingles = refilled(shingles, rows, left[pair])
        similarities[pair] = similarity_with(shingles, rows, right[pair], pair)
    return similarities


@kernel
def shingle_set(rows: Rows, spread: int) -> ShingleSet:
    """Return an empty set with space for the shingles of any of the documents."""
    size = longest(rows.offsets)
    table = hash_table(np.empty(size, np.uint64), size, spread)
    return ShingleSet(table, -1, 0, 0, np.full(size, -1, np.int64), np.empty(size, np.uint64))


@kernel
def refilled(shingles: ShingleSet, rows: Rows, document: int) -> ShingleSet:
    """Return the set with the shingles of this document instead of the last document."""
    table, hashes = shingles.table, shingles.table.hashes
    table = emptied(table, hashes, table.first + len(hashes), len(hashes))
    start, width = rows.offsets[document], width_of(rows, document)
    counted, other_hashes = shingles.counted, shingles.other_hashes
    shingles = ShingleSet(table, document, start, width, counted, other_hashes)
    _enter_shingles(shingles, rows)
    return shingles


@inlined_kernel
def _enter_shingles(shingles: ShingleSet, rows: Rows) -> None:
    table = shingles.table
    for place in range(rolling_hashes(rows, shingles.document, table.spread, table.hashes)):
        enter(
            table, _find_shingle(shingles, rows, table.hashes[place], shingles.start + place), place
        )


@inlined_kernel
def similarity_with(shingles: ShingleSet, rows: Rows, other: int, mark: int) -> float:
    """Return the similarity of the set's document and another; mark: another number in each call."""
    shared = _count_shared(shingles, rows, other, mark)
    counts = rows.shingle_counts
    return similarity_of(shared, counts[shingles.document], counts[other]) if shared else 0.0


@inlined_kernel
def _count_shared(shingles: ShingleSet, rows: Rows, other: int, mark: int) -> int:
    # Shingles of different lengths are never equal.
    if width_of(rows, other) != shingles.width:
        return 0
    table, start = shingles.table, rows.offsets[other]
    shared = 0
    for place in range(rolling_hashes(rows, other, table.spread, shingles.other_hashes)):
        slot = _find_shingle(shingles, rows, shingles.other_hashes[place], start + place)
        if is_taken(table, slot) and shingles.counted[number_at(table, slot)] != mark:
            shingles.counted[number_at(table, slot)] = mark
            shared += 1
    return shared


@inlined_kernel
def _find_shingle(shingles: ShingleSet, rows: Rows, shingle_hash: np.uint64, at: int) -> np.uint64:
    """Return the slot of the shingle that begins at a token, or the free slot where it belongs."""
    table = shingles.table
    slot = find(table, shingle_hash)
    while is_taken(table, slot):
        if _same_tokens(rows.tokens, shingles.start + number_at(table, slot), at, shingles.width):
            break
        slot = find_next(table, shingle_hash, slot)
    return slot


@inlined_kernel
def _same_tokens(tokens: Int32Array, a: int, b: int, width: int) -> bool:
    for i in range(width):
        if tokens[a + i] != tokens[b + i]:
            return False
    return True


@inlined_kernel
def similarity_of(shared: int, count: int, other_count: int) -> float:
    """Return the Jaccard similarity of two sets of these sizes; shared: 1 or more.

    The result is at most 1 even if the sizes, which are stored, are damaged.
    """
    return shared / max(count + other_count - shared, shared)


@inlined_kernel
def may_reach(threshold: float, count: int, other_count: int) -> bool:
    """Say whether two sets of these sizes can have a similarity of the threshold or more."""
    return min(count, other_count) >= threshold * max(count, other_count) - 1e-9


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
