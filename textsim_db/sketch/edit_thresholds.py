"""The threshold of an exact corpus of characters that finds every text with some edits.

An edit replaces, inserts or removes a character of a normal form. It changes at most n shingles of n
characters. So two texts with k edits between them share all shingles of one but k n, and together they
have at most k n more: Gravano et al., "Approximate String Joins in a Database (Almost) for Free", VLDB
2001. A text with repeated shingles has fewer, and counts as a shorter text.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

from textsim_db.errors import ConfigurationError
from textsim_db.settings.check_values import check_count
from textsim_db.sketch.cost_of_bands import count_rows_of
from textsim_db.sketch.disk_space import storage

LENGTHS = range(3, 7)
"""The lengths of shingles to choose from."""
MOST_EDITS, LONGEST_TEXT = 100, 1_000_000
_LOW_THRESHOLD, _LONGEST_SHINGLE = 0.6, 5
"""A lower threshold makes more candidates and band rows; longer shingles make more band rows."""


class EditOption(NamedTuple):
    """A length of shingles, with the threshold that finds all texts with a number of edits."""

    n: int
    """The characters in a shingle."""
    threshold: float
    """The lowest similarity, rounded down."""
    least_shingles: int
    """The distinct shingles that one of the two texts must have."""
    band_rows: int
    """The rows in the band table of a text of this length."""
    storage: int
    """The bytes of such a text, all indexes included."""
    chosen: bool = False


def lowest_similarity(edits: int, characters: int, n: int) -> float:
    """Return the lowest similarity of a text to one with a number of edits.

    characters: the length of the text, in which no shingle is repeated.

    >>> lowest_similarity(edits=1, characters=20, n=4)
    0.6190476190476191
    """
    shingles = characters - n + 1
    return max(0, shingles - edits * n) / max(1, shingles + edits * n)


def plan_edits(edits: int, characters: int) -> list[EditOption]:
    """Return the options for texts of a least length; raises ConfigurationError if there are none."""
    check_count(edits, "edits", 1, MOST_EDITS)
    check_count(characters, "characters", 1, LONGEST_TEXT)
    options = [
        _option(n, characters, threshold)
        for n in LENGTHS
        if (threshold := floor(1000 * lowest_similarity(edits, characters, n)) / 1000) > 0
    ]
    if not options:
        raise ConfigurationError(
            f"a text of {characters} characters may share no {LENGTHS[0]} characters in a row with one "
            f"of {edits} edits; expected {2 * LENGTHS[0] * edits} characters or more"
        )
    high = [
        each for each in options if each.threshold >= _LOW_THRESHOLD and each.n <= _LONGEST_SHINGLE
    ]
    chosen = high[-1] if high else options[0]
    return [each._replace(chosen=each is chosen) for each in options]


def _option(n: int, characters: int, threshold: float) -> EditOption:
    shingles = characters - n + 1
    rows = round(count_rows_of(shingles, threshold))
    return EditOption(n, threshold, shingles, rows, round(storage(characters, 4 * rows, rows)))
