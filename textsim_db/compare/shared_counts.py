"""How often the same tokens occur in two documents, for measures of counts; pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.compare.document_rows import Rows
from textsim_db.text.array_types import Int64Array, longest
from textsim_db.text.hash_table import (
    SPREAD,
    HashTable,
    emptied,
    enter,
    find,
    hash_table,
    is_taken,
    number_at,
)
from textsim_db.text.numba_compiler import inlined_kernel, kernel


class Sums(NamedTuple):
    """Sums over the tokens of pairs of documents, x and y being their counts: int64 (pairs,) each.

    products: of x y; left, right: of x^2 and of y^2; differences: of |x - y|; shared: of min(x, y).
    """

    products: Int64Array
    left: Int64Array
    right: Int64Array
    differences: Int64Array
    shared: Int64Array


class _Counts(NamedTuple):
    """The distinct tokens of one document at a time.

    table: a number of each token; of_left: how often it occurs, by its number; of_right: how often
    it has occurred so far in the document on the right; met: the numbers of tokens of the right.
    """

    table: HashTable
    of_left: Int64Array
    of_right: Int64Array
    met: Int64Array


def sums_of_pairs(rows: Rows, left: Int64Array, right: Int64Array) -> Sums:
    """Return the sums for pairs of documents, of their tokens.

    left, right: (pairs,), numbers of documents, fastest where equal lefts stand together.
    """
    lengths = np.diff(rows.offsets)
    products, shared, squares = _sums(rows, left, right, SPREAD)
    differences = lengths[left] + lengths[right] - 2 * shared
    return Sums(products, squares[left], squares[right], differences, shared)


@kernel
def _sums(
    rows: Rows, left: Int64Array, right: Int64Array, spread: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the products and the shared tokens of pairs, and the squares of all documents."""
    size = longest(rows.offsets)
    table = hash_table(np.empty(size, np.uint64), size, spread)
    numbers = np.zeros((3, size), np.int64)
    counts = _Counts(table, numbers[0], numbers[1], numbers[2])
    squares = np.zeros(len(rows.offsets) - 1, np.int64)
    for document in range(len(squares)):
        counts = _emptied_counts(counts)
        squares[document] = _enter_tokens(counts, rows, document)
    products = np.zeros(len(left), np.int64)
    shared = np.zeros(len(left), np.int64)
    for pair in range(len(left)):
        if pair == 0 or left[pair] != left[pair - 1]:
            counts = _emptied_counts(counts)
            _enter_tokens(counts, rows, left[pair])
        products[pair], shared[pair] = _compare(counts, rows, right[pair])
    return products, shared, squares


@kernel
def _emptied_counts(counts: _Counts) -> _Counts:
    hashes = counts.table.hashes
    table = emptied(counts.table, hashes, counts.table.first + len(hashes), len(hashes))
    return _Counts(table, counts.of_left, counts.of_right, counts.met)


@inlined_kernel
def _enter_tokens(counts: _Counts, rows: Rows, document: int) -> int:
    """Count the tokens of a document, and return the sum of the squares of the counts."""
    table = counts.table
    distinct, squares = 0, 0
    for i in range(rows.offsets[document], rows.offsets[document + 1]):
        token = np.uint64(rows.tokens[i])
        slot = find(table, token)
        if not is_taken(table, slot):
            enter(table, slot, distinct)
            table.hashes[distinct] = token
            counts.of_left[distinct] = 0
            distinct += 1
        number = number_at(table, slot)
        squares += 2 * counts.of_left[number] + 1  # (x + 1)^2 - x^2
        counts.of_left[number] += 1
    return squares


@inlined_kernel
def _compare(counts: _Counts, rows: Rows, other: int) -> tuple[int, int]:
    """Return the product of the counts of two documents, and how many tokens they share."""
    table = counts.table
    product, shared, met = 0, 0, 0
    for i in range(rows.offsets[other], rows.offsets[other + 1]):
        slot = find(table, np.uint64(rows.tokens[i]))
        if is_taken(table, slot):
            number = number_at(table, slot)
            if counts.of_right[number] == 0:
                counts.met[met] = number
                met += 1
            product += counts.of_left[number]
            shared += counts.of_right[number] < counts.of_left[number]
            counts.of_right[number] += 1
    for k in range(met):
        counts.of_right[counts.met[k]] = 0
    return product, shared
