"""Readings: the text of a quotation in, the words of its pieces out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from textsim_db.errors import DocumentError
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import MAX_QUOTATION, CorpusConfig
from textsim_db.sketch.sketch_texts import places_of_words
from textsim_db.text.distinctions import symbols
from textsim_db.text.storable import to_bytes

_ELLIPSES = r"\.{3,}|…|\. \. \."
_CUTS = [re.compile(cuts) for cuts in (_ELLIPSES, _ELLIPSES + r"|\[[^][]*\]")]
"""Divide a quotation. Words in square brackets are the quoter's, or stand in the document."""


class Reading(NamedTuple):
    """One reading of a quotation: all its words as one piece, or its pieces between ellipses."""

    words: list[list[str]]
    """The words of each piece; a piece has at least one."""
    spans: list[list[tuple[int, int]]]
    """The characters of each word in the quotation."""
    signs: list[str]
    """The signs of each piece."""

    @property
    def total(self) -> int:
        return sum(map(len, self.words))


def readings_of(text: str, shortest: int, config: CorpusConfig | None = None) -> list[Reading]:
    """Return the readings of a quotation that have enough words.

    All its words are one piece; if it is divided, ellipses divide it, then also words in brackets.
    """
    check_count(shortest, "shortest", 1, MAX_QUOTATION)
    to_bytes(text)  # refuses a value that is no text
    first = _reading(text, [(0, len(text))], config)
    words = len(first.words[0]) if first.words else 0
    if not shortest <= words <= MAX_QUOTATION:
        raise DocumentError(
            f"the quotation has {words:,} words; expected {shortest} to {MAX_QUOTATION}"
            + ("; shortest allows fewer, which are found only unaltered" * (0 < words < shortest))
        )
    divided = [spans for spans in map(_spans_between, _CUTS, (text, text)) if len(spans) > 1]
    readings = [first, *(_reading(text, spans, config) for spans in divided)]
    return [reading for reading in readings if reading.total >= shortest]


def _spans_between(cuts: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """Return the characters between cuts."""
    found = [match.span() for match in cuts.finditer(text)]
    starts, ends = [0, *(end for _, end in found)], [*(start for start, _ in found), len(text)]
    return list(zip(starts, ends, strict=True))


def _reading(text: str, spans: Iterable[tuple[int, int]], config: CorpusConfig | None) -> Reading:
    reading = Reading([], [], [])
    for start, end in spans:
        words, places = places_of_words(text[start:end], config)
        if words:
            reading.words.append(words)
            firsts, lasts = places.starts + start, places.ends + start
            reading.spans.append(list(zip(firsts.tolist(), lasts.tolist(), strict=True)))
            reading.signs.append(" ".join(symbols(text, start, end)))
    return reading
