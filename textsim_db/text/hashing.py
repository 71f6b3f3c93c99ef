"""PostgreSQL's own hash functions, bit for bit, as kernels over bytes and integers.

hashtextextended and hash_array_extended are built on lookup3 (Bob Jenkins, 2006,
https://burtleburtle.net/bob/c/lookup3.c), with PostgreSQL's initial values. All arithmetic is on
uint32 carried in uint32, so that it wraps as in C.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from textsim_db.text.numba_compiler import kernel, load64

Bytes = npt.NDArray[np.uint8]
Spans = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]

_START = np.uint32(0x9E3779B9)
_LENGTH_BIAS = np.uint32(3923095)
PADDING = 16
"""Bytes that must follow the last span to be hashed: it is read eight bytes at a time."""


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
def hash_span(data: Bytes, start: int, end: int) -> np.uint64:
    """Return hashtextextended(data[start:end], 0) as an unsigned integer.

    data must go on for PADDING bytes after the span; what they are does not matter.
    """
    a = b = c = np.uint32(_START + _LENGTH_BIAS + np.uint32(end - start))
    at = start
    while end - at >= 12:
        low = load64(data, at)
        a = np.uint32(a + np.uint32(low))
        b = np.uint32(b + np.uint32(low >> np.uint64(32)))
        c = np.uint32(c + np.uint32(load64(data, at + 8)))
        a, b, c = _mix(a, b, c)
        at += 12
    left = end - at
    low = load64(data, at)
    if left < 8:
        low &= (np.uint64(1) << np.uint64(8 * left)) - np.uint64(1)
    else:
        # The lowest byte of c stands for the length, so the last bytes start at the second.
        last = load64(data, at + 8) & ((np.uint64(1) << np.uint64(8 * (left - 8))) - np.uint64(1))
        c = np.uint32(c + np.uint32(last << np.uint64(8)))
    b, c = _final(np.uint32(a + np.uint32(low)), np.uint32(b + np.uint32(low >> np.uint64(32))), c)
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
def hash_spans(data: Bytes, starts: Spans, ends: Spans) -> npt.NDArray[np.int64]:
    """Return hashtextextended(span, 0) for each span of UTF-8 bytes: int64 of shape (spans,).

    data must go on for PADDING bytes after the last span.
    """
    hashes = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        hashes[i] = np.int64(hash_span(data, starts[i], ends[i]))
    return hashes


def hash_texts(texts: Sequence[str]) -> list[int]:
    """Return hashtextextended(text, 0) of each text; for a few at a time."""
    parts = [*(text.encode() for text in texts), bytes(PADDING)]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int32)
    starts = ends - np.array([len(part) for part in parts], np.int32)
    data = np.frombuffer(b"".join(parts), np.uint8)
    hashes: list[int] = hash_spans(data, starts[:-1], ends[:-1]).tolist()
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
