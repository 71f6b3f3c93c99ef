"""The maximal runs of words that a text shares with documents, and the regions that such runs make out.

The suffix automaton of the text reads each document once. After each word it knows the longest run of
the text that ends there, so the time is linear in the lengths of both. Blumer, Blumer, Haussler,
Ehrenfeucht, Chen and Seiferas, "The smallest automaton recognizing the subwords of a text", 1985.

Runs are one region while no gap between them has more than some words, neither in the text nor in the
document. If too few of its words are equal, its gaps are made shorter. Sanchez-Perez, Sidorov and
Gelbukh, "A winning approach to text alignment for text reuse detection at PAN 2014". In SQL
45_passages.sql does the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import Int32Array, Int64Array, inlined_kernel, kernel
from textsim_db.results import Passage, Region
from textsim_db.text.hashing import (
    SPREAD,
    HashTable,
    enter,
    find,
    hash_table,
    is_taken,
    number_at,
)

_WORD = np.uint64(0xFFFFFFFF)
"""The bits of the word in the key of an edge."""


class SharedRuns(NamedTuple):
    """Runs of words that a text shares with documents: (runs,) each, in the order of the documents."""

    documents: Int32Array
    """The place of the document."""
    words: Int32Array
    in_text: Int32Array
    """The words of the text before the run; of several places, the first."""
    in_document: Int32Array
    """The words of the document before the run."""


def shared_runs(
    text: Int32Array, words: Int32Array, offsets: Int64Array, min_words: int
) -> SharedRuns:
    """Return the runs of at least min_words words that documents share with a text.

    text: the numbers of its words: (words,). words, offsets: the numbers of the words of all documents,
    and the bounds of each document. A run of a document is returned if the text has it, and has no
    longer run of the document around it. If places of one run overlap in a document, only the first is
    returned.
    """
    return SharedRuns(*_shared_runs(text, words, offsets, min_words, SPREAD))


class _Automaton(NamedTuple):
    """The suffix automaton of a text: each state stands for the runs with the same last places."""

    lengths: Int32Array
    """By state: the words of its longest run."""
    links: Int32Array
    """By state: the state of the longest suffix of its runs that has more places; -1 for the first."""
    ends: Int32Array
    """By state: the words of the text up to the end of the first place of its runs."""
    first_edges: Int32Array
    """By state: its last added edge; -1 for none."""
    next_edges: Int32Array
    """By edge: the edge of the same state that was added before; -1 for none."""
    targets: Int32Array
    """By edge: the state to which it leads."""
    table: HashTable
    """The edges by their state, in the high half of the hash, and their word, in the low half."""
    used: Int64Array
    """The number of states, and the number of edges."""


_RunArrays = tuple[Int32Array, Int32Array, Int32Array, Int32Array]


@kernel
def _shared_runs(
    text: Int32Array, words: Int32Array, offsets: Int64Array, min_words: int, spread: int
) -> _RunArrays:
    automaton = _automaton(text, spread)
    runs = np.empty((4, len(words)), np.int32)  # at most one run ends with each word
    count = 0
    for document in range(len(offsets) - 1):
        of_document = words[offsets[document] : offsets[document + 1]]
        number = _write_runs(automaton, of_document, min_words, runs[1:, count:])
        runs[0, count : count + number] = document
        count += number
    return runs[0, :count], runs[1, :count], runs[2, :count], runs[3, :count]


@inlined_kernel
def _write_runs(
    automaton: _Automaton, document: Int32Array, min_words: int, runs: Int32Array
) -> int:
    """Write the words of each run of a document, and its places in the text and in the document."""
    state, size, count = 0, 0, 0
    last_words, last_place, last_end = 0, 0, 0
    for j in range(len(document) + 1):
        before, size_before = state, size
        if j < len(document):
            state, size = _step(automaton, state, size, document[j])
        if size_before < min_words or (j < len(document) and size > size_before):
            continue
        place = automaton.ends[before] - size_before
        start = j - size_before
        is_repeated = size_before == last_words and place == last_place and start < last_end
        last_words, last_place, last_end = size_before, place, j
        if not is_repeated:
            runs[0, count], runs[1, count], runs[2, count] = size_before, place, start
            count += 1
    return count


@inlined_kernel
def _step(automaton: _Automaton, state: int, size: int, word: int) -> tuple[int, int]:
    """Return the state and the words of the longest run that ends with one more word of a document."""
    edge = _edge(automaton, state, word)
    while edge < 0 and automaton.links[state] >= 0:
        state = automaton.links[state]
        size = automaton.lengths[state]
        edge = _edge(automaton, state, word)
    if edge < 0:
        return 0, 0
    return int(automaton.targets[edge]), size + 1


@kernel
def _automaton(text: Int32Array, spread: int) -> _Automaton:
    states, edges = 2 * len(text) + 2, 3 * len(text) + 4
    automaton = _Automaton(
        np.zeros(states, np.int32),
        np.full(states, -1, np.int32),
        np.zeros(states, np.int32),
        np.full(states, -1, np.int32),
        np.empty(edges, np.int32),
        np.empty(edges, np.int32),
        hash_table(np.empty(edges, np.uint64), edges, spread),
        np.zeros(2, np.int64),
    )
    last = _add_state(automaton, 0, 0)
    for word in text:
        last = _append(automaton, last, word)
    return automaton


@inlined_kernel
def _append(automaton: _Automaton, last: int, word: int) -> int:
    """Add the next word of the text after the state of the whole text so far; return its state."""
    length = automaton.lengths[last] + 1
    state = _add_state(automaton, length, length)
    at = last
    while at >= 0 and _edge(automaton, at, word) < 0:
        _add_edge(automaton, at, word, state)
        at = automaton.links[at]
    if at < 0:
        automaton.links[state] = 0
        return state
    target = int(automaton.targets[_edge(automaton, at, word)])
    if automaton.lengths[target] != automaton.lengths[at] + 1:
        target = _split(automaton, at, word, target)
    automaton.links[state] = target
    return state


@inlined_kernel
def _split(automaton: _Automaton, at: int, word: int, target: int) -> int:
    """Give the shorter runs of a state, which have a new place, a state of their own; return it."""
    state = _add_state(automaton, automaton.lengths[at] + 1, automaton.ends[target])
    automaton.links[state] = automaton.links[target]
    edge = automaton.first_edges[target]
    while edge >= 0:
        edge_word = int(automaton.table.hashes[edge] & _WORD)
        _add_edge(automaton, state, edge_word, automaton.targets[edge])
        edge = automaton.next_edges[edge]
    automaton.links[target] = state
    edge = _edge(automaton, at, word)
    while edge >= 0 and automaton.targets[edge] == target:
        automaton.targets[edge] = state
        at = automaton.links[at]
        edge = _edge(automaton, at, word) if at >= 0 else -1
    return state


@inlined_kernel
def _add_state(automaton: _Automaton, length: int, end: int) -> int:
    state = automaton.used[0]
    automaton.lengths[state] = length
    automaton.ends[state] = end
    automaton.used[0] += 1
    return int(state)


@inlined_kernel
def _add_edge(automaton: _Automaton, state: int, word: int, target: int) -> None:
    edge = automaton.used[1]
    key = _key(state, word)
    slot = find(automaton.table, key)
    automaton.table.hashes[edge] = key
    enter(automaton.table, slot, edge)
    automaton.targets[edge] = target
    automaton.next_edges[edge] = automaton.first_edges[state]
    automaton.first_edges[state] = edge
    automaton.used[1] += 1


@inlined_kernel
def _edge(automaton: _Automaton, state: int, word: int) -> int:
    """Return the edge of a state for a word, -1 if it has none."""
    slot = find(automaton.table, _key(state, word))
    return number_at(automaton.table, slot) if is_taken(automaton.table, slot) else -1


@inlined_kernel
def _key(state: int, word: int) -> np.uint64:
    return np.uint64(np.uint64(state) << np.uint64(32) | np.uint64(np.uint32(word)))


LEAST_SHARE = 0.34
"""The least share of equal words in a region with gaps."""


def regions_of(
    runs: Sequence[Passage], text: Int32Array, document: Int32Array, gap: int
) -> Iterator[Region]:
    """Yield the regions of one document; each run is in one of them.

    text, document: the numbers of their words. gap: the most words between two runs of a region.
    """
    for stretch in _divided(runs, gap):
        region = _region(stretch, text, document)
        if len(stretch) == 1 or region.share >= LEAST_SHARE:
            yield region
        elif gap:
            yield from regions_of(stretch, text, document, gap // 2)
        else:
            yield from (_region([run], text, document) for run in stretch)


def _region(runs: Sequence[Passage], text: Int32Array, document: Int32Array) -> Region:
    in_text, in_document = (min(map(attrgetter(side), runs)) for side in _SIDES)
    end, end_in_document = (max(getattr(run, side) + run.words for run in runs) for side in _SIDES)
    one, other = text[in_text:end], document[in_document:end_in_document]
    return Region(
        runs[0].key,
        _share_of_equal(one, other),
        *(in_text, len(one), in_document, len(other)),
        tuple(sorted(runs, key=attrgetter(*_SIDES))),
    )


_SIDES = ("in_text", "in_document")


def _share_of_equal(one: Int32Array, other: Int32Array) -> float:
    """Return 2 * the words that both have / the words of both, each counted as often as it occurs."""
    numbers, counts = np.unique(one, return_counts=True)
    others, other_counts = np.unique(other, return_counts=True)
    _, i, j = np.intersect1d(numbers, others, assume_unique=True, return_indices=True)
    equal = int(np.minimum(counts[i], other_counts[j]).sum())
    return 2 * equal / (len(one) + len(other))


def _divided(runs: Sequence[Passage], gap: int) -> Iterator[list[Passage]]:
    """Yield runs in stretches that no longer gap divides, neither in the text nor in the document."""
    pending = [list(runs)]
    while pending:
        stretch = pending.pop()
        cut = [x for each in _cut(stretch, gap, "in_text") for x in _cut(each, gap, "in_document")]
        if len(cut) == 1:
            yield stretch
        else:
            pending += cut


def _cut(runs: list[Passage], gap: int, side: str) -> list[list[Passage]]:
    """Cut runs where more than gap words of one side are in none of them."""
    stretches = list[list[Passage]]()
    end = 0
    for run in sorted(runs, key=attrgetter(side)):
        start = getattr(run, side)
        if not stretches or start - end > gap:
            stretches.append([])
        stretches[-1].append(run)
        end = max(end, start + run.words)
    return stretches
