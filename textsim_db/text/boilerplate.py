"""Boilerplate: shingles that many documents of a corpus share, such as a header.

Their words are left out of every text, so no later step knows of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from textsim_db.base.numba_compiler import (
    BoolArray,
    HashArray,
    Int64Array,
    inlined_kernel,
    kernel,
)
from textsim_db.settings.named_values import Shingle
from textsim_db.text.shingles import array_elements, find_shingles
from textsim_db.text.utf8 import Tokens

FEWEST_SAMPLED = 100
"""A sample of fewer documents does not show which shingles are boilerplate."""
FEWEST_SHARING = 10
"""Fewer documents than this may be copies of each other."""


def learn_boilerplate(samples: Iterable[Tokens], n: int, share: float) -> tuple[int, ...]:
    """Return the values of the shingles that more than a share of a sample has, sorted.

    n: the words of a shingle. Equal texts of one part count once, so that copies are no boilerplate.
    Returns none if there are fewer than FEWEST_SAMPLED texts. The share is of the texts that count.
    """
    hashes, documents = [np.empty(0, np.int64)], 0
    for tokens in samples:
        shingles = find_shingles(tokens, Shingle("word", n))
        first = first_copies(tokens)
        documents += len(first)
        is_first = np.zeros(tokens.documents, np.bool_)
        is_first[first] = True
        counts = np.diff(shingles.offsets)
        hashes.append(shingles.hashes.view(np.int64)[np.repeat(is_first, counts)])
    if documents < FEWEST_SAMPLED:
        return ()
    values, counts = np.unique(np.concatenate(hashes), return_counts=True)
    is_boilerplate = (counts > share * documents) & (counts >= FEWEST_SHARING)
    return tuple(values[is_boilerplate].tolist())


def first_copies(tokens: Tokens) -> Int64Array:
    """Return the numbers of the texts that no earlier text equals, in order."""
    bounds = tokens.normal_offsets.tolist()
    firsts: dict[bytes, int] = {}
    for number in range(tokens.documents):
        firsts.setdefault(tokens.normal[bounds[number] : bounds[number + 1]].tobytes(), number)
    return np.array([*firsts.values()], np.int64)


def words_of_shingles(tokens: Tokens, n: int, values: tuple[int, ...]) -> BoolArray:
    """Say which words are in a shingle of n words with one of these values, sorted: (words,)."""
    return _words_of_shingles(tokens, n, _as_array(values))


@lru_cache(maxsize=16)
def _as_array(values: tuple[int, ...]) -> Int64Array:
    return np.array(values, np.int64)


@kernel
def _words_of_shingles(tokens: Tokens, n: int, values: Int64Array) -> BoolArray:
    is_covered = np.zeros(len(tokens.starts), np.bool_)
    elements = array_elements(tokens.hashes)
    for document in range(len(tokens.word_offsets) - 1):
        first, last = tokens.word_offsets[document], tokens.word_offsets[document + 1]
        if n == 1:
            for k in range(first, last):
                is_covered[k] = _is_listed(values, tokens.hashes[k])
        elif first < last:
            _cover(elements, first, last, n, values, is_covered)
    return is_covered


@inlined_kernel
def _cover(
    elements: HashArray, first: int, last: int, n: int, values: Int64Array, is_covered: BoolArray
) -> None:
    """Mark the words of a document; the values are those of find_shingles(), one for each place."""
    ahead = first + min(n, last - first)
    power, total = np.uint64(1), np.uint64(0)
    for k in range(first, ahead):
        power *= np.uint64(31)
        total = total * np.uint64(31) + elements[k]
    until = first
    for end in range(ahead, last + 1):
        if end > ahead:
            first += 1
            total = total * np.uint64(31) + (elements[end - 1] - power * elements[first - 1])
        if _is_listed(values, np.int64(power + total)):
            for k in range(max(until, first), end):
                is_covered[k] = True
            until = end


@inlined_kernel
def _is_listed(values: Int64Array, value: np.int64) -> bool:
    place = np.searchsorted(values, value)
    return bool(place < len(values) and values[place] == value)
