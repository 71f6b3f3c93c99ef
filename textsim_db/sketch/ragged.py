"""Arrays of different lengths as one array and its bounds, also mixed with parts; pure.

A corpus may have parts, whose documents never meet. A part is a number. A band row and a lock hold a
bucket that is mixed with its low 32 bits. So an index that knows no parts leads to the documents of one
part, and to a few others by chance. A reader that finds documents by their buckets compares the parts,
too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import BoolArray, Int32Array, Int64Array

_TAKEN_AT_ONCE = 20_000
"""The documents whose values are copied at once. The places of more values take more memory."""


class Ragged(NamedTuple):
    values: npt.NDArray[Any]
    """The values of all documents, one document after another."""
    offsets: Int64Array
    """The bounds of each document's values: (documents + 1,)."""

    @property
    def sizes(self) -> Int64Array:
        return (
            self.offsets[1:] - self.offsets[:-1]
        )  # np.diff takes several times as long for a query

    def of(self, document: int) -> npt.NDArray[Any]:
        return self.values[self.offsets[document] : self.offsets[document + 1]]

    def arrays(self) -> list[npt.NDArray[Any]]:
        return [self.of(document) for document in range(len(self.sizes))]

    def consecutive(self, documents: slice) -> Ragged:
        """Return consecutive documents; the slice has a start and a stop."""
        offsets = self.offsets[documents.start : documents.stop + 1]
        return Ragged(self.values[offsets[0] : offsets[-1]], offsets - offsets[0])

    def take(self, documents: Int64Array) -> Ragged:
        """Return some documents, in the order of their numbers: int64 of shape (documents,)."""
        offsets = offsets_of(self.sizes[documents])
        values = np.empty(offsets[-1], self.values.dtype)
        shifts = self.offsets[:-1][documents] - offsets[:-1]
        for start in range(0, len(documents), _TAKEN_AT_ONCE):
            chosen = slice(start, start + _TAKEN_AT_ONCE)
            bounds = offsets[start : start + _TAKEN_AT_ONCE + 1]
            places = np.arange(bounds[0], bounds[-1])
            places += np.repeat(shifts[chosen], np.diff(bounds))
            values[bounds[0] : bounds[-1]] = self.values[places]
        return Ragged(values, offsets)

    def firsts(self, sizes: Int64Array) -> Ragged:
        """Return the first values of each document; sizes: (documents,), not above the own sizes."""
        places = np.arange(len(self.values)) - np.repeat(self.offsets[:-1], self.sizes)
        return Ragged(self.values[places < np.repeat(sizes, self.sizes)], offsets_of(sizes))

    def owners(self) -> Int32Array:
        """Return the number of the document of each value: int32 of shape (values,)."""
        sizes = self.sizes
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


def offsets_of(sizes: npt.NDArray[np.integer[Any] | np.bool_]) -> Int64Array:
    """Return the bounds of runs of these sizes, one after another: int64 of shape (runs + 1,)."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def begins_run(*columns: npt.NDArray[Any]) -> BoolArray:
    """Say which rows differ from the row before: bool of shape (rows,); columns: (rows,) each."""
    begins = np.zeros(len(columns[0]), np.bool_)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return begins


Buckets = Ragged
"""The buckets of documents: int32. Two of one document may be equal."""

Signatures = Ragged
"""The signatures of documents, empty for a document with no shingles: int16, or int32 if exact."""


def joined(several: list[Ragged]) -> Ragged:
    """Return the documents of several arrays as one; at least one array."""
    sizes = np.concatenate([each.sizes for each in several])
    return Ragged(np.concatenate([each.values for each in several]), offsets_of(sizes))


def of_arrays(arrays: list[Int64Array]) -> Ragged:
    values = np.concatenate([np.empty(0, np.int64), *arrays])
    return Ragged(values, offsets_of(np.array([len(array) for array in arrays], np.int64)))


def of_rows(matrix: npt.NDArray[Any], is_filled: npt.NDArray[np.bool_]) -> Ragged:
    """Return the rows of a matrix, without the rows that are not filled; is_filled: (rows,)."""
    width = matrix.shape[1]
    if is_filled.all():
        return Ragged(matrix.ravel(), np.arange(len(matrix) + 1) * width)
    return Ragged(matrix[is_filled].ravel(), offsets_of(is_filled * width))


Item = TypeVar("Item", bound=Hashable)

Parts = Int64Array | None
"""The part of each of several documents: (documents,); None if their corpus has no parts."""


def in_parts(buckets: Buckets, parts: Parts) -> Buckets:
    """Return the buckets of documents as they are stored and locked."""
    if parts is None:
        return buckets
    bits = np.repeat(parts.astype(np.int32), buckets.sizes)
    return Ragged(buckets.values ^ bits, buckets.offsets)


def apart(buckets: Buckets, parts: Parts) -> Buckets:
    """Return numbers instead of buckets, which are equal only for equal buckets of one part."""
    if parts is None:
        return buckets
    owners = np.repeat(np.unique(parts, return_inverse=True)[1], buckets.sizes)
    keys = owners << 32 | buckets.values.astype(np.int64) & 0xFFFFFFFF
    numbers: Int32Array = np.unique(keys, return_inverse=True)[1].astype(np.int32)
    return Ragged(numbers, buckets.offsets)


def merge_parts(parts: Parts, guards: Int64Array | None) -> Parts:
    """Return a number for the part and the guard of each document; only with equal ones they merge.

    Two different pairs of a part and a guard have one number with probability 2^-64.
    """
    if parts is None or guards is None:
        return guards if parts is None else parts
    return mixed(parts, guards)


def mixed(parts: Int64Array, guards: Int64Array) -> Int64Array:
    return parts ^ (guards.view(np.uint64) * _ODD).view(np.int64)


_ODD = np.uint64(0x9E3779B97F4A7C15)


def part_only(part: int | None) -> Parts:
    return None if part is None else np.array([part], np.int64)


def numbered(items: Sequence[Item]) -> tuple[Int64Array, list[Item]]:
    """Return a number for each item, and the distinct items in the order of their numbers."""
    numbers: dict[Item, int] = {}
    return (
        np.array([numbers.setdefault(item, len(numbers)) for item in items], np.int64),
        list(numbers),
    )
