"""Learns from a sample of documents which shingles are common, with their classes, and boilerplate.

The words of boilerplate, such as a header, are left out of every text, so no later step knows of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from math import ceil

import numpy as np

from textsim_db.base.numba_compiler import (
    BoolArray,
    HashArray,
    Int64Array,
    inlined_kernel,
    kernel,
)
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.settings.named_values import Shingle
from textsim_db.sketch.exact_prefix import CommonValues, common_values
from textsim_db.sketch.fingerprints import LEFT_OUT, distinct_passage_values
from textsim_db.sketch.ragged import begins_run
from textsim_db.text.shingles import array_elements, find_shingles
from textsim_db.text.utf8 import Tokens

SAMPLE_DOCUMENTS = 50_000
"""The documents of a sample. More documents show rarer shingles, and take memory."""
FEWEST_DOCUMENTS = 100
"""A sample of fewer documents does not show which shingles are common, or boilerplate."""
FEWEST_SHARING = 10
"""Boilerplate is in this many documents of a sample; fewer may be copies of each other."""
COMMON_SHARE = 1 / 20_000
"""A shingle is common if this share of the documents of a sample has it, and enough documents."""
LEAST_OF_SHINGLES, LEAST_OF_PASSAGES = 2, 16
"""The documents of a sample that have a common shingle. Passages are longer, so fewer are common."""
_MOST_CLASS = 15
"""The highest class: textsim._choose() in SQL has four bits for it."""


def learn_common(samples: Iterable[Tokens], config: CorpusConfig) -> CorpusConfig:
    """Return the configuration with the common shingles of a sample of documents, in parts.

    An exact corpus learns the list of its shingles, and a corpus with passages the list of its
    passages. If there are fewer than FEWEST_DOCUMENTS documents, it learns none. In a corpus with
    parts no class leaves shingles out: the documents of one part would hide passages of another.
    """
    documents = 0
    shingles, passages = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for tokens in samples:
        documents += tokens.documents
        if config.is_exact:
            shingles.append(find_shingles(tokens, config.shingle).hashes.view(np.int64))
        if config.passages is not None:
            passages.append(distinct_passage_values(tokens, config))
    config = replace(config, common=None, common_of_passages=None)
    if documents < FEWEST_DOCUMENTS:
        return config
    share = ceil(documents * COMMON_SHARE)
    finds_all = config.common_passages or config.scoped
    most_class = LEFT_OUT - 1 if finds_all else _MOST_CLASS
    return replace(
        config,
        common=_values_with(np.concatenate(shingles), max(LEAST_OF_SHINGLES, share)),
        common_of_passages=_values_with(
            np.concatenate(passages), max(LEAST_OF_PASSAGES, share), most_class
        ),
    )


def _values_with(
    hashes: Int64Array, least: int, most_class: int = _MOST_CLASS
) -> CommonValues | None:
    """Return the values that occur `least` times or more, with their classes; sorts the hashes."""
    hashes.sort()
    # A value that occurs n times is here n - least + 1 times.
    repeated = hashes[: 1 - least][hashes[: 1 - least] == hashes[least - 1 :]]
    if not len(repeated):
        return None
    starts = np.flatnonzero(begins_run(repeated))
    counts = np.diff(starts, append=len(repeated)) + least - 1
    classes = np.minimum(np.log2(counts), most_class)
    return common_values(repeated[starts], classes.astype(np.int16))


def learn_boilerplate(samples: Iterable[Tokens], n: int, share: float) -> tuple[int, ...]:
    """Return the values of the shingles that more than a share of a sample has, sorted.

    n: the words of a shingle. Equal texts of one part count once, so that copies are no boilerplate.
    Returns none if there are fewer than FEWEST_DOCUMENTS texts. The share is of the texts that count.
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
    if documents < FEWEST_DOCUMENTS:
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
