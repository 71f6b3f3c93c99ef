"""The normal form, shingles, and similarity again: slow, with nothing but sets and lists.

Unicode's properties come from unicodedataplus and Python, none from the project's tables.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set
from functools import cache

import unicodedataplus

SPACELESS_SCRIPTS = {"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"}


@cache
def is_assigned(character: str) -> bool:
    age = unicodedataplus.age(character)
    if unicodedataplus.category(character) == "Cn" or age == "Unassigned":
        return False
    major, minor = age.split(".")
    return (int(major), int(minor)) <= (13, 0)


@cache
def kind(character: str) -> str:
    """Return M for a mark, S for a spaceless letter or number, W for another, else a space."""
    category = unicodedataplus.category(character)[0]
    if category == "M":
        return "M"
    if category not in "LN":
        return " "
    return "S" if unicodedataplus.script(character) in SPACELESS_SCRIPTS else "W"


@cache
def is_counted_mark(character: str) -> bool:
    """Say whether the character is a mark, or a half-width one that NFKC turns into a mark."""
    return unicodedataplus.category(character)[0] == "M" or character in "\uff9e\uff9f"


def without_long_runs(text: str) -> str:
    """Drop the marks past the 30th of each run."""
    kept: list[str] = []
    run = 0
    for character in text:
        run = run + 1 if is_counted_mark(character) else 0
        if run <= 30:
            kept.append(character)
    return "".join(kept)


@cache
def simple_lower(character: str) -> str:
    lower = "i" if character == "\u0130" else character.lower()
    assert len(lower) == 1
    return lower if is_assigned(lower) else character


def prepared(text: str) -> str:
    """Return what NFKC is applied to."""
    return without_long_runs("".join(c if is_assigned(c) else " " for c in text))


def words(text: str) -> list[str]:
    lower = "".join(map(simple_lower, unicodedata.normalize("NFKC", prepared(text))))
    kinds = "".join(map(kind, lower))
    return [lower[match.start() : match.end()] for match in re.finditer("SM*|[WM]+", kinds)]


def normal_form(text: str) -> str:
    return " ".join(words(text))


def shingles(text: str, unit: str, n: int) -> list[str]:
    """Return the distinct shingles in order of first appearance."""
    parts: list[str] = words(text) if unit == "word" else list(normal_form(text))
    glue = " " if unit == "word" else ""
    count = max(1, len(parts) - n + 1) if parts else 0
    return list(dict.fromkeys(glue.join(parts[i : i + n]) for i in range(count)))


def jaccard(left: Set[object], right: Set[object]) -> float:
    """Return the similarity of two sets; 0 where one is empty."""
    return len(left & right) / len(left | right) if left and right else 0.0
