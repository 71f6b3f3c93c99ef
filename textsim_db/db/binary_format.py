"""PostgreSQL's binary format of arrays, written from and read into NumPy arrays, and of times.

We do not use psycopg's adapters, because they handle one value at a time. And if an integer is too
large, psycopg's C build wraps it, and only its Python build raises an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

INT2, INT4, _INT8 = 21, 23, 20
TEXTS, TIMESTAMPTZ = 1009, 1184
"""The oids of types, in pg_type."""
_ARRAY_OIDS = {INT2: 1005, INT4: 1007, _INT8: 1016}
_ELEMENTS = {np.dtype(np.int16): INT2, np.dtype(np.int32): INT4, np.dtype(np.int64): _INT8}
ARRAY_HEADER = 20
"""The bytes before the elements of an array of one dimension."""


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
