"""PostgreSQL's array format without a server, and the rows of buckets that are written."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pytest

from textsim_db.db.binary_format import array, dump_array, load_int4_array, load_int8_array
from textsim_db.sketch.ragged import of_rows
from textsim_db.write.copy_rows import band_rows

EXTREMES = [0, 1, -1, 2**31 - 1, -(2**31), 255, 256, 65536, -256]


def array_send(values: list[int], oid: int, code: str) -> bytes:
    """Return the bytes that the server's array_send returns."""
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
def test_arrays_equal_the_server(dtype: type, oid: int, code: str, values: list[int]) -> None:
    for part in (values, values[:1], []):
        sent = array_send(part, oid, code)
        assert dump_array(np.array(part, dtype)) == sent
        if code != "h":  # nothing reads such an array alone
            read = load_int4_array(sent) if code == "i" else load_int8_array(sent)
            assert read.dtype == dtype
            assert read.tolist() == part


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64, np.float64, np.bool_])
def test_arrays_of_other_types_are_refused(dtype: type) -> None:
    with pytest.raises(KeyError, match="dtype"):
        array(np.zeros(3, dtype))


def rows_of(buckets: list[list[int]], ids: list[int]) -> npt.NDArray[np.int64]:
    matrix = np.array(buckets, np.int32).reshape(len(ids), -1)
    return band_rows(of_rows(matrix, np.ones(len(ids), np.bool_)), np.array(ids, np.int64))


def pairs(rows: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    return [(int(row) >> 32, int(row) & 0xFFFFFFFF) for row in rows]


def test_rows_are_in_the_order_of_the_index() -> None:
    buckets = [[2**31 - 1, -(2**31), 0], [0, -1, 0]]
    rows = rows_of(buckets, [2**31 - 1, 1])
    expected = [(value, id_) for i, id_ in enumerate((2**31 - 1, 1)) for value in buckets[i]]
    assert pairs(rows) == sorted(expected)
