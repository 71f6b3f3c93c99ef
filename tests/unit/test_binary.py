"""PostgreSQL's array format, written and read without a server."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from textsim_db.db.binary_format import (
    Array,
    dump_array,
    load_int4_array,
    load_int8_array,
)
from textsim_db.db.binary_rows import load_int2_arrays, load_int4_arrays

SMALL = [0, 1, -1, 2**15 - 1, -(2**15), 255, 256, -256]
EXTREMES = [0, 1, -1, 2**31 - 1, -(2**31), 255, 256, 65536, -256]


def sent(values: list[int], oid: int, code: str) -> bytes:
    """Return what array_send gives."""
    if not values:
        return struct.pack(">iii", 0, 0, oid)
    size = struct.calcsize(f">{code}")
    parts = [struct.pack(">iiiii", 1, 0, oid, len(values), 1)]
    parts += [struct.pack(f">i{code}", size, value) for value in values]
    return b"".join(parts)


@pytest.mark.parametrize(
    ("dtype", "oid", "code", "values"),
    [
        (np.int16, 21, "h", [0, -1, 2**15 - 1, -(2**15)]),
        (np.int32, 23, "i", EXTREMES),
        (np.int64, 20, "q", [*EXTREMES, 2**63 - 1, -(2**63), 2**32]),
    ],
)
def test_dump_array(dtype: type, oid: int, code: str, values: list[int]) -> None:
    for some in (values, values[:1], []):
        assert dump_array(np.array(some, dtype)) == sent(some, oid, code)


@pytest.mark.parametrize("values", [[], [7], EXTREMES, list(range(-500, 500))])
def test_load_int4_array(values: list[int]) -> None:
    loaded = load_int4_array(sent(values, 23, "i"))
    assert loaded.dtype == np.int32
    assert loaded.tolist() == values


@pytest.mark.parametrize("values", [[], [7], SMALL])
def test_load_int8_array(values: list[int]) -> None:
    loaded = load_int8_array(sent(values, 20, "q"))
    assert loaded.dtype == np.int64
    assert loaded.tolist() == values


@pytest.mark.parametrize("arrays", [[], [[]], [[1]], [[], SMALL, [], list(range(100)), []]])
def test_load_int2_arrays(arrays: list[list[int]]) -> None:
    values, offsets = load_int2_arrays([sent(array, 21, "h") for array in arrays])
    assert values.dtype == np.int16
    assert values.tolist() == [value for array in arrays for value in array]
    assert offsets.tolist() == np.cumsum([0, *map(len, arrays)]).tolist()


@pytest.mark.parametrize(
    "arrays", [[], [[]], [[], []], [[1]], [[], EXTREMES, [], [5], list(range(100)), []]]
)
def test_load_int4_arrays(arrays: list[list[int]]) -> None:
    values, offsets = load_int4_arrays([sent(array, 23, "i") for array in arrays])
    assert values.dtype == np.int32
    assert values.tolist() == [value for array in arrays for value in array]
    assert offsets.tolist() == np.cumsum([0, *map(len, arrays)]).tolist()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64, np.float64, np.bool_])
def test_other_types_are_refused(dtype: type) -> None:
    with pytest.raises(TypeError, match="no type in PostgreSQL"):
        Array(np.zeros(3, dtype))
