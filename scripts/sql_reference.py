"""The texts of the SQL reference: signatures and comments of the catalog."""

from __future__ import annotations

import re
from typing import Any, Final

import psycopg

# An argument that is also a column of the result is shown as both.
_FUNCTIONS: Final = """
SELECT 'textsim.' || p.proname,
    CASE WHEN t.columns IS NULL THEN pg_get_function_arguments(p.oid)
        ELSE regexp_replace(pg_get_function_arguments(p.oid), ', OUT [^,]+|INOUT ', '', 'g') END,
    coalesce('TABLE(' || t.columns || ')', pg_get_function_result(p.oid)),
    obj_description(p.oid, 'pg_proc')
FROM pg_proc p CROSS JOIN LATERAL (
    SELECT string_agg(a.name || ' ' || format_type(a.type, NULL), ', ' ORDER BY a.place) AS columns
    FROM unnest(p.proargnames, p.proallargtypes, p.proargmodes)
        WITH ORDINALITY a (name, type, mode, place)
    WHERE p.proretset AND a.mode IN ('o', 'b')
) t
WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname !~ '^_'
ORDER BY p.proname, p.oid
"""
_RELATIONS: Final = """
SELECT CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END || ' textsim.' || c.relname,
    obj_description(c.oid, 'pg_class'), a.attname, format_type(a.atttypid, a.atttypmod),
    col_description(c.oid, a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind IN ('r', 'v')
ORDER BY c.oid, a.attnum
"""
# The types of defaults, such as '{}'::text[] and NULL::double precision.
_CAST = re.compile(r"::[a-z]+( precision| with(out)? time zone)?(\[\])?")


def sql_texts(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Return the texts of the public functions, the tables and the views, by their headings."""
    texts: dict[str, list[str]] = {}
    for name, *signature, comment in connection.execute(_FUNCTIONS):
        texts.setdefault(name, []).append(f"{_call(name, *signature)}\n\n{_sentence(comment)}")
    for name, comment, *column in connection.execute(_RELATIONS):
        head = f"{_sentence(comment or '')}\n\n| column | type | meaning |\n|---|---|---|"
        texts.setdefault(name, [head]).append(_row(*column))
    return {name: ("\n" if " " in name else "\n\n").join(parts) for name, parts in texts.items()}


def _call(name: str, arguments: str | None, result: str | None) -> str:
    plain = _CAST.sub("", arguments or "").replace(" DEFAULT ", " = ").removeprefix("IN ")
    returned = "" if result in (None, "void") else f" → {result}"
    return f"`{'CALL ' if result is None else ''}{name}({plain}){returned}`"


def _row(column: str, type_: str, comment: str | None) -> str:
    return f"| `{column}` | {type_} | {(comment or '').rstrip('.').replace('|', chr(92) + '|')} |"


def _sentence(comment: str) -> str:
    """Return a comment of the catalog as a sentence."""
    end = "" if comment.endswith((".", "!", "?")) else "."
    return f"{comment[:1].upper()}{comment[1:]}{end}"
