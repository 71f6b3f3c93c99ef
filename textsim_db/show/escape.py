"""Escapes texts: their HTML runs nothing, and characters that mislead a reader become visible."""

from __future__ import annotations

import html
import re

from textsim_db.show.numbers import count

_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, characters that change the direction of a text, and lone surrogates."""


def escaped(text: str) -> str:
    """Return a text as HTML; a control character is shown as its code, such as U+202E."""
    return _CONTROLS.sub(_code, html.escape(text))


def shortened(text: str, most: int) -> str:
    """Return a text as HTML, with the number of characters that are left out after the first."""
    if len(text) <= most:
        return escaped(text)
    return f"{escaped(text[:most])}{left_out(len(text) - most)}"


def left_out(characters: int) -> str:
    """Return a mark in the place of characters that are left out."""
    return f' <i class="gap">… {count(characters, "character")} …</i> '


def _code(control: re.Match[str]) -> str:
    return f"<b>U+{ord(control[0]):04X}</b>"
