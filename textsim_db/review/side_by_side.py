"""Two documents side by side, with their differences marked and long runs of words folded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from textsim_db.diff.word_diff import Change, Part, Token, differences
from textsim_db.errors import MeasureError

_MOST_WORDS = 20_000
"""The words of a document that are compared, so that a page takes moments."""
_FOLDED = 600
"""Equal words of more characters are folded, except for some at both ends."""
_END = 200
_MOST_CHARACTERS = 50_000
"""The characters of a run that the page holds."""


class Run(NamedTuple):
    """Words of one document that all are in the other document, or all are not."""

    is_same: bool
    head: str
    hidden: str
    """The words that are folded."""
    tail: str
    left_out: int
    """The number of characters that the page does not hold."""


class Comparison(NamedTuple):
    """Two documents, side by side."""

    left: list[Run]
    right: list[Run]
    distinctions: list[str]
    """The kinds of the different words, if all are dates, negations or numbers."""
    is_cut: bool
    """Whether a document is so long that only its begin is compared."""
    is_aligned: bool
    """Whether the differences are marked; texts with little in common may be too long for it."""


def compare_forms(a: str, b: str) -> Comparison:
    """Compare two normal forms."""
    sides = [form.split(" ", _MOST_WORDS) for form in (a, b)]
    is_cut = any(len(words) > _MOST_WORDS for words in sides)
    one, other = ([Token(word, f"{word} ") for word in words[:_MOST_WORDS]] for words in sides)
    try:
        parts, distinctions = differences(one, other)
    except MeasureError:
        part = Part(
            Change.CHANGED, *("".join(token.text for token in side) for side in (one, other))
        )
        return Comparison(_runs([part], "a"), _runs([part], "b"), [], is_cut, False)
    return Comparison(_runs(parts, "a"), _runs(parts, "b"), distinctions, is_cut, True)


def _runs(parts: Iterable[Part], side: str) -> list[Run]:
    return [
        _run(part.change is Change.SAME, text) for part in parts if (text := getattr(part, side))
    ]


def _run(is_same: bool, text: str) -> Run:
    shown, left_out = text[:_MOST_CHARACTERS], max(len(text) - _MOST_CHARACTERS, 0)
    if len(shown) <= _FOLDED:
        return Run(is_same, shown, "", "", left_out)
    if is_same:
        return Run(is_same, shown[:_END], shown[_END:-_END], shown[-_END:], left_out)
    return Run(is_same, shown[:_FOLDED], shown[_FOLDED:], "", left_out)
