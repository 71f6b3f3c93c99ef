"""Fingerprints: a few values of each text; two texts that share a passage have an equal one.

A text is a row of units: its words, or its characters if the corpus has shingles of characters. A
shingle is n units here, and a window is as many shingles as a passage of the least length has. Each
window chooses one of its shingles: the first in the order of their classes of commonness, then of the
high halves of their values, and of equals the rightmost. The choice depends on no other units, so equal
windows of two texts choose the same shingle. Schleimer, Wilkerson and Aiken, "Winnowing: Local
Algorithms for Document Fingerprinting", SIGMOD 2003.

A fingerprint is the low half of the value: the high halves of chosen values are all small, so more of
them are equal by chance. A window whose shingles all have the class LEFT_OUT or a higher one chooses
none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import (
    ByteArray,
    HashArray,
    Int16Array,
    Int32Array,
    Int64Array,
    inlined_kernel,
    kernel,
    longest,
)
from textsim_db.settings.choose_bands import Window, window_of
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.sketch.exact_prefix import NO_COMMON, CommonValues, class_of
from textsim_db.sketch.ragged import Ragged
from textsim_db.text.hashing import hash_span
from textsim_db.text.shingles import array_elements, characters
from textsim_db.text.utf8 import Tokens, decode

LEFT_OUT = 10
"""Shingles of this class and above are no fingerprints: 1,024 documents of the sample have them. A lower
class leaves more passages out, and a higher one lets a search read more documents."""

_LEAST_LEFT_OUT = (LEFT_OUT << 32) - (1 << 31)
"""The least rank of a shingle of the class LEFT_OUT; the least high half of a value is -(1 << 31)."""

Fingerprints = Ragged
"""The distinct fingerprints of documents, in order: int32."""


class Units(NamedTuple):
    """The units of documents."""

    elements: HashArray
    """hashint8extended of the hash of each unit, as array_elements() returns it: (units,)."""
    offsets: Int64Array
    """The bounds of each document: (documents + 1,)."""


def fingerprints_of(tokens: Tokens, config: CorpusConfig) -> Fingerprints:
    """Return the fingerprints of texts."""
    common = config.common_of_passages or NO_COMMON
    return Ragged(*_fingerprints(_units_of(tokens, config), _window(config), common))


class PassageShingles(NamedTuple):
    """The shingles of one text, repeated shingles included: (shingles,) each."""

    values: Int64Array
    classes: Int16Array
    """The class of commonness of each value."""


class LeftOutRun(NamedTuple):
    """A run of a text whose windows choose no shingle, because all are too common."""

    start: int
    """The place of its first shingle."""
    shingles: int


def passage_shingles(tokens: Tokens, config: CorpusConfig) -> PassageShingles:
    values = _values(_units_of(tokens, config), _window(config).n)
    return PassageShingles(values, _classes(values, config.common_of_passages or NO_COMMON))


def left_out_runs(shingles: PassageShingles, config: CorpusConfig) -> list[LeftOutRun]:
    """Return the runs of one text by which no document is found."""
    places = np.flatnonzero(shingles.classes >= LEFT_OUT)
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    least = _window(config).width
    return [LeftOutRun(int(run[0]), len(run)) for run in runs if len(run) >= least]


def fingerprints_of_shingles(shingles: PassageShingles, config: CorpusConfig) -> Int32Array:
    return _fingerprints_of_shingles(shingles, _window(config).width)


def distinct_passage_values(tokens: Tokens, config: CorpusConfig) -> Int64Array:
    """Return the distinct shingle values of each text, one text after another: (values,)."""
    return _distinct_values(_units_of(tokens, config), _window(config).n)


def count_units(tokens: Tokens, config: CorpusConfig) -> int:
    """Return the number of words of one text, or of characters if the corpus compares these."""
    if config.shingle.unit == "word":
        return len(tokens.starts)
    return len(characters(tokens.utf8)[0].tobytes().decode())


def _window(config: CorpusConfig) -> Window:
    assert config.passages is not None
    return window_of(config.passages)


def _units_of(tokens: Tokens, config: CorpusConfig) -> Units:
    """Return the words of texts, or their characters if the shingles of the corpus are characters."""
    if config.shingle.unit == "word":
        return Units(array_elements(tokens.hashes), tokens.word_offsets)
    hashes, offsets = _hash_characters(*characters(tokens.utf8))
    return Units(array_elements(hashes), offsets)


@kernel
def _hash_characters(data: ByteArray, bounds: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return hashtextextended(character, 0) of each character, and the bounds of each document."""
    hashes = np.empty(bounds[-1] - bounds[0], np.int64)
    offsets = np.zeros(len(bounds), np.int64)
    count = 0
    for i in range(len(bounds) - 1):
        at = bounds[i]
        while at < bounds[i + 1]:
            _, end = decode(data, at)
            hashes[count] = np.int64(hash_span(data, at, end))
            count += 1
            at = end
        offsets[i + 1] = count
    return hashes[:count].copy(), offsets


