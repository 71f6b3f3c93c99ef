"""Fingerprints: few values of a text, of which two texts with a shared run of words have one in common.

Each window of words chooses the smallest value of the shingles in it. The choice depends on no other
words, so equal windows of two texts choose the same shingle. Schleimer, Wilkerson and Aiken, "Winnowing:
Local Algorithms for Document Fingerprinting", SIGMOD 2003.

A fingerprint is the low half of this value: the high half of a smallest value is always small.
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
    count, smallest = 0, -1
    for first in range(shingles - width + 1):
        before = smallest
        if smallest < first:  # it has left the window
            smallest = first
            for k in range(first + 1, first + width):
                if values[k] < values[smallest]:
                    smallest = k
        elif values[first + width - 1] < values[smallest]:
            smallest = first + width - 1
        if smallest != before:
            chosen[count] = np.int32(values[smallest])
            count += 1
    return count


@inlined_kernel
def _keep_distinct(values: Int32Array, count: int) -> int:
    """Move the distinct ones of sorted values to the front; return how many there are."""
    kept = 0
    for k in range(count):
        if k == 0 or values[k] != values[kept - 1]:
            values[kept] = values[k]
            kept += 1
    return kept
