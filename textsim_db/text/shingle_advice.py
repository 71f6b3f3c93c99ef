"""Which shingle fits texts of a script that writes no spaces."""

from __future__ import annotations

from collections.abc import Sequence

from textsim_db.text.word_places import is_spaceless

FEWEST_WORDS = 100
"""The words of a text from which on the longer shingle of a spaceless script fits; titles have fewer."""


def shingle_of_script(words: Sequence[str]) -> str | None:
    """Return the shingle for long texts of these words, if most are of spaceless scripts.

    A pair falls below a threshold by about as many changes as with "word:3" in other scripts: a word has
    some two characters in Chinese and Japanese, and some four letters in Thai.
    """
    spaceless = [word[0] for word in words if is_spaceless(word)]
    if 2 * len(spaceless) <= len(words):
        return None
    alphabetic = sum(1 for letter in spaceless if letter < "\u2e80")  # Thai, Lao, Khmer, Myanmar
    return "word:8" if 2 * alphabetic > len(spaceless) else "word:6"
