"""The templates of all pages, and how they show values, and two documents side by side.

Differences are marked, and long runs of words folded. It serves nothing, so it needs no server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jinja2

from textsim_db.errors import MeasureError
from textsim_db.measures.word_diff import (
    Change,
    DiffRun,
    ShownText,
    differences,
    written,
)
from textsim_db.results import Judgement
from textsim_db.results.html import end_of_start, start_of_end
from textsim_db.results.shown_values import count, shown

FOLDER = Path(__file__).parent


GuardsApart: TypeAlias = Mapping[str, tuple[list[str], list[str]]]
"""The guards that differ between two documents, and what each alone has."""


class NextCommand(NamedTuple):
    purpose: str
    command: str
    effect: str
    """When to choose it, and what it changes, in sentences."""


def mark(judgement: Judgement | None) -> str:
    """Return what a form carries to say which judgement its user saw."""
    return "" if judgement is None else f"{judgement.verdict} {judgement.judged_at.isoformat()}"


def shown_threshold(value: float) -> str:
    """Return a threshold with two digits, or with more if it has more."""
    return f"{value:.2f}" if round(value, 2) == value else f"{value:.4g}"


def _similarity(value: float) -> str:
    return "0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def _position(place: float) -> str:
    """Return a place in a picture, whose width or height is 1."""
    return f"{100 * place:.2f}%"


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _interval(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{100 * low:.0f}–{100 * high:.0f} %"


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


_HIDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Return a text with the characters escaped that hide or reorder others."""
    return _HIDING.sub(lambda hidden: hidden[0].encode("unicode_escape").decode("ascii"), text)


TEMPLATES = jinja2.Environment(
    # A page that stands alone includes the style.
    loader=jinja2.FileSystemLoader([FOLDER / "templates", FOLDER / "static"]),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {
    "shown": shown, "similarity": _similarity, "count": count, "time": _time, "percent": _percent,
    "mark": mark,
    "interval": _interval, "threshold": shown_threshold, "position": _position,
    "visible": visible,
}  # fmt: skip


def render(template: str, /, **values: Any) -> str:
    return TEMPLATES.get_template(template).render(**values)


_MOST_WORDS = 20_000
"""The words of a document that are compared, so that a page takes moments."""
_MOST_READ = 400_000
"""The characters of a document that are read as words."""
_MOST_OF_EXCERPT = 4_000
"""The characters of a document that a list compares."""
_OF_EXCERPT = 90
"""The characters of a run of words in an excerpt."""
_LONGEST_UNFOLDED = 600
"""Equal words of more characters are folded, except for some at both ends."""
_UNFOLDED_END = 200
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
    left: list[Run]
    right: list[Run]
    distinctions: list[str]
    """The kinds of the different words: see `Differences`."""
    is_cut: bool
    """Whether a document is so long that only its begin is compared."""
    is_aligned: bool
    """Whether the differences are marked; texts with little in common may be too long for it."""


class Summary(NamedTuple):
    excerpt: list[tuple[Change, str]]
    """Their first difference, and the words around it."""
    kinds: list[str]
    """The kinds of the different words: see `Differences`."""


def compare_texts(a: ShownText, b: ShownText) -> Comparison:
    one, other = a.begin(_MOST_READ).words(), b.begin(_MOST_READ).words()
    is_cut = max(len(one), len(other)) > _MOST_WORDS or max(len(a.text), len(b.text)) > _MOST_READ
    one, other = one[:_MOST_WORDS], other[:_MOST_WORDS]
    try:
        diff, distinctions = differences(one, other)
    except MeasureError:
        run = DiffRun(
            Change.CHANGED, *("".join(token.text for token in side) for side in (one, other))
        )
        return Comparison(_runs([run], "a"), _runs([run], "b"), [], is_cut, False)
    return Comparison(_runs(diff, "a"), _runs(diff, "b"), distinctions, is_cut, True)


def summary(a: ShownText, b: ShownText) -> Summary:
    """Return the first difference of two texts with some words before and after it, for a list."""
    begins = [each.begin(_MOST_OF_EXCERPT) for each in (a, b)]
    diff, distinctions = differences(*(begin.words() for begin in begins))
    is_whole = begins == [a, b]
    return Summary(_excerpt(diff), distinctions if is_whole else [])


def _excerpt(diff: list[DiffRun]) -> list[tuple[Change, str]]:
    first = next((i for i, run in enumerate(diff) if run.change is not Change.SAME), None)
    if first is None:
        return [(run.change, visible(_begin(_line(run.a), 2 * _OF_EXCERPT))) for run in diff[:1]]
    shown: list[tuple[Change, str]] = []
    for i, (change, one, other) in enumerate(diff[: first + 2]):
        if change is Change.SAME:
            shown.append((change, _end(_line(one)) if i < first else _begin(_line(one))))
        else:
            shown += [(Change.REMOVED, _begin(_line(one)))] if one else []
            shown += [(Change.ADDED, _begin(_line(other)))] if other else []
    if len(diff) > first + 2 and not shown[-1][1].endswith("…"):
        shown.append((Change.SAME, "…"))
    return [(change, visible(text)) for change, text in shown]


def begin_of(text: ShownText) -> str:
    begin = text.text[:_MOST_OF_EXCERPT]
    return visible(_begin(_line(begin if text.is_original else written(begin)), 2 * _OF_EXCERPT))


def _line(text: str) -> str:
    return " ".join(text.split())


def _begin(text: str, most: int = _OF_EXCERPT) -> str:
    """Return the begin of a text up to the end of a word; a very long word is cut."""
    if len(text) <= most:
        return text
    return f"{text[: end_of_start(text, most)]} …"


def _end(text: str) -> str:
    if len(text) <= _OF_EXCERPT:
        return text
    return f"… {text[start_of_end(text, _OF_EXCERPT) :]}"


def _runs(diff: Iterable[DiffRun], side: str) -> list[Run]:
    runs = []
    for run in diff:
        text = getattr(run, side)
        # The space after a different word is no difference.
        words = text if run.change is Change.SAME else text.rstrip()
        runs += [_run(run.change is Change.SAME, words)] if words else []
        runs += [_run(True, text[len(words) :])] if len(words) < len(text) else []
    return runs


def _run(is_same: bool, text: str) -> Run:
    shown, left_out = visible(text[:_MOST_CHARACTERS]), max(len(text) - _MOST_CHARACTERS, 0)
    if len(shown) <= _LONGEST_UNFOLDED:
        return Run(is_same, shown, "", "", left_out)
    if is_same:
        first, last = end_of_start(shown, _UNFOLDED_END), start_of_end(shown, _UNFOLDED_END)
        return Run(is_same, shown[:first], shown[first:last], shown[last:], left_out)
    first = end_of_start(shown, _LONGEST_UNFOLDED)
    return Run(is_same, shown[:first], shown[first:], "", left_out)
