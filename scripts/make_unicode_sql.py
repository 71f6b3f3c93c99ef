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
    BLANKED,
    CYRILLIC,
    DELETED,
    DIGIT,
    IGNORED,
    JOINING,
    LETTER,
    LOWER,
    MARK,
    MAX_MARKS,
    OPENS,
    POINTS,
    RAISED,
    SEPARATOR,
    SPACED,
    SPACELESS,
    SYMBOL,
    UNASSIGNED,
    UNICODE_VERSION,
    tables,
)

PLPGSQL = "LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp"

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


def function(name: str, comment: str, code: str) -> str:
    """Return the definition of a private function from text to text."""
    return (
        f"-- {comment}.\n"
        f"CREATE OR REPLACE FUNCTION textsim.{name}(body text) RETURNS text\n{PLPGSQL} AS $$\n"
        f"BEGIN{code}\nEND $$;\n"
    )


def literal(value: str) -> str:
    """Return a string literal with the same value under all settings of a session."""
    return "E'" + value.replace("\\", "\\\\") + "'"


def replaced(*pairs: tuple[str, str]) -> str:
    """Return the expression that replaces patterns in the body, one after another."""
    expression = "body"
    for pattern, replacement in pairs:
        arguments = (expression, literal(pattern), literal(replacement), literal("g"))
        expression = f"regexp_replace({', '.join(arguments)})"
    return expression


def returned(expression: str) -> str:
    """Return the code of a function that returns the value of an expression.

    In a function in SQL, a server would read the expression anew in each session, and up to version 17
    in each transaction.
    """
    why = "  -- a planner takes longer to read the expression than to search a text"
    return f"{why}\n    RETURN {expression};"


def where(test: str, expression: str) -> str:
    """Return the code of a function that computes an expression if the test matches its text."""
    return returned(f"CASE WHEN (body ~ {literal(test)}) THEN {expression} ELSE body END")


