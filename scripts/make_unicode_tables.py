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
    BLANKED,
    CYRILLIC,
    DELETED,
    DIGIT,
    IGNORED,
    JOINING,
    LETTER,
    LOWER,
    MARK,
    OPENS,
    POINTS,
    RAISED,
    RUN,
    SEPARATOR,
    SPACED,
    SPACELESS,
    SYMBOL,
    UNASSIGNED,
    UNICODE_VERSION,
    UNSTABLE,
    WORD,
)

# Default_Ignorable_Code_Point of Unicode 13.0; unicodedataplus does not have it.
IGNORABLE = {
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0, 0xE0001),
    *range(0x180B, 0x180F),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2065),
    *range(0x2066, 0x2070),
    *range(0xFE00, 0xFE10),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    *range(0xE0020, 0xE0080),
    *range(0xE0100, 0xE01F0),
}
TRADE_MARKS = {0x2120, 0x2122, *range(0x1F16A, 0x1F16D)}
HYPHEN = 0x2010
# Letters that stand for an apostrophe in Ukrainian, Hawaiian, transliterated Arabic and others.
APOSTROPHES = {0x2B9, *range(0x2BB, 0x2C0), 0x2C8, 0xA78B, 0xA78C}
# Tatweel, and what texts of Arabic and Hebrew may leave out: vowels, points, accents, Koranic marks.
OPTIONAL_SIGNS = {
    *(0x640, 0x670, 0x6E7, 0x6E8, 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7, 0xFB1E),
    *range(0x591, 0x5BE),
    *range(0x610, 0x61B),
    *range(0x64B, 0x653),
    *range(0x656, 0x660),
    *range(0x6D6, 0x6DD),
    *range(0x6DF, 0x6E5),
    *range(0x6EA, 0x6EE),
    *range(0x8D3, 0x8E2),
    *range(0x8E3, 0x900),
}
CIRCLED_DINGBATS = range(0x2776, 0x2794)
ENCLOSED_WITHOUT_NFKC = {*CIRCLED_DINGBATS, *range(0x24EB, 0x2500)}
FOLDED = {
    0x131: ord("i"),
    0x3C2: 0x3C3,  # final sigma
    0x649: 0x64A,  # alef maksura, and the yeh and kaf of Persian: as Lucene does
    0x6CC: 0x64A,
    0x6A9: 0x643,
}

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
    """Return the kind of an assigned code point: SEPARATOR, WORD, SPACELESS, MARK or DELETED.

    A letter that NFKC turns into a mark (U+FF9E and U+FF9F) is a mark. Otherwise it would end a run
    of marks that NFKC joins again. Decimal digits become ASCII digits, so they are WORD in all scripts.
    """
    category = unicode.category(chr(point))[0]
    if point in OPTIONAL_SIGNS or unicode.category(chr(point)) == "Me":
        return DELETED
    if category == "M" or unicode.combining(unicode.normalize("NFKD", chr(point))[0]):
        return MARK
    if category not in "LN" or point in APOSTROPHES:
        return SEPARATOR
    if unicode.category(chr(point)) == "Nd":
        return WORD
    return SPACELESS if unicode.script(chr(point)) in SPACELESS_SCRIPTS else WORD


def order(point: int, seconds: set[int]) -> int:
    """Return the combining class of an assigned code point, or a marker if it may change."""
    character = chr(point)
    if point in IGNORABLE or point in ENCLOSED_WITHOUT_NFKC or point == HYPHEN:
        return UNSTABLE
    if point in seconds:
        return JOINING
    if unicode.normalize("NFKC", character) != character:
        first = unicode.normalize("NFKD", character)[0]
        return JOINING if ord(first) in seconds or unicode.combining(first) else UNSTABLE
    return int(unicode.combining(character))


def traits(point: int) -> int:
    """Return the traits of an assigned code point."""
    character = chr(point)
    category, parts = unicode.category(character), unicode.decomposition(character).split()
    tag = parts[0] if parts else ""
    of_categories = {"Ll": LOWER, "Nd": DIGIT, "Ps": OPENS, "Cc": OPENS}
    of_groups = {"L": LETTER, "Z": OPENS, "S": SYMBOL}
    found = of_categories.get(category, 0) | of_groups.get(category[0], 0)
    if point in APOSTROPHES or point in OPTIONAL_SIGNS:
        found = 0
    if point in IGNORABLE:
        return IGNORED
    if point in TRADE_MARKS:
        found |= BLANKED
    if category == "No" and tag == "<super>":
        found |= RAISED
    elif category == "No" and (tag not in ("", "<sub>") or point in ENCLOSED_WITHOUT_NFKC):
        found |= SPACED
    if category[0] == "L" and unicode.script(character) == "Cyrillic":
        found |= CYRILLIC
    return found


def folded(point: int) -> int:
    """Return the code point that stands for a code point in normal forms.

    It is the one-to-one lower case, which str.lower() gives for every character except U+0130, and an
    ASCII digit for each decimal digit.
    """
    character = chr(point)
    if point == 0x130:
        return ord("i")
    if unicode.category(character) == "Nd":
        return ord("0") + int(unicode.decimal(character))
    lower = character.lower()
    if len(lower) != 1 or not assigned(ord(lower)):
        lower = character
    return FOLDED.get(ord(lower), ord(lower))


def runs() -> Iterator[tuple[int, int, int, int, int]]:
    """Yield (first point, kind, order, traits, shift to the folded point) for each run."""
    seconds = composes_with_previous()
    previous = None
    for point in range(POINTS):
        properties = (SEPARATOR, UNASSIGNED, OPENS, 0)  # read as a space
        if assigned(point):
            shift = folded(point) - point
            properties = (kind(point), order(point, seconds), traits(point), shift)
        if properties != previous:
            yield (point, *properties)
            previous = properties


def main() -> None:
    """Write the runs to standard output."""
    sys.stdout.buffer.write(np.array([*runs()], RUN).tobytes())


if __name__ == "__main__":
    main()
