"""PostgreSQL's array format, written and read without a server."""

from __future__ import annotations

import random
import struct
from itertools import pairwise

import numpy as np
import pytest

from textsim_db.db.binary_format import (
    Array,
    dump_array,
    load_int4_array,
    load_int8_array,
)
from textsim_db.db.binary_rows import (
    Contents,
    Identities,
    copy_bands,
    copy_documents,
    load_int2_arrays,
    load_int4_arrays,
)

SMALL = [0, 1, -1, 2**15 - 1, -(2**15), 255, 256, -256]
NULL = struct.pack(">i", -1)
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
def test_an_array_is_dumped_as_the_server_does(
    dtype: type, oid: int, code: str, values: list[int]
) -> None:
    for part in (values, values[:1], []):
        assert dump_array(np.array(part, dtype)) == array_send(part, oid, code)


@pytest.mark.parametrize("values", [[], [7], EXTREMES, list(range(-500, 500))])
def test_an_int4_array_is_loaded(values: list[int]) -> None:
    loaded = load_int4_array(array_send(values, 23, "i"))
    assert loaded.dtype == np.int32
    assert loaded.tolist() == values


@pytest.mark.parametrize("values", [[], [7], SMALL])
def test_an_int8_array_is_loaded(values: list[int]) -> None:
    loaded = load_int8_array(array_send(values, 20, "q"))
    assert loaded.dtype == np.int64
    assert loaded.tolist() == values


@pytest.mark.parametrize("arrays", [[], [[]], [[1]], [[], SMALL, [], list(range(100)), []]])
def test_int2_arrays_are_loaded_with_offsets(arrays: list[list[int]]) -> None:
    values, offsets = load_int2_arrays([array_send(array, 21, "h") for array in arrays])
    assert values.dtype == np.int16
    assert values.tolist() == [value for array in arrays for value in array]
    assert offsets.tolist() == np.cumsum([0, *map(len, arrays)]).tolist()


@pytest.mark.parametrize(
    "arrays", [[], [[]], [[], []], [[1]], [[], EXTREMES, [], [5], list(range(100)), []]]
)
def test_int4_arrays_are_loaded_with_offsets(arrays: list[list[int]]) -> None:
    values, offsets = load_int4_arrays([array_send(array, 23, "i") for array in arrays])
    assert values.dtype == np.int32
    assert values.tolist() == [value for array in arrays for value in array]
    assert offsets.tolist() == np.cumsum([0, *map(len, arrays)]).tolist()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64, np.float64, np.bool_])
def test_arrays_of_other_types_are_refused(dtype: type) -> None:
    with pytest.raises(TypeError, match="expected int16, int32 or int64"):
        Array(np.zeros(3, dtype))


def test_band_rows_are_written_as_copy_reads_them(seed: int) -> None:
    rng = random.Random(seed)
    numbers = [rng.choice((*EXTREMES, rng.randrange(-(2**31), 2**31))) for _ in range(200)]
    rows = [number << 32 | other & 0xFFFFFFFF for number, other in pairwise(numbers)]
    for count in (0, 1, len(rows)):
        parts = [struct.pack(">hiiii", 2, 4, bucket, 4, id_) for bucket, id_ in pairwise(numbers)]
        assert copy_bands(np.array(rows[:count], np.int64)).tobytes() == b"".join(parts[:count])


@pytest.mark.parametrize("has_passages", [False, True])
@pytest.mark.parametrize("value_type", [np.int16, np.int32])
def test_documents_are_written_as_copy_reads_them(
    seed: int, value_type: type, has_passages: bool
) -> None:
    rng = random.Random(seed)
    oid, code, edges = (21, "h", SMALL) if value_type is np.int16 else (23, "i", EXTREMES)
    words = [[rng.choice(EXTREMES) for _ in range(rng.choice((0, 1, 2, 50)))] for _ in range(60)]
    values = [[rng.choice(edges) for _ in range(rng.choice((0, 1, 126)))] for _ in words]
    fingerprints = [[rng.choice(EXTREMES) for _ in range(rng.choice((0, 1, 30)))] for _ in words]
    keys = [rng.randbytes(rng.choice((0, 1, 7, 8, 9, 1000))) for _ in words]
    chosen = rng.sample(range(len(words)), 40)
    contents = Contents(
        np.arange(len(words)),
        np.array([word for each in words for word in each], np.int32),
        np.cumsum([0, *map(len, words)]),
        np.array([value for each in values for value in each], value_type),
        np.cumsum([0, *map(len, values)]),
    )
    if has_passages:
        contents = contents._replace(
            fingerprints=np.array([value for each in fingerprints for value in each], np.int32),
            fingerprint_offsets=np.cumsum([0, *map(len, fingerprints)]),
        )
    identities = Identities(
        np.arange(2**31 - 40, 2**31), [keys[i] for i in chosen], np.full(40, -1)
    )
    expected = [
        struct.pack(">hii", 10, 4, 2**31 - 40 + row)
        + struct.pack(">i", len(keys[i]))
        + keys[i]
        + struct.pack(">iiiiii", -1, 4, i, -1, -1, -1)
        + _with_length(array_send(words[i], 23, "i"))
        + _with_length(array_send(values[i], oid, code))
        + (_with_length(array_send(fingerprints[i], 23, "i")) if has_passages else NULL)
        for row, i in enumerate(chosen)
    ]
    data = copy_documents(identities, contents, np.array(chosen, np.int64))
    assert data.tobytes() == b"".join(expected)


def _with_length(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
