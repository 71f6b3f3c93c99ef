"""Generate sql/schema/20_unicode.sql: the frozen Unicode tables as bracket expressions for SQL.

    python scripts/make_unicode_sql.py > sql/schema/20_unicode.sql

It reads the tables of Python, so that SQL and Python have the same tables. A test runs it
again and compares.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import groupby

import numpy as np

from textsim_db.text.nfkc import (
    JOINING,
    MARK,
    MAX_MARKS,
    POINTS,
    SEPARATOR,
    SPACELESS,
    UNASSIGNED,
    UNICODE_VERSION,
    WORD,
    tables,
)

SQL = "LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE\n"
PLPGSQL = "LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp "

# translate() searches its whole table for each character. So there is a table for each block, and a
# text is translated only by the blocks of its capitals.
BLOCKS = {
    "Latin": [(0x80, 0x24F), (0x1E00, 0x1EFF)],
    "Greek": [(0x370, 0x3FF), (0x1F00, 0x1FFF)],
    "Cyrillic": [(0x400, 0x52F)],
    "Armenian, Georgian and Cherokee": [
        (0x530, 0x58F),
        (0x10A0, 0x10FF),
        (0x13A0, 0x13FF),
        (0x1C90, 0x1CBF),
    ],
    "other scripts": [(0, 0x10FFFF)],
}


def escaped(points: Iterable[int]) -> str:
    """Return code points as the inside of a bracket expression, with ranges."""
    parts = []
    for _, group in groupby(enumerate(sorted(points)), lambda pair: pair[1] - pair[0]):
        run = [point for _, point in group]
        first, last = _escape(run[0]), _escape(run[-1])
        parts.append(first if len(run) == 1 else f"{first}-{last}")
    return "".join(parts)


def _escape(point: int) -> str:
    return f"\\u{point:04X}" if point < 0x10000 else f"\\U{point:08X}"


def points_where(mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[int]:
    """Return the code points of the mask, without those that no text in PostgreSQL can have."""
    return [p for p in np.flatnonzero(mask).tolist() if p != 0 and not 0xD800 <= p <= 0xDFFF]


def function(name: str, comment: str, body: str, properties: str = SQL) -> str:
    """Return the definition of a private function from text to text."""
    return (
        f"-- {comment}.\n"
        f"CREATE OR REPLACE FUNCTION textsim.{name}(body text) RETURNS text\n{properties}{body};\n"
    )


def fold() -> str:
    """Return the function that folds capitals; NFKC has replaced the other capitals."""
    kind, _, lower_case, _ = tables()
    left = {
        point: int(lower_case[point])
        for point in np.flatnonzero(lower_case != np.arange(POINTS)).tolist()
        if point > 0x7F and unicodedata.normalize("NFKC", chr(point)) == chr(point)
    }
    assert all(kind[point] == WORD and kind[lower] == WORD for point, lower in left.items())
    lines = [
        '    body := lower(body COLLATE "C");',
        f"    IF body !~ '[{escaped(left)}]' THEN",
        "        RETURN body;",
        "    END IF;",
    ]
    for name, ranges in BLOCKS.items():
        block = [p for p in left if any(first <= p <= last for first, last in ranges)]
        upper = "".join(map(chr, block))
        lower = "".join(chr(left.pop(p)) for p in block)
        lines += [
            f"    -- {name}",
            f"    IF body ~ '[{escaped(block)}]' THEN",
            f"        body := translate(body,\n            '{upper}',\n            '{lower}');",
            "    END IF;",
        ]
    code = "\n".join([*lines, "    RETURN body;"])
    body = f"AS $$\nBEGIN\n{code}\nEND $$"
    return function("_fold", "The simple (one-to-one) lower case of a text in NFKC", body, PLPGSQL)


def main() -> None:
    """Write the file to standard output."""
    table = tables()
    unassigned = escaped(points_where(table.order == UNASSIGNED))
    spaceless = escaped(points_where(table.kind == SPACELESS))
    marks = escaped(points_where(table.kind == MARK))
    joining = escaped(points_where((table.order == JOINING) & (table.kind != MARK)))
    kept = escaped(points_where(table.kind != SEPARATOR))
    print(
        f"-- Unicode {UNICODE_VERSION} for the normal form; written by scripts/make_unicode_sql.py."
    )
    print(
        "-- Code points are listed, because \\w and lower() differ between servers and locales.\n"
    )
    print(
        function(
            "_assigned",
            f"Replace each code point that is not assigned in Unicode {UNICODE_VERSION} by a space",
            f"RETURN regexp_replace(body, '[{unassigned}]', ' ', 'g')",
        )
    )
    print(
        function(
            "_capped",
            f"Remove the marks past the {MAX_MARKS}th of each run",
            f"RETURN regexp_replace(body, '([{marks}]{{{MAX_MARKS}}})[{marks}]+', '\\1', 'g')",
        )
    )
    # A text can be cut at three kinds of places: before a character that never joins, between a mark
    # and another character, and after two Hangul vowels or finals. The last 64 characters of a capped
    # text contain at least one of these places; the last of them is taken.
    places = "|".join(
        (
            f"(?=[^{joining}{marks}])",
            f"(?<=[{marks}])(?=[^{marks}])",
            f"(?<=[{joining}]{{2}})(?=[^{marks}])",
        )
    )
    print(
        function(
            "_unfinished",
            "The end of a capped text that NFKC may join to the text that follows",
            f"RETURN coalesce(substring(right(body, 64) FROM '^.*((?:{places}).*)$'),\n"
            "    right(body, 64))",
        )
    )
    print(
        function(
            "_spaced",
            "Put spaces around each character, with its marks, of scripts that use no spaces",
            f"RETURN regexp_replace(body, '[{spaceless}][{marks}]*', ' \\& ', 'g')",
        )
    )
    print(
        function(
            "_split",
            "Replace each run of characters other than letters, marks and numbers by a space",
            f"RETURN regexp_replace(body, '[^{kept}]+', ' ', 'g')",
        )
    )
    print(fold(), end="")


if __name__ == "__main__":
    main()
