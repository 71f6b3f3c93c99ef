"""Readings: the text of a quotation in, its words and those of its pieces out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from textsim_db.errors import DocumentError
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import MAX_QUOTATION, CorpusConfig
from textsim_db.sketch.sketch_texts import places_of_words

_CUTS = re.compile(r"\[[^][]*\]|\.{3,}|…|\. \. \.")
"""What divides a quotation: an ellipsis, or the words of the quoter in square brackets."""


class Reading(NamedTuple):
    """One reading of a quotation: all its words as one piece, or its pieces between ellipses."""

    words: list[list[str]]
    """The words of each piece; a piece has at least one."""
    spans: list[list[tuple[int, int]]]
    """The characters of each word in the quotation."""

    @property
    def total(self) -> int:
        return sum(map(len, self.words))


def readings_of(text: str, shortest: int, config: CorpusConfig | None = None) -> list[Reading]:
    """Return the readings of a quotation: all its words, and its pieces if it is divided."""
    check_count(shortest, "shortest", 1, MAX_QUOTATION)
    spans = _spans_of_pieces(text)
    readings = []
    for pieces in [[(0, len(text))], spans] if len(spans) > 1 else [[(0, len(text))]]:
        reading = Reading([], [])
        for start, end in pieces:
            words, places = places_of_words(text[start:end], config)
            if words:
                reading.words.append(words)
                firsts, lasts = places.starts + start, places.ends + start
                reading.spans.append(list(zip(firsts.tolist(), lasts.tolist(), strict=True)))
        readings.append(reading)
    return _with_enough_words(readings, shortest)


def _spans_of_pieces(text: str) -> list[tuple[int, int]]:
    """Return the characters of the pieces of a quotation between ellipses and words in brackets."""
    cuts = [match.span() for match in _CUTS.finditer(text)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(text)]
    return list(zip(starts, ends, strict=True))


def _with_enough_words(readings: Sequence[Reading], shortest: int) -> list[Reading]:
    """Return the readings of a quotation that have enough words; the first has all words."""
    words = readings[0].total
    if not shortest <= words <= MAX_QUOTATION:
        raise DocumentError(
            f"the quotation has {words:,} words; expected {shortest} to {MAX_QUOTATION}"
            + ("; shortest allows fewer, which are found only unaltered" * (0 < words < shortest))
        )
    return [reading for reading in readings if reading.total >= shortest]
