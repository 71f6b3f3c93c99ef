"""PostgreSQL's binary format of arrays, made from and read into NumPy arrays.

Everything is built here and not by psycopg's own adapters: of its two builds, the C one wraps
integers that do not fit where the Python one raises, and both handle one value at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_INT2, _INT4, _INT8 = 21, 23, 20
_ARRAY_OIDS = {_INT2: 1005, _INT4: 1007, _INT8: 1016}
_ELEMENTS = {np.dtype(np.int16): _INT2, np.dtype(np.int32): _INT4, np.dtype(np.int64): _INT8}
_ARRAY_HEADER = 20


class Array:
    """A NumPy array of int16, int32 or int64 as a parameter of type int2[], int4[] or int8[]."""

    __slots__ = ("values",)

    def __init__(self, values: npt.NDArray[Any]) -> None:
        if values.dtype not in _ELEMENTS:
            raise TypeError(f"an array of {values.dtype} has no type in PostgreSQL here")
        self.values = values

    @property
    def oid(self) -> int:
        """The number of its type in PostgreSQL."""
        return _ARRAY_OIDS[_ELEMENTS[self.values.dtype]]

    def dump(self) -> bytes:
        """Return it in the format of array_send."""
        return dump_array(self.values)


class TextArray:
    """Texts as a parameter of type text[]: data, as array_send gives them."""

    __slots__ = ("_data",)
    oid = 1009

    def __init__(self, data: bytes) -> None:
        self._data = data

    def dump(self) -> bytes:
        """Return it in the format of array_send."""
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
    """Read what array_send gives for an int4[] without NULLs: int32 of shape (elements,)."""
    return _load_array(data, np.int32)


def load_int8_array(data: bytes) -> npt.NDArray[np.int64]:
    """Read what array_send gives for an int8[] without NULLs: int64 of shape (elements,)."""
    return _load_array(data, np.int64)


def _load_array(data: bytes, type_: type[Any]) -> npt.NDArray[Any]:
    dtype = np.dtype(type_)
    element = np.dtype([("length", ">i4"), ("value", dtype.newbyteorder(">"))])
    # A NULL is shorter than an element: the elements of a damaged array mean nothing, and are read.
    count = max(len(data) - _ARRAY_HEADER, 0) // element.itemsize
    rows = np.frombuffer(data, element, count, min(_ARRAY_HEADER, len(data)))
    return rows["value"].astype(dtype)
