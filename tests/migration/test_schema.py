"""The files of the schema begin with private functions, and every object has a comment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import textsim_db as ts
from tests.support.catalog import fetch_sorted

FILES = sorted((Path(__file__).parents[2] / "sql" / "schema").glob("*.sql"))
FUNCTION = re.compile(r"^CREATE OR REPLACE (?:FUNCTION|PROCEDURE) textsim\.(\w+)", re.M)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_private_functions_come_first(file: Path) -> None:
    """The name of a private function begins with an underscore."""
    text = file.read_text(encoding="utf-8")
    are_public = [not name.startswith("_") for name in FUNCTION.findall(text)]
    assert text.startswith("-- ")
    assert are_public == sorted(are_public)


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (
            "relation",
            """
            SELECT c.oid::regclass::text FROM pg_class c
            WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
                AND c.relname <> 'alembic_version'
                AND NOT EXISTS (
                    SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'i'
                        AND c.relkind = 'S'
                )
                AND obj_description(c.oid, 'pg_class') IS NULL
            """,
        ),
        (
            "column",
            """
            SELECT c.oid::regclass::text || '.' || a.attname
            FROM pg_class c
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
                AND c.relname IN ('corpus', 'sources', 'metrics')  -- what the reference shows
                AND col_description(c.oid, a.attnum) IS NULL
            """,
        ),
        ("schema", "SELECT 'textsim' WHERE obj_description('textsim'::regnamespace) IS NULL"),
    ],
)
def test_every_object_of_the_schema_has_a_comment(db: ts.Database, kind: str, query: str) -> None:
    db.create_corpus("news")  # the tables and functions of a corpus must have comments, too
    assert fetch_sorted(db.url, query) == [], f"{kind} without a comment"