@kernel
def _values(units: Units, n: int) -> Int64Array:
    values = np.empty(len(units.elements), np.int64)
    count = _write_values(units.elements, n, values)
    return values[:count].copy()


@kernel
def _classes(values: Int64Array, common: CommonValues) -> Int16Array:
    classes = np.empty(len(values), np.int16)
    for k in range(len(values)):
        classes[k] = class_of(values[k], common)
    return classes


@kernel
def _distinct_values(units: Units, n: int) -> Int64Array:
    values = np.empty(len(units.elements), np.int64)
    total = 0
    for i in range(len(units.offsets) - 1):
        document = units.elements[units.offsets[i] : units.offsets[i + 1]]
        own = values[total:]
        count = _write_values(document, n, own)
        own[:count].sort()
        total += _keep_distinct(own, count)
    return values[:total].copy()


@kernel
def _fingerprints(
    units: Units, window: Window, common: CommonValues
) -> tuple[Int32Array, Int64Array]:
    offsets = np.zeros(len(units.offsets), np.int64)
    fingerprints = np.empty(len(units.elements), np.int32)
    values = np.empty(longest(units.offsets), np.int64)
    ranks = np.empty_like(values)
    for i in range(len(offsets) - 1):
        document = units.elements[units.offsets[i] : units.offsets[i + 1]]
        shingles = _write_values(document, window.n, values)
        for k in range(shingles):
            ranks[k] = _rank(values[k], class_of(values[k], common))
        chosen = fingerprints[offsets[i] :]
        count = _choose(values, ranks[:shingles], window.width, chosen)
        chosen[:count].sort()
        offsets[i + 1] = offsets[i] + _keep_distinct(chosen, count)
    return fingerprints[: offsets[-1]].copy(), offsets


@kernel
def _fingerprints_of_shingles(shingles: PassageShingles, width: int) -> Int32Array:
    ranks = np.empty(len(shingles.values), np.int64)
    for k in range(len(ranks)):
        ranks[k] = _rank(shingles.values[k], shingles.classes[k])
    fingerprints = np.empty(len(ranks), np.int32)
    count = _choose(shingles.values, ranks, width, fingerprints)
    fingerprints[:count].sort()
    return fingerprints[: _keep_distinct(fingerprints, count)].copy()


@inlined_kernel
def _rank(value: int, commonness: int) -> np.int64:
    """Return the number that orders shingles: by class, and then by the high half of the value."""
    return (np.int64(commonness) << 32) + (value >> 32)


@inlined_kernel
def _write_values(elements: HashArray, n: int, values: Int64Array) -> int:
    """Write the value of each shingle of a text, repeated ones included; return their number."""
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
def _choose(values: Int64Array, ranks: Int64Array, width: int, chosen: Int32Array) -> int:
    """Write the fingerprint of each window unless the window before chose it too; return how many."""
    count, first = 0, -1
    for start in range(len(ranks) - width + 1):
        before, last = first, start + width - 1
        if first < start:  # it has left the window
            first = _first_in_order(ranks, start, last)
        elif ranks[last] <= ranks[first]:
            first = last
        if first != before and ranks[first] < _LEAST_LEFT_OUT:
            chosen[count] = np.int32(values[first])
            count += 1
    return count


@inlined_kernel
def _first_in_order(ranks: Int64Array, start: int, last: int) -> int:
    """Return the place of the smallest rank of a window, the rightmost of equals."""
    place = start
    for k in range(start + 1, last + 1):
        if ranks[k] <= ranks[place]:
            place = k
    return place


@inlined_kernel
def _keep_distinct(values: Int32Array | Int64Array, count: int) -> int:
    """Move the distinct ones of sorted values to the front; return how many there are."""
    kept = 0
    for k in range(count):
        if k == 0 or values[k] != values[kept - 1]:
            values[kept] = values[k]
            kept += 1
    return kept
