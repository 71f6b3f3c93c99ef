"""Prefixes of exact corpora: the smallest shingle values of each document; pure, with no database.

Two sets that reach a threshold must share some of their smallest values. So a search by these values
misses no pair. This is the prefix filter of Chaudhuri, Ganti and Kaushik, "A Primitive Operator for
Similarity Joins in Data Cleaning", ICDE 2006, section 4, with prefixes that are two longer, so that most
candidates must share three values: Wang, Li and Feng, "Can We Beat the Prefix Filtering?", SIGMOD 2012,
section 3.

All comparisons with the threshold divide doubles, as the verification does. ceil(0.55 * 100) is 56 in
doubles, and 55 of 100 shingles reach 0.55.

A search reads all documents that share a value with the query, so a rare value is cheap. So the values
of common shingles come last in a prefix, and in the window of a passage. Any order of the values finds
the same pairs and passages, if all documents of a corpus have the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import (
    BoolArray,
    HashArray,
    Int16Array,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
    longest,
)
from textsim_db.sketch.ragged import Buckets, Ragged, Signatures


class CommonValues(NamedTuple):
    """The values of common shingles and their classes.

    The class is the logarithm to base 2 of the number of documents that have the shingle in the sample,
    rounded down, and at least 1. A value that is not listed has class 0. A value is found by its leading
    bits: values are hashes, so few values begin with the same bits.
    """

    values: Int64Array
    """Sorted: (values,)."""
    classes: Int16Array
    """The class of each value: (values,)."""
    starts: Int32Array
    """For each number of leading bits, the place of the first value with these bits; then the end."""
    shift: int
    """How many bits follow the leading bits."""


def common_values(values: Int64Array, classes: Int16Array) -> CommonValues:
    """Return a list of common values; values: sorted, distinct."""
    bits = max(1, len(values).bit_length())
    first = np.arange(-(2 ** (bits - 1)), 2 ** (bits - 1)) << (64 - bits)
    starts = np.append(np.searchsorted(values, first), len(values))
    return CommonValues(values, classes, starts.astype(np.int32), 64 - bits)


NO_COMMON = common_values(np.empty(0, np.int64), np.empty(0, np.int16))


@inlined_kernel
def class_of(value: np.int64, common: CommonValues) -> int:
    slot = (value >> common.shift) + (1 << (63 - common.shift))
    for place in range(common.starts[slot], common.starts[slot + 1]):
        if common.values[place] == value:
            return int(common.classes[place])
    return 0


MOST_SHARED = 3
"""The fewest rows that two similar documents share, unless the documents are too small for it."""
SPARE = 1.25
"""The values that are sorted first, as a multiple of the rows: some of the values may be common."""
_MOST_BITS = 12
"""The most leading bits by which values are grouped; the groups must stay in the cache."""
_MOST_MOVES = 16
"""The most moves for each value in an insertion sort; an enemy can choose hashes that need more."""


def smallest_values(
    values: HashArray, offsets: Int64Array, threshold: float, common: CommonValues = NO_COMMON
) -> Buckets:
    """Return the low 32 bits of the smallest shingle values of each document, in their order.

    values: the values of the distinct shingles, uint64 of shape (shingles,), which are ordered as signed
    integers; if two shingles have one value, it counts twice. offsets: (documents + 1,). A document of n
    shingles has n - o + 3 rows, or n if that is less; o is the smallest integer with o / n >= threshold.
    Common values come last, in the order of their classes.
    """
    return Ragged(*_smallest_values(values.view(np.int64), offsets, threshold, common))


@kernel
def _smallest_values(
    values: Int64Array, offsets: Int64Array, threshold: float, common: CommonValues
) -> tuple[Int32Array, Int64Array]:
    row_offsets = np.zeros(len(offsets), np.int64)
    for i in range(len(offsets) - 1):
        rows = _count_rows(offsets[i + 1] - offsets[i], threshold)
        row_offsets[i + 1] = row_offsets[i] + rows
    result = np.empty(row_offsets[-1], np.int32)
    ordered = np.empty(longest(offsets), np.int64)
    likely, ends = np.empty_like(ordered), np.empty(2**_MOST_BITS + 1, np.int64)
    classes = np.empty(len(ordered), np.int16)
    for i in range(len(offsets) - 1):
        all_values = values[offsets[i] : offsets[i + 1]]
        taken = result[row_offsets[i] : row_offsets[i + 1]]
        size = _copy_smallest(all_values, len(taken), likely)
        _order_by_leading_bits(likely[:size], len(all_values), ends, ordered)
        if not _insert_in_order(ordered, size):
            ordered[:size].sort()
        if _take_rare(ordered[:size], common, taken):
            continue
        size = len(all_values)
        _order_by_leading_bits(all_values, size, ends, ordered)
        if not _insert_in_order(ordered, size):
            ordered[:size].sort()
        _take_by_class(ordered[:size], common, classes, taken)
    return result, row_offsets


@inlined_kernel
def _copy_smallest(values: Int64Array, rows: int, copied: Int64Array) -> int:
    """Copy the values among which the rows very likely are; return how many.

    Values are hashes, so their smallest part has a bound that is known in advance.
    """
    likely = SPARE * (rows + 3 * np.sqrt(rows) + 5)
    bound = np.int64(2**63 - 1)
    if likely < len(values):
        bound = np.int64(-(2.0**63) + 2.0**64 * likely / len(values))
    count = 0
    for value in values:
        copied[count] = value
        count += value <= bound
    return count


@inlined_kernel
def _order_by_leading_bits(
    values: Int64Array, size: int, ends: Int64Array, ordered: Int64Array
) -> None:
    """Write values of a document of this size by their leading bits, so that few are out of order."""
    bits = 1
    while bits < _MOST_BITS and 1 << bits < size:
        bits += 1
    for group in range(2**bits + 1):
        ends[group] = 0
    for value in values:
        ends[_group(value, 64 - bits) + 1] += 1
    for group in range(2**bits):
        ends[group + 1] += ends[group]
    for value in values:
        group = _group(value, 64 - bits)
        ordered[ends[group]] = value
        ends[group] += 1


@inlined_kernel
def _group(value: np.int64, shift: int) -> int:
    """Return the leading bits of a signed value, as a number from 0."""
    return int((value >> shift) + (1 << (63 - shift)))


@inlined_kernel
def _insert_in_order(values: Int64Array, count: int) -> bool:
    """Sort values that are almost in order; give up if they are not, and return whether they were."""
    moves = 0
    for i in range(1, count):
        value = values[i]
        place = i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value
        moves += i - place
        if moves > _MOST_MOVES * count:
            return False
    return True


@inlined_kernel
def _take_rare(ordered: Int64Array, common: CommonValues, rows: Int32Array) -> bool:
    """Write the first values that are not common, and return whether there are enough."""
    count = 0
    for value in ordered:
        if count == len(rows):
            break
        if class_of(value, common) == 0:
            rows[count] = np.int32(value)
            count += 1
    return count == len(rows)


@inlined_kernel
def _take_by_class(
    ordered: Int64Array, common: CommonValues, classes: Int16Array, rows: Int32Array
) -> None:
    """Write the first values by class and then by value; ordered: all values of a document, in order."""
    for k in range(len(ordered)):
        classes[k] = class_of(ordered[k], common)
    count = wanted = 0
    while count < len(rows):
        for k in range(len(ordered)):
            if count < len(rows) and classes[k] == wanted:
                rows[count] = np.int32(ordered[k])
                count += 1
        wanted += 1


def smallest_of(stored: Signatures, shingle_counts: Int64Array, threshold: float) -> Buckets:
    """Return the prefix of each stored document at a higher threshold than the threshold of the corpus.

    stored: the prefixes at the threshold of the corpus. The higher threshold needs fewer rows, so the
    result is the first part of each stored prefix.
    """
    return stored.firsts(count_rows(shingle_counts, threshold))


def first_rows(rows: Buckets, shingle_counts: Int64Array, threshold: float) -> Buckets:
    """Return the first n - o + 1 rows of each document.

    Two documents that reach the threshold share one of these rows. rows: the prefixes of the documents
    at this threshold. shingle_counts: the n of each document: (documents,).
    """
    return rows.firsts(np.minimum(rows.sizes, _count_first_rows(shingle_counts, threshold)))


@kernel
def _count_first_rows(sizes: Int64Array, threshold: float) -> Int64Array:
    counts = np.zeros(len(sizes), np.int64)
    for i in range(len(sizes)):
        if sizes[i] > 0:
            counts[i] = sizes[i] - _least_overlap(sizes[i], threshold) + 1
    return counts


@kernel
def count_rows(sizes: Int64Array, threshold: float) -> Int64Array:
    """Return how many rows documents of these numbers of shingles have: int64 of shape (documents,)."""
    rows = np.empty(len(sizes), np.int64)
    for i in range(len(sizes)):
        rows[i] = _count_rows(sizes[i], threshold)
    return rows


@inlined_kernel
def _count_rows(size: int, threshold: float) -> int:
    if size <= 0:  # a damaged row may have a negative size
        return 0
    overlap = _least_overlap(size, threshold)
    return size if overlap < MOST_SHARED else size - overlap + MOST_SHARED


@inlined_kernel
def _least_overlap(size: int, threshold: float) -> int:
    """Return the smallest number of shared shingles with which the smaller of two sets can match."""
    overlap = int(np.ceil(threshold * size))
    while overlap > 1 and (overlap - 1) / size >= threshold:
        overlap -= 1
    while overlap / size < threshold:
        overlap += 1
    return overlap


@kernel
def share_enough(
    shared: Int64Array, a_sizes: Int64Array, b_sizes: Int64Array, threshold: float
) -> BoolArray:
    """Say which pairs are candidates: the rows that they share allow the threshold.

    shared: (pairs,), equal rows of both; a_sizes, b_sizes: (pairs,), the shingles of both.

    Past the last row of one of the two documents, only its own other shingles can be shared. The larger
    document has more of these. So the pair has at most as many shingles in common as shared rows and
    shingles of the larger document without a row. Documents of equal size need far more than
    MOST_SHARED rows: Xiao, Wang, Lin and Yu, "Efficient Similarity Joins for Near Duplicate Detection",
    WWW 2008, section 4, without the positions.
    """
    result = np.empty(len(shared), np.bool_)
    for i in range(len(shared)):
        result[i] = shares_enough(shared[i], a_sizes[i], b_sizes[i], threshold)
    return result


@inlined_kernel
def shares_enough(shared: int, a: int, b: int, threshold: float) -> bool:
    """Say whether documents of a and b shingles are candidates; see share_enough()."""
    larger = max(a, b)
    common = min(min(a, b), shared + larger - _count_rows(larger, threshold))
    return common / max(a + b - common, 1) >= threshold


@kernel
def least_needed(sizes: Int64Array, threshold: float) -> Int32Array:
    """Return how many rows documents share at least with any candidate: int32 of shape (documents,)."""
    needed = np.empty(len(sizes), np.int32)
    for i in range(len(sizes)):
        size = max(1, int(sizes[i]))
        smallest = max(1, int(threshold * size))
        needed[i] = _needed(size, smallest, threshold)
    return needed


@inlined_kernel
def _needed(a: int, b: int, threshold: float) -> int:
    """Return how many rows, at most 3, documents of a and b shingles share if they are similar."""
    for overlap in range(1, MOST_SHARED):
        if overlap >= a + b - overlap or overlap / (a + b - overlap) >= threshold:
            return overlap
    return MOST_SHARED


def most_of_small(threshold: float) -> int:
    """Return the sum of the sizes of two documents up to which fewer than MOST_SHARED rows may do."""
    return int(min(2.0**62, np.ceil((MOST_SHARED - 1) / threshold) + MOST_SHARED))
