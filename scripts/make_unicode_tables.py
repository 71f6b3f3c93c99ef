"""Generate textsim_db/text/unicode_runs.bin: the frozen Unicode tables of the normal form.

    python scripts/make_unicode_tables.py > textsim_db/text/unicode_runs.bin

The tables are frozen at Unicode 13.0, the oldest version among supported servers (PostgreSQL 14), so
that a newer Python, ICU or libc changes nothing. The script needs the development dependency
unicodedataplus. A test runs it again and compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import unicodedataplus as unicode

from textsim_db.text.nfkc import (
    JOINING,
    MARK,
    POINTS,
    RUN,
    SEPARATOR,
    SPACELESS,
    UNASSIGNED,
    UNICODE_VERSION,
    UNSTABLE,
    WORD,
)

SPACELESS_SCRIPTS = {"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"}
HANGUL_VOWELS_AND_TAILS = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]


def assigned(point: int) -> bool:
    """Return whether the code point is assigned in the frozen version."""
    character = chr(point)
    if unicode.category(character) == "Cn" or unicode.age(character) == "Unassigned":
        return False
    return float(unicode.age(character)) <= float(UNICODE_VERSION)


def composes_with_previous() -> set[int]:
    """Return the code points that NFKC may join with the character before them."""
    seconds = set(HANGUL_VOWELS_AND_TAILS)
    for point in range(POINTS):
        parts = unicode.decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(int(parts[1], 16))
    return seconds


def kind(point: int) -> int:
    """Return the kind of an assigned code point: SEPARATOR, WORD, MARK or SPACELESS.

    A letter that NFKC turns into a mark (U+FF9E and U+FF9F) is a mark. Otherwise it would end a run
    of marks that NFKC joins again.
    """
    category = unicode.category(chr(point))[0]
    if category == "M" or unicode.combining(unicode.normalize("NFKD", chr(point))[0]):
        return MARK
    if category not in "LN":
        return SEPARATOR
    return SPACELESS if unicode.script(chr(point)) in SPACELESS_SCRIPTS else WORD


def order(point: int, seconds: set[int]) -> int:
    """Return the combining class of an assigned code point, or a marker if NFKC may change it."""
    character = chr(point)
    if point in seconds:
        return JOINING
    if unicode.normalize("NFKC", character) != character:
        first = unicode.normalize("NFKD", character)[0]
        return JOINING if ord(first) in seconds or unicode.combining(first) else UNSTABLE
    return int(unicode.combining(character))


def simple_lower(point: int) -> int:
    """Return the one-to-one lower case of a code point, or the code point if it has none.

    str.lower() is the one-to-one mapping of every character except U+0130.
    """
    if point == 0x130:
        return 0x69
    lower = chr(point).lower()
    if len(lower) != 1 or not assigned(point) or not assigned(ord(lower)):
        return point
    return ord(lower)


def runs() -> Iterator[tuple[int, int, int, int]]:
    """Yield (first point, kind, order, shift to lower case) for each run of equal properties."""
    seconds = composes_with_previous()
    previous = None
    for point in range(POINTS):
        properties = (SEPARATOR, UNASSIGNED, 0)
        if assigned(point):
            properties = (kind(point), order(point, seconds), simple_lower(point) - point)
        if properties != previous:
            yield (point, *properties)
            previous = properties


def main() -> None:
    """Write the runs to standard output."""
    sys.stdout.buffer.write(np.array([*runs()], RUN).tobytes())


if __name__ == "__main__":
    main()
