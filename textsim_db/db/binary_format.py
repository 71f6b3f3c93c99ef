"""PostgreSQL's binary format of arrays, written from and read into NumPy arrays, and of times.

We do not use psycopg's adapters, because they handle one value at a time. And if an integer is too
large, psycopg's C build wraps it, and only its Python build raises an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

INT2, INT4, _INT8 = 21, 23, 20
"""The oids of types, in pg_type."""
_ARRAY_OIDS = {INT2: 1005, INT4: 1007, _INT8: 1016}
_ELEMENTS = {np.dtype(np.int16): INT2, np.dtype(np.int32): INT4, np.dtype(np.int64): _INT8}
ARRAY_HEADER = 20
"""The bytes before the elements of an array of one dimension."""


class Array:
    """A NumPy array of int16, int32 or int64 as a parameter of type int2[], int4[] or int8[]."""

    __slots__ = ("values",)

    def __init__(self, values: npt.NDArray[Any]) -> None:
        if values.dtype not in _ELEMENTS:
            raise TypeError(f"array of {values.dtype}; expected int16, int32 or int64")
        self.values = values

    @property
    def oid(self) -> int:
        return _ARRAY_OIDS[_ELEMENTS[self.values.dtype]]

    def dump(self) -> bytes:
        return dump_array(self.values)


class TextArray:
    """Texts as a parameter of type text[]; data is in the format of array_send."""

    __slots__ = ("_data",)
    oid = 1009

    def __init__(self, data: bytes) -> None:
        self._data = data

    def dump(self) -> bytes:
        return self._data


class Moment:
    """A time as a parameter of type timestamptz; data is in the format of timestamptz_send."""

    __slots__ = ("_data",)
    oid = 1184

    def __init__(self, data: bytes) -> None:
        self._data = data

    def dump(self) -> bytes:
        return self._data


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
