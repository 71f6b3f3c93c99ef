"""The parts of two texts as HTML with the differences marked, and long runs shortened."""

from __future__ import annotations

from collections.abc import Sequence

from textsim_db.diff.word_diff import Change, Part
from textsim_db.show.escape import escaped, left_out
from textsim_db.show.word_borders import end_of_start, start_of_end

_FOLDED = 240
"""Longer runs of equal words are folded, except for some characters at both ends."""
_END = 80
_LONGEST_CHANGE = 400
LONGEST_EXCERPT = 1_600
"""The characters of an excerpt; the rest is left out."""


def side_by_side(parts: Sequence[Part], a: str, b: str) -> str:
    """Return both texts in two columns, whole; a, b: the HTML that names them."""
    left, right = ("".join(marked(part, side) for part in parts) for side in ("a", "b"))
    return columns(a, b, left, right)


def excerpt_of_both(parts: Sequence[Part]) -> str:
    """Return both texts as one, with removed and added words, and long runs shortened."""
    runs: list[tuple[str, str]] = []
    for part in parts:
        if part.change is Change.SAME:
            runs.append(("", part.b))
        else:
            runs += [(tag, text) for tag, text in (("del", part.a), ("ins", part.b)) if text]
    return f'<div class="text" dir="auto">{_shortened(runs)}</div>'


def columns(a: str, b: str, left: str, right: str) -> str:
    """Return two texts as HTML in two columns, below the HTML that names them."""
    return (
        f'<div class="texts"><div>{a}</div><div>{b}</div>\n'
        f'<div class="text" dir="auto">{left}</div>\n<div class="text" dir="auto">{right}</div></div>\n'
    )


def marked(part: Part, side: str) -> str:
    """Return the words of one text in a part; side: "a" or "b"."""
    return _tagged(_tag(part, side), escaped(getattr(part, side)))


def _tag(part: Part, side: str) -> str:
    return "" if part.change is Change.SAME else "del" if side == "a" else "ins"


def _shortened(runs: Sequence[tuple[str, str]]) -> str:
    """Return runs of (tag, text) as HTML of bounded length."""
    pieces: list[str] = []
    shown = 0
    for place, (tag, text) in enumerate(runs):
        if shown > LONGEST_EXCERPT:
            pieces.append(left_out(sum(len(rest) for _, rest in runs[place:])))
            break
        pieces.append(_tagged(tag, _change(text) if tag else _fold(text)))
        shown += min(len(text), _LONGEST_CHANGE)
    return "".join(pieces)


def _fold(text: str) -> str:
    if len(text) <= _FOLDED:
        return escaped(text)
    first, last = end_of_start(text, _END), start_of_end(text, _END)
    return f"{escaped(text[:first])}{left_out(last - first)}{escaped(text[last:])}"


def _change(text: str) -> str:
    if len(text) <= _LONGEST_CHANGE:
        return escaped(text)
    end = end_of_start(text, _LONGEST_CHANGE)
    return f"{escaped(text[:end])}{left_out(len(text) - end)}"


def _tagged(tag: str, content: str) -> str:
    if not tag:
        return content
    words = content.rstrip()
    return f"<{tag}>{words}</{tag}>{content[len(words) :]}" if words else content
