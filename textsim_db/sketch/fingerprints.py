"""Fingerprints: few values of a text, of which two texts with a shared run of words have one in common.

Each window of words chooses one of the shingles in it: the first in the order of the high halves of
their values, and of equals the rightmost. The choice depends on no other words, so equal windows of two
texts choose the same shingle. Schleimer, Wilkerson and Aiken, "Winnowing: Local Algorithms for Document
Fingerprinting", SIGMOD 2003.

A fingerprint is the low half of the value: the high half of a value that comes first is always small.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.sketch.ragged import Ragged
from textsim_db.text.array_types import HashArray, Int32Array, Int64Array, longest
from textsim_db.text.numba_compiler import inlined_kernel, kernel
from textsim_db.text.shingles import array_elements
from textsim_db.text.tokens import Tokens

Fingerprints = Ragged
"""The distinct fingerprints of documents, in order: int32."""


class Window(NamedTuple):
    """The shingles of which a fingerprint is chosen."""

    n: int
    """The words in a shingle."""
    width: int
    """The shingles in a window."""


def window_of(words: int) -> Window:
    """Return the window of a passage of this many words.

    Longer shingles are in fewer documents by chance, and shorter ones make fewer fingerprints.
    """
    n = max(3, words // 2)
    return Window(n, words - n + 1)


def fingerprints_of(tokens: Tokens, words: int) -> Fingerprints:
    """Return the fingerprints of texts; words: the words of the shortest passage that is found.

    A text of fewer words has none.
    """
    elements = array_elements(tokens.hashes)
    return Ragged(*_fingerprints(elements, tokens.word_offsets, window_of(words)))


def all_fingerprints(tokens: Tokens, words: int) -> Int32Array:
    """Return the low half of the value of each shingle of one text: int32 of shape (shingles,)."""
    return _low_halves(array_elements(tokens.hashes), window_of(words).n)


@kernel
def _low_halves(elements: HashArray, n: int) -> Int32Array:
    values = np.empty(len(elements), np.int64)
    fingerprints = np.empty(_write_values(elements, n, values), np.int32)
    for k in range(len(fingerprints)):
        fingerprints[k] = np.int32(values[k])
    return fingerprints


@kernel
def _fingerprints(
    elements: HashArray, word_offsets: Int64Array, window: Window
) -> tuple[Int32Array, Int64Array]:
    offsets = np.zeros(len(word_offsets), np.int64)
    fingerprints = np.empty(len(elements), np.int32)
    values = np.empty(longest(word_offsets), np.int64)
    for i in range(len(offsets) - 1):
        document = elements[word_offsets[i] : word_offsets[i + 1]]
        shingles = _write_values(document, window.n, values)
        chosen = fingerprints[offsets[i] :]
        count = _choose(values, shingles, window.width, chosen)
        chosen[:count].sort()
        offsets[i + 1] = offsets[i] + _keep_distinct(chosen, count)
    return fingerprints[: offsets[-1]].copy(), offsets


@inlined_kernel
def _write_values(elements: HashArray, n: int, values: Int64Array) -> int:
    """Write the value of each shingle of a text, repeated shingles included; return how many there are.

    The value is hash_array_extended of n words; see textsim_db.text.shingles.
    """
    power, total = np.uint64(1), np.uint64(0)
    for k in range(len(elements)):
        total = total * np.uint64(31) + elements[k]
        if k < n:
            power *= np.uint64(31)
        else:
            total -= power * elements[k - n]
        if k >= n - 1:
            values[k - n + 1] = np.int64(power + total)
    return max(len(elements) - n + 1, 0)


@inlined_kernel
def _choose(values: Int64Array, shingles: int, width: int, chosen: Int32Array) -> int:
    """Write the fingerprint of each window unless the last window has chosen it; return how many."""
    count, first_one = 0, -1
    for start in range(shingles - width + 1):
        before = first_one
        if first_one < start:  # it has left the window
            first_one = _first_in_order(values, start, start + width)
        elif _comes_first(values, start + width - 1, first_one):
            first_one = start + width - 1
        if first_one != before:
            chosen[count] = np.int32(values[first_one])
            count += 1
    return count


@inlined_kernel
def _first_in_order(values: Int64Array, start: int, end: int) -> int:
    """Return the place of the value of a window that comes first."""
    place = start
    for k in range(start + 1, end):
        if _comes_first(values, k, place):
            place = k
    return place


@inlined_kernel
def _comes_first(values: Int64Array, place: int, earlier: int) -> bool:
    """Say whether a value comes before one at an earlier place; of equals, the rightmost comes first."""
    return bool(values[place] >> 32 <= values[earlier] >> 32)


@inlined_kernel
def _keep_distinct(values: Int32Array, count: int) -> int:
    """Move the distinct ones of sorted values to the front; return how many there are."""
    kept = 0
    for k in range(count):
        if k == 0 or values[k] != values[kept - 1]:
            values[kept] = values[k]
            kept += 1
    return kept
