"""The places at which a long text may be cut, so that no word is cut."""

from __future__ import annotations

LONGEST_WORD = 40
"""The characters up to which a word is not cut."""


def end_of_start(text: str, most: int) -> int:
    """Return where a start of at most `most` characters ends: before a space, or in a very long word.

    The text is longer.
    """
    places = range(most, max(most - LONGEST_WORD, 0), -1)
    return next((place for place in places if text[place].isspace()), most)


def start_of_end(text: str, most: int) -> int:
    """Return where an end of at most `most` characters starts: after a space, or in a very long word.

    The text is longer.
    """
    first = len(text) - most
    places = range(first, min(first + LONGEST_WORD, len(text)))
    return next((place for place in places if text[place - 1].isspace()), first)
