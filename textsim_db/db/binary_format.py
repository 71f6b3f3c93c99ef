"""PostgreSQL's binary format of arrays, written from and read into NumPy arrays, one or many at once.

We do not use psycopg's adapters, because they handle one value at a time. And if an integer is too
large, psycopg's C build wraps it, and only its Python build raises an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import (
    ByteArray,
    Int16Array,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
    store64,
)
from textsim_db.errors import DatabaseError
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.sketch.ragged import Ragged, Signatures
from textsim_db.text.utf8 import Utf8, concatenate, copy_span

INT2, INT4, _INT8 = 21, 23, 20
TEXTS, TIMESTAMPTZ = 1009, 1184
"""The oids of types, in pg_type."""
_ARRAY_OIDS = {INT2: 1005, INT4: 1007, _INT8: 1016}
_ELEMENTS = {np.dtype(np.int16): INT2, np.dtype(np.int32): INT4, np.dtype(np.int64): _INT8}
ARRAY_HEADER = 20
"""The bytes before the elements of an array of one dimension."""
LENGTH_BYTES = 4
"""The bytes that say how long a value is."""
SURPLUS_BYTES = 8
"""Bytes after a value that its eight-byte store may overwrite."""
_TEXT = 25
"""The oid of text, in pg_type."""


class Parameter(NamedTuple):
    """A parameter of a statement, in the binary format of its type."""

    data: bytes
    oid: int


def array(values: npt.NDArray[Any]) -> Parameter:
    """Return an array of int16, int32 or int64 as a parameter of type int2[], int4[] or int8[]."""
    return Parameter(dump_array(values), _ARRAY_OIDS[_ELEMENTS[values.dtype]])


def dump_array(values: npt.NDArray[Any]) -> bytes:
    """Return a one-dimensional array in the format of array_send."""
    element = _ELEMENTS[values.dtype]
    if not len(values):
        return np.array([0, 0, element], ">i4").tobytes()
    header = np.array([1, 0, element, len(values), 1], ">i4")
    rows = np.empty(len(values), [("length", ">i4"), ("value", values.dtype.newbyteorder(">"))])
    rows["length"] = values.dtype.itemsize
    rows["value"] = values
    return header.tobytes() + rows.tobytes()


def load_int4_array(data: bytes) -> npt.NDArray[np.int32]:
    return _load_array(data, np.int32)


def load_int8_array(data: bytes) -> npt.NDArray[np.int64]:
    return _load_array(data, np.int64)


def load_float8_array(data: bytes) -> npt.NDArray[np.float64]:
    return _load_array(data, np.float64)


def _load_array(data: bytes, type_: type[Any]) -> npt.NDArray[Any]:
    dtype = np.dtype(type_)
    element = np.dtype([("length", ">i4"), ("value", dtype.newbyteorder(">"))])
    # A NULL takes fewer bytes than an element. So a damaged array with NULLs is read as wrong elements,
    # but never past its end.
    count = max(len(data) - ARRAY_HEADER, 0) // element.itemsize
    rows = np.frombuffer(data, element, count, min(ARRAY_HEADER, len(data)))
    return rows["value"].astype(dtype)


def load_int2_arrays(values: Sequence[bytes]) -> tuple[Int16Array, Int64Array]:
    """Read arrays in the format of array_send: all elements, and offsets of shape (arrays + 1,)."""
    return _read_int2_arrays(concatenate(values))


def load_int4_arrays(values: Sequence[bytes]) -> tuple[Int32Array, Int64Array]:
    """Read arrays in the format of array_send: all elements, and offsets of shape (arrays + 1,)."""
    return _read_int4_arrays(concatenate(values))


@kernel
def _read_int2_arrays(arrays: Utf8) -> tuple[Int16Array, Int64Array]:
    offsets = _offsets_of_elements(arrays, 2)
    values = np.empty(offsets[-1], np.int16)
    for i in range(len(offsets) - 1):
        at = arrays.offsets[i] + ARRAY_HEADER + LENGTH_BYTES
        for k in range(offsets[i], offsets[i + 1]):
            values[k] = np.int16(arrays.data[at]) << 8 | np.int16(arrays.data[at + 1])
            at += LENGTH_BYTES + 2
    return values, offsets


@kernel
def _read_int4_arrays(arrays: Utf8) -> tuple[Int32Array, Int64Array]:
    offsets = _offsets_of_elements(arrays, 4)
    values = np.empty(offsets[-1], np.int32)
    for i in range(len(offsets) - 1):
        at = arrays.offsets[i] + ARRAY_HEADER + LENGTH_BYTES
        for k in range(offsets[i], offsets[i + 1]):
            values[k] = _read4(arrays.data, at)
            at += LENGTH_BYTES + 4
    return values, offsets


@kernel
def _offsets_of_elements(arrays: Utf8, element_bytes: int) -> Int64Array:
    """Return the bounds of the elements of each array, computed from its length in bytes."""
    offsets = np.zeros(len(arrays.offsets), np.int64)
    for i in range(len(offsets) - 1):
        size = arrays.offsets[i + 1] - arrays.offsets[i]
        elements = max(size - ARRAY_HEADER, 0) // (LENGTH_BYTES + element_bytes)
        offsets[i + 1] = offsets[i] + elements
    return offsets


@inlined_kernel
def _read4(data: ByteArray, at: int) -> np.int32:
    return np.int32(
        np.int32(data[at]) << 24
        | np.int32(data[at + 1]) << 16
        | np.int32(data[at + 2]) << 8
        | np.int32(data[at + 3])
    )


def dump_spans(data: ByteArray, starts: Int32Array, ends: Int32Array) -> bytes:
    return _dump_spans(data, starts, ends).tobytes()


@kernel
def _dump_spans(data: ByteArray, starts: Int32Array, ends: Int32Array) -> ByteArray:
    size = LENGTH_BYTES + ARRAY_HEADER
    for i in range(len(starts)):
        size += LENGTH_BYTES + ends[i] - starts[i]
    out = np.empty(size + SURPLUS_BYTES, np.uint8)
    at = write_array_header(out, 0, _TEXT, 0, len(starts))
    for i in range(len(starts)):
        at = write4(out, at, ends[i] - starts[i])
        at = copy_span(data, starts[i], ends[i], out, at)
    return out[LENGTH_BYTES:at]


@inlined_kernel
def write_array_header(
    out: ByteArray, at: int, element_type: int, element_bytes: int, elements: int
) -> int:
    if elements == 0:
        at = write4(out, at, 12)
        at = write4(out, at, 0)
        at = write4(out, at, 0)
        return write4(out, at, element_type)
    at = write4(out, at, ARRAY_HEADER + (LENGTH_BYTES + element_bytes) * elements)
    at = write4(out, at, 1)
    at = write4(out, at, 0)
    at = write4(out, at, element_type)
    at = write4(out, at, elements)
    return write4(out, at, 1)


@inlined_kernel
def write4(out: ByteArray, at: int, value: int) -> int:
    """Write four bytes, and four surplus bytes, which the next value overwrites; return its place."""
    store64(out, at, np.uint64(swapped(value)))
    return at + 4


@inlined_kernel
def swapped(value: int) -> np.uint32:
    """Return the low 32 bits with their four bytes in the opposite order."""
    bits = np.uint32(np.int64(value))
    return np.uint32(
        bits << np.uint32(24)
        | (bits & np.uint32(0xFF00)) << np.uint32(8)
        | bits >> np.uint32(8) & np.uint32(0xFF00)
        | bits >> np.uint32(24)
    )


def load_signatures(
    values: Sequence[bytes], names: Sequence[object], config: CorpusConfig
) -> Signatures:
    if config.is_exact:
        return Ragged(*load_int4_arrays(values))
    signatures = Ragged(*load_int2_arrays(values))
    sizes = signatures.sizes
    damaged = np.flatnonzero((sizes != 0) & (sizes != config.num_hashes))
    if len(damaged):
        raise DatabaseError(
            f'the signature of document "{names[damaged[0]]}" has {sizes[damaged[0]]} values; '
            f"expected {config.num_hashes}: run textsim check"
        )
    return signatures
