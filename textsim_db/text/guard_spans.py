"""The lines of a guard: a count, or different spans of bytes in their order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import ByteArray, Int64Array, inlined_kernel, kernel
from textsim_db.text.hashing import PADDING
from textsim_db.text.utf8 import copy_span

NEWLINE, _ZERO = b"\n0"
_ROOM = 64
"""Bytes for the kind of a line, a count and the newline."""
_FEW = 16
"""Up to this number, spans are sorted by insertion."""


class Spans(NamedTuple):
    """Spans of some bytes, and space to sort them."""

    starts: Int64Array
    """The first byte of each."""
    ends: Int64Array
    """The byte after each."""
    order: Int64Array
    """Their numbers, in order of their bytes."""
    merged: Int64Array
    """The order while it is merged."""


@kernel
def space_for_spans(most: int) -> Spans:
    return Spans(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )


@kernel
def with_space(lines: ByteArray, size: int, needed: int) -> ByteArray:
    """Return lines with space for these bytes and one more short line."""
    needed += size + _ROOM + PADDING
    if needed <= len(lines):
        return lines
    longer = np.empty(2 * needed, np.uint8)
    copy_span(lines, 0, size, longer, 0)
    return longer


@inlined_kernel
def bytes_of_lines(spans: Spans, count: int) -> int:
    """Return the bytes of a line for each of the first spans."""
    needed = 0
    for i in range(count):
        needed += spans.ends[i] - spans.starts[i] + _ROOM
    return needed


@inlined_kernel
def write_bytes(written: tuple[int, ...], lines: ByteArray, size: int) -> int:
    for byte in written:
        lines[size] = byte
        size += 1
    return size


@inlined_kernel
def write_count(kind: tuple[int, ...], number: int, lines: ByteArray, size: int) -> int:
    """Write a line with a number above 0; return the bytes written."""
    size = write_bytes(kind, lines, size)
    power = 1
    while power * 10 <= number:
        power *= 10
    while power:
        lines[size] = _ZERO + number // power % 10
        size += 1
        power //= 10
    lines[size] = NEWLINE
    return size + 1


@inlined_kernel
def write_spans(
    data: ByteArray, spans: Spans, count: int, kind: tuple[int, ...], lines: ByteArray, size: int
) -> int:
    """Write a line for each different span, in order of their bytes; return the bytes written."""
    _sort(data, spans, count)
    for i in range(count):
        start, end = spans.starts[spans.order[i]], spans.ends[spans.order[i]]
        if i > 0 and _compare(data, spans, spans.order[i - 1], spans.order[i]) == 0:
            continue
        size = write_bytes(kind, lines, size)
        size = copy_span(data, start, end, lines, size)
        lines[size] = NEWLINE
        size += 1
    return size


@kernel
def _sort(data: ByteArray, spans: Spans, count: int) -> None:
    """Sort the first spans by their bytes: few at a time by insertion, and then by merging."""
    order, merged = spans.order, spans.merged
    for first in range(0, count, _FEW):
        for i in range(first, min(first + _FEW, count)):
            at = i
            while at > first and _compare(data, spans, order[at - 1], i) > 0:
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
    width = _FEW
    while width < count:
        for first in range(0, count, 2 * width):
            middle, end = min(first + width, count), min(first + 2 * width, count)
            a, b = first, middle
            for at in range(first, end):
                if b == end or (a < middle and _compare(data, spans, order[a], order[b]) <= 0):
                    merged[at] = order[a]
                    a += 1
                else:
                    merged[at] = order[b]
                    b += 1
        for at in range(count):
            order[at] = merged[at]
        width *= 2


@inlined_kernel
def _compare(data: ByteArray, spans: Spans, a: int, b: int) -> int:
    """Return a number below, at or above 0, as the bytes of a are before, at or after those of b."""
    start, other = spans.starts[a], spans.starts[b]
    length, other_length = spans.ends[a] - start, spans.ends[b] - other
    for k in range(min(length, other_length)):
        if data[start + k] != data[other + k]:
            return int(np.int64(data[start + k]) - np.int64(data[other + k]))
    return int(length - other_length)
