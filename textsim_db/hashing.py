"""PostgreSQL's own hash functions, bit for bit, as kernels over bytes and integers.

hashtextextended and hash_array_extended are built on lookup3 (Bob Jenkins, 2006,
https://burtleburtle.net/bob/c/lookup3.c), with PostgreSQL's initial values. All arithmetic is on
uint32 carried in uint32, so that it wraps as in C.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from textsim_db.kernels import kernel

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_START = np.uint32(0x9E3779B9)
_LENGTH_BIAS = np.uint32(3923095)


@kernel
def _rotate(x: np.uint32, bits: int) -> np.uint32:
    return np.uint32((x << np.uint32(bits)) | (x >> np.uint32(32 - bits)))


@kernel
def _mix(a: np.uint32, b: np.uint32, c: np.uint32) -> tuple[np.uint32, np.uint32, np.uint32]:
    a = np.uint32((a - c) ^ _rotate(c, 4))
    c = np.uint32(c + b)
    b = np.uint32((b - a) ^ _rotate(a, 6))
    a = np.uint32(a + c)
    c = np.uint32((c - b) ^ _rotate(b, 8))
    b = np.uint32(b + a)
    a = np.uint32((a - c) ^ _rotate(c, 16))
    c = np.uint32(c + b)
    b = np.uint32((b - a) ^ _rotate(a, 19))
    a = np.uint32(a + c)
    c = np.uint32((c - b) ^ _rotate(b, 4))
    b = np.uint32(b + a)
    return a, b, c


@kernel
def _final(a: np.uint32, b: np.uint32, c: np.uint32) -> tuple[np.uint32, np.uint32]:
    c = np.uint32((c ^ b) - _rotate(b, 14))
    a = np.uint32((a ^ c) - _rotate(c, 11))
    b = np.uint32((b ^ a) - _rotate(a, 25))
    c = np.uint32((c ^ b) - _rotate(b, 16))
    a = np.uint32((a ^ c) - _rotate(c, 4))
    b = np.uint32((b ^ a) - _rotate(a, 14))
    c = np.uint32((c ^ b) - _rotate(b, 24))
    return b, c


@kernel
def _word(data: Bytes, at: int) -> np.uint32:
    return np.uint32(
        np.uint32(data[at])
        | (np.uint32(data[at + 1]) << np.uint32(8))
        | (np.uint32(data[at + 2]) << np.uint32(16))
        | (np.uint32(data[at + 3]) << np.uint32(24))
    )


@kernel
def _tail(data: Bytes, at: int, end: int) -> np.uint32:
    """Return the bytes from at to end, at most four, as a little-endian number."""
    if at + 4 <= end:
        return _word(data, at)
    value = np.uint32(0)
    for i in range(at, end):
        value |= np.uint32(data[i]) << np.uint32(8 * (i - at))
    return value


@kernel
def hash_span(data: Bytes, start: int, end: int) -> np.uint64:
    """Return hashtextextended(data[start:end], 0) as an unsigned integer."""
    a = b = c = np.uint32(_START + _LENGTH_BIAS + np.uint32(end - start))
    at = start
    while end - at >= 12:
        a = np.uint32(a + _word(data, at))
        b = np.uint32(b + _word(data, at + 4))
        c = np.uint32(c + _word(data, at + 8))
        a, b, c = _mix(a, b, c)
        at += 12
    a = np.uint32(a + _tail(data, at, end))
    b = np.uint32(b + _tail(data, at + 4, end))
    # The lowest byte of c stands for the length, so the last bytes start at the second.
    c = np.uint32(c + (_tail(data, at + 8, end) << np.uint32(8)))
    b, c = _final(a, b, c)
    return (np.uint64(b) << np.uint64(32)) | np.uint64(c)


@kernel
def hash_integer(value: np.uint32, seed: np.uint64) -> np.uint64:
    """Return hashint4extended(value, seed) as an unsigned integer."""
    a = b = c = np.uint32(_START + _LENGTH_BIAS + np.uint32(4))
    if seed != 0:
        a = np.uint32(a + np.uint32(seed >> np.uint64(32)))
        b = np.uint32(b + np.uint32(seed & np.uint64(0xFFFFFFFF)))
        a, b, c = _mix(a, b, c)
    b, c = _final(np.uint32(a + value), b, c)
    return (np.uint64(b) << np.uint64(32)) | np.uint64(c)


@kernel
def hash_spans(data: Bytes, starts: Offsets, ends: Offsets) -> npt.NDArray[np.int64]:
    """Return hashtextextended(span, 0) for each span of UTF-8 bytes: int64 of shape (spans,)."""
    hashes = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        hashes[i] = np.int64(hash_span(data, starts[i], ends[i]))
    return hashes


def hash_texts(texts: Sequence[str]) -> list[int]:
    """Return hashtextextended(text, 0) of each text; for a few at a time."""
    parts = [text.encode() for text in texts]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    starts = ends - np.array([len(part) for part in parts], np.int64)
    hashes: list[int] = hash_spans(np.frombuffer(b"".join(parts), np.uint8), starts, ends).tolist()
    return hashes


@kernel
def hash_bands(signatures: npt.NDArray[np.int32], bands: int, rows: int) -> npt.NDArray[np.int64]:
    """Return hash_array_extended(signature[j * rows:(j + 1) * rows], j) for each band j.

    signatures has the shape (documents, hashes); the result is int64 of shape (documents, bands).
    """
    buckets = np.empty((len(signatures), bands), np.int64)
    for i in range(len(signatures)):
        for j in range(bands):
            value = np.uint64(1)
            for k in range(j * rows, (j + 1) * rows):
                element = hash_integer(np.uint32(signatures[i, k]), np.uint64(j))
                value = (value << np.uint64(5)) - value + element
            buckets[i, j] = np.int64(value)
    return buckets
