"""Regions: the runs that a text shares with a document in, the parts of both that they make out.

Runs are one region while no gap between them has more than some words, neither in the text nor in the
document. If too few of its words are equal, its gaps are made shorter. Sanchez-Perez, Sidorov and
Gelbukh, "A winning approach to text alignment for text reuse detection at PAN 2014". In SQL
45_passages.sql does the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

import numpy as np

from textsim_db.base.numba_compiler import Int32Array
from textsim_db.results import Passage, Region

LEAST_SHARE = 0.34
"""The least share of equal words in a region with gaps."""


def regions_of(
    runs: Sequence[Passage], text: Int32Array, document: Int32Array, gap: int
) -> Iterator[Region]:
    """Yield the regions of one document; each run is in one of them.

    text, document: the numbers of their words. gap: the most words between two runs of a region.
    """
    for part in _divided(runs, gap):
        region = _region(part, text, document)
        if len(part) == 1 or region.share >= LEAST_SHARE:
            yield region
        elif gap:
            yield from regions_of(part, text, document, gap // 2)
        else:
            yield from (_region([run], text, document) for run in part)


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
    """Yield runs in groups that no longer gap divides, neither in the text nor in the document."""
    pending = [list(runs)]
    while pending:
        group = pending.pop()
        parts = [
            part for each in _cut(group, gap, "in_text") for part in _cut(each, gap, "in_document")
        ]
        if len(parts) == 1:
            yield group
        else:
            pending += parts


def _cut(runs: list[Passage], gap: int, side: str) -> list[list[Passage]]:
    """Cut runs where more than gap words of one side are in none of them."""
    parts = list[list[Passage]]()
    end = 0
    for run in sorted(runs, key=attrgetter(side)):
        start = getattr(run, side)
        if not parts or start - end > gap:
            parts.append([])
        parts[-1].append(run)
        end = max(end, start + run.words)
    return parts
