"""Documents as rows of integers, and the hashes of their shingles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from textsim_db.sketch.ragged import Ragged, offsets_of
from textsim_db.text.array_types import HashArray, Int32Array, Int64Array
from textsim_db.text.numba_compiler import inlined_kernel


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
    """Return the rows followed by other rows with the same n."""
    return Rows(
        np.concatenate((rows.tokens, others.tokens)),
        np.concatenate((rows.offsets, others.offsets[1:] + rows.offsets[-1])),
        np.concatenate((rows.shingle_counts, others.shingle_counts)),
        rows.n,
    )


def code_points(forms: Sequence[str]) -> tuple[Int32Array, Int64Array]:
    """Return the code points of texts, one text after another, and their bounds."""
    points = np.frombuffer("".join(forms).encode("utf-32-le"), "<i4").astype(np.int32)
    return points, offsets_of(np.fromiter(map(len, forms), np.int64, len(forms)))


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
