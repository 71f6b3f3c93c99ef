"""Generate textsim_db/text/unicode_data.py: the frozen Unicode tables of the normal form.

    python scripts/make_unicode_tables.py > textsim_db/text/unicode_data.py

The tables are frozen at Unicode 13.0, the oldest version among supported servers (PostgreSQL 14), so
that a newer Python, ICU or libc changes nothing. The script needs the development dependency
unicodedataplus. A test runs it again and compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count, groupby, takewhile

import unicodedataplus as unicode

UNICODE_VERSION = (13, 0)
SPACELESS_SCRIPTS = {"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"}
SEPARATOR, WORD, MARK, SPACELESS = range(4)
UNSTABLE, JOINING = 253, 255
HANGUL_VOWELS_AND_TAILS = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]


def assigned(point: int) -> bool:
    """Return whether the code point is assigned in the frozen version."""
    character = chr(point)
    if unicode.category(character) == "Cn" or unicode.age(character) == "Unassigned":
        return False
    major, minor = unicode.age(character).split(".")
    return (int(major), int(minor)) <= UNICODE_VERSION


def composes_with_previous() -> set[int]:
    """Return the code points that NFKC may join with the character before them."""
    seconds = set(HANGUL_VOWELS_AND_TAILS)
    for point in range(sys.maxunicode + 1):
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


def runs() -> Iterator[tuple[int, int, int]]:
    """Yield (first point, kind, order) for each run of equal properties, across points not assigned."""
    seconds = composes_with_previous()
    previous = None
    for point in filter(assigned, range(sys.maxunicode + 1)):
        now = (kind(point), order(point, seconds))
        if now != previous:
            yield (point, *now)
            previous = now


def unassigned_runs() -> Iterator[tuple[int, int]]:
    """Yield the first and the last point of each run of points that are not assigned."""
    for is_assigned, group in groupby(range(sys.maxunicode + 1), assigned):
        if not is_assigned:
            first, *rest = group
            yield first, (rest or [first])[-1]


def lower_runs() -> Iterator[tuple[int, int, int, int]]:
    """Yield (first point, last point, step, shift) for each run of letters with one shift to lower case.

    In many alphabets capitals and small letters alternate: the step is then 2.
    """
    shifts = {
        point: lower - point
        for point in range(sys.maxunicode + 1)
        if not 0xD800 <= point <= 0xDFFF and (lower := simple_lower(point)) != point
    }
    while shifts:
        first, shift = next(iter(shifts.items()))
        length, step = max((run_length(shifts, first, step), step) for step in (2, 1))
        last = first + (length - 1) * step
        yield first, last, step, shift
        for point in range(first, last + 1, step):
            del shifts[point]


def run_length(shifts: dict[int, int], first: int, step: int) -> int:
    """Return how many points from the first one, a step apart, have its shift."""
    points = takewhile(lambda point: shifts.get(point) == shifts[first], count(first, step))
    return sum(1 for _ in points)


def main() -> None:
    """Write the module to standard output."""
    print(
        '"""Unicode 13.0 as the normal form sees it; written by scripts/make_unicode_tables.py."""'
    )
    print()
    print(f'UNICODE_VERSION = "{UNICODE_VERSION[0]}.{UNICODE_VERSION[1]}"')
    print()
    print("# (first code point, kind, canonical combining class or marker), up to the next row.")
    print(
        "# Kinds: 0 separator, 1 letter or number, 2 mark, 3 letter or number of a spaceless script."
    )
    print("# Markers: 253 NFKC changes it, 255 NFKC may join it with the characters before it.")
    print("RUNS = (")
    for first, kind_, order_ in runs():
        print(f"    (0x{first:X}, {kind_}, {order_}),")
    print(")")
    print()
    print("# (first code point, last code point) of code points not assigned; they cut no run.")
    print("UNASSIGNED_RUNS = (")
    for first, last in unassigned_runs():
        print(f"    (0x{first:X}, 0x{last:X}),")
    print(")")
    print()
    print(
        "# (first code point, last code point, step, shift to the simple, one-to-one, lower case)."
    )
    print("LOWER = (")
    for first, last, step, shift in lower_runs():
        print(f"    (0x{first:X}, 0x{last:X}, {step}, {shift}),")
    print(")")


if __name__ == "__main__":
    main()