def fold() -> str:
    """Return the function that folds letters and digits; NFKC has replaced the other capitals."""
    folded_by_point = tables().lower
    left = {
        point: int(folded_by_point[point])
        for point in np.flatnonzero(folded_by_point != np.arange(POINTS)).tolist()
        if point > 0x7F and unicodedata.normalize("NFKC", chr(point)) == chr(point)
    }
    sharp_s = [point for point in (0xDF, 0x1E9E) if left.get(point, point) == 0xDF]
    lines = [
        '    body := lower(body COLLATE "C");',
        f"    IF body !~ '[{escaped([*left, *sharp_s])}]' THEN",
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
    code = "\n".join(["", *lines, "    RETURN replace(body, 'ß', 'ss');"])
    comment = "The one-to-one lower case of a text in NFKC, with ASCII digits, and ss for sharp s"
    return function("_fold", comment, code)


def main() -> None:
    """Write the file to standard output."""
    table = tables()
    is_mark, is_word = table.kind >= MARK, (table.kind > SEPARATOR) & (table.kind < MARK)

    def of_trait(trait: int) -> str:
        return escaped(points_where(table.traits & trait != 0))

    unassigned = escaped(points_where(table.order == UNASSIGNED))
    spaceless = escaped(points_where(table.kind == SPACELESS))
    marks, words = escaped(points_where(is_mark)), escaped(points_where(is_word))
    kept_marks = escaped(points_where(table.kind == MARK))
    letters = escaped(points_where(is_word & (table.traits & LETTER != 0)))
    deleted = escaped(points_where(table.kind == DELETED))
    lower, digits, cyrillic = of_trait(LOWER), of_trait(DIGIT), of_trait(CYRILLIC)
    ignored, blanked, spaced = of_trait(IGNORED), of_trait(BLANKED), of_trait(SPACED)
    raised, symbols = of_trait(RAISED), of_trait(SYMBOL)
    is_assigned = table.order != UNASSIGNED  # spaces have replaced the others
    opens = escaped(points_where((table.traits & OPENS != 0) & is_assigned))
    plain = escaped(points_where(is_word & (table.traits & (IGNORED | SPACED | RAISED) == 0)))
    first = escaped(
        points_where(
            is_word & (table.traits & (IGNORED | SPACED | RAISED) == 0) & (table.order != JOINING)
        )
    )
    end = f"^.*[{words}][{marks}]* ?([{first}][{marks}]*[{plain}][{marks}]*[{plain}].*)$"
    # U+2212 stands for the minus of a number, and the hyphen for every other one.
    signed = replaced(
        ("\\u2212", "-"),
        (f"(^|[{opens}])-(?=[0-9])", "\\1−"),
        (f"[+#]+(?=[{words}])", " "),
        (f"((?:^|[^{letters}{kept_marks}+#])[{kept_marks}]*)[+#]+", "\\1 "),
        (f"[{spaceless}][{kept_marks}]*[+#]*", " \\& "),
        (f"[^{words}{kept_marks}+#\\u2212]+", " "),
    )
    print(
        f"-- Unicode {UNICODE_VERSION} for the normal form; written by scripts/make_unicode_sql.py."
    )
    print(
        "-- Code points are listed, because \\w and lower() differ between servers and locales.\n"
    )
    print(
        function(
            "_joined",
            "Delete the hyphens and the line ends within words that are broken at the end of a line",
            where(
                "[-\\u2010\\u00AD][ \\t]*[\\r\\n]",
                replaced(
                    (
                        f"([{lower}])[-\\u2010\\u00AD][ \\t]*(?:\\r\\n?|\\n)[ \\t]*(?=[{lower}])",
                        "\\1",
                    )
                ),
            ),
        )
    )
    print(
        function(
            "_spaced_signs",
            f"Replace code points that are not assigned in Unicode {UNICODE_VERSION} and trade marks by "
            "spaces, delete ignorable\n-- ones, put spaces around fractions and enclosed numbers, and "
            "before superscript digits after a number or word",
            where(
                f"[{unassigned}{blanked}{ignored}{spaced}{raised}]",
                replaced(
                    (f"[{unassigned}{blanked}]", " "),
                    (f"[{ignored}]+", ""),
                    (f"[{spaced}]", " \\& "),
                    (
                        f"([{digits}][{marks}]*|(?:[{letters}][{marks}]*){{3}})([{raised}])",
                        "\\1 \\2",
                    ),
                ),
            ),
        )
    )
    print(
        function(
            "_capped",
            f"Remove the marks past the {MAX_MARKS}th of each run",
            returned(replaced((f"([{marks}]{{{MAX_MARKS}}})[{marks}]+", "\\1"))),
        )
    )
    print(
        function(
            "_unfinished",
            "The end of a text after the last place to cut it: before three letters or digits, of "
            "which no step\n-- joins the first with the character before. NULL: there is none",
            returned(f'"substring"("right"(body, 1000), {literal(end)})'),
        )
    )
    print(
        function(
            "_without_marks",
            "Delete the marks that normal forms leave out from a folded text",
            where(
                f"[{deleted}]|i\\u0307|[{cyrillic}][\\u0300\\u0301]|"
                f"(?:^|[^{words}{kept_marks}])[{kept_marks}]",
                replaced(
                    (f"[{deleted}]+", ""),
                    ("i\\u0307+", "i"),
                    (f"([{cyrillic}])[\\u0300\\u0301]+", "\\1"),
                    (f"(^|[^{words}{kept_marks}])[{kept_marks}]+", "\\1"),
                ),
            ),
        )
    )
    print(
        function(
            "_split",
            "Put spaces around each character, with its marks, of spaceless scripts; then replace "
            "each run of\n-- characters other than letters, marks and numbers by a space",
            returned(
                replaced(
                    (f"[{spaceless}][{kept_marks}]*", " \\& "), (f"[^{words}{kept_marks}]+", " ")
                )
            ),
        )
    )
    print(
        function(
            "_split_signed",
            "The same, with the minus of a number, and the + and # that belong to a word",
            returned(f"translate({signed}, {literal('−')}, {literal('-')})"),
        )
    )
    print(
        function(
            "_symbols",
            "The symbols of a text in NFKC, each with a space after it",
            returned(replaced((f"[^{symbols}]+", ""), (".", "\\& "))),
        )
    )
    print(
        function(
            "_without_spaces",
            "A normal form without the spaces between two words of scripts that use no spaces",
            returned(
                "CASE WHEN octet_length(body) = length(body) THEN body\n"
                "        ELSE regexp_replace(body,\n"
                f"        E'([{spaceless}][{kept_marks}]*[+#]*) (?=[{spaceless}])', E'\\\\1', 'g') END"
            ),
        )
    )
    print(fold(), end="")


if __name__ == "__main__":
    main()
