"""All runs of words that documents share, by a suffix array: a second way to find passages.

Manber and Myers, "Suffix arrays: a new method for on-line string searches", 1993; and Kasai, Lee,
Arimura, Arikawa and Park, "Linear-time longest-common-prefix computation in suffix arrays", 2001.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from textsim_db.text.numba_compiler import Int64Array, kernel


class SuffixArray(NamedTuple):
    """The suffixes of documents in order. Each document ends with a number that no other has."""

    words: Int64Array
    """The numbers of the words of all documents."""
    offsets: Int64Array
    """The bounds of each document: (documents + 1,)."""
    owners: Int64Array
    """The document of each word."""
    suffixes: Int64Array
    """The first word of each suffix, in the order of the suffixes."""
    ranks: Int64Array
    """The place of each suffix in this order."""
    shared: Int64Array
    """By place: the words that a suffix and the suffix before it begin with."""


Run = tuple[int, int, int]
"""The words in the run, and the words before it in both documents."""


def suffix_array(documents: Iterable[Sequence[str]]) -> SuffixArray:
    """Sort the suffixes of documents, by sorting runs of 1, 2, 4, ... words."""
    ids: dict[str, int] = {}
    numbers = [[ids.setdefault(word, len(ids)) for word in document] for document in documents]
    ended = [[*document, len(ids) + i] for i, document in enumerate(numbers)]
    lengths = [len(document) for document in ended]
    words = np.concatenate([np.array(document, np.int64) for document in ended])
    ranks, length = words, 1
    while True:
        following = np.zeros_like(ranks)
        following[:-length] = ranks[length:] + 1
        keys = ranks * (len(words) + len(ids) + 2) + following
        order = np.argsort(keys, kind="stable")
        ranks = np.empty_like(ranks)
        ranks[order] = np.cumsum(np.append(0, np.diff(keys[order]) != 0))
        length *= 2
        if ranks[order[-1]] == len(words) - 1:
            break
    offsets = np.append(0, np.cumsum(lengths))
    owners = np.repeat(np.arange(len(lengths)), lengths)
    return SuffixArray(words, offsets, owners, order, ranks, _shared_words(words, order, ranks))


def runs_with(array: SuffixArray, document: int, least: int) -> dict[int, list[Run]]:
    """Return the runs of each other document that a document has, if they have at least `least` words.

    A run is in no longer run of the other document. Of overlapping places of one run, the first counts.
    """
    others, *runs = _runs_with(array, document, least)
    rows = zip(others.tolist(), *(column.tolist() for column in runs), strict=True)
    by_other = groupby(rows, key=lambda row: row[0])
    return {other: [(a, b, c) for _, a, b, c in group] for other, group in by_other}


@kernel
def _shared_words(words: Int64Array, suffixes: Int64Array, ranks: Int64Array) -> Int64Array:
    shared = np.zeros(len(words), np.int64)
    length = 0
    for i in range(len(words)):
        if ranks[i] == 0:
            length = 0
            continue
        j = suffixes[ranks[i] - 1]
        while i + length < len(words) and j + length < len(words):
            if words[i + length] != words[j + length]:
                break
            length += 1
        shared[ranks[i]] = length
        length = max(length - 1, 0)
    return shared


@kernel
def _runs_with(
    array: SuffixArray, document: int, least: int
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    longest = np.zeros(len(array.words), np.int64)
    for i in range(array.offsets[document], array.offsets[document + 1]):
        _note_lengths(array, document, i, least, longest)
    others, sizes, in_document, in_other = [0], [0], [0], [0]
    last_size, last_place, last_start = 0, -1, -1
    for j in map(int, np.flatnonzero(longest)):
        size = int(longest[j])
        if j > 0 and longest[j - 1] > size:
            continue  # it is the rest of the run before it
        place = _first_place(array, document, j, size)
        is_repeated = size == last_size and place == last_place and j < last_start + last_size
        last_size, last_place, last_start = size, place, j
        if not is_repeated:
            others.append(array.owners[j])
            sizes.append(size)
            in_document.append(place - array.offsets[document])
            in_other.append(j - array.offsets[array.owners[j]])
    return (
        np.array(others)[1:],
        np.array(sizes)[1:],
        np.array(in_document)[1:],
        np.array(in_other)[1:],
    )


@kernel
def _note_lengths(
    array: SuffixArray, document: int, i: int, least: int, longest: Int64Array
) -> None:
    """Raise the lengths of the suffixes beside a suffix of a document, up to the next one of it."""
    for step in (-1, 1):
        rank = array.ranks[i]
        size = len(array.words)
        while 0 <= rank + step < len(array.words):
            size = min(size, int(array.shared[max(rank, rank + step)]))
            rank += step
            j = array.suffixes[rank]
            if size < least or array.owners[j] == document:
                break
            longest[j] = max(longest[j], size)


@kernel
def _first_place(array: SuffixArray, document: int, j: int, size: int) -> int:
    """Return the first word in a document of the run of a size that begins at j."""
    first = int(array.offsets[document + 1])
    for step in (-1, 1):
        rank = array.ranks[j]
        while 0 <= rank + step < len(array.words):
            if array.shared[max(rank, rank + step)] < size:
                break
            rank += step
            if array.owners[array.suffixes[rank]] == document:
                first = min(first, int(array.suffixes[rank]))
    return first
