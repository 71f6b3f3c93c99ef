"""plpgsql_check finds no error in a function: a wrong name or type, a statement that cannot be planned.

PL/pgSQL reads a statement when it runs. The extension reads all; texts that EXECUTE runs stay unread.
"""

from __future__ import annotations

import psycopg
import pytest

from tests.support.connections import Connection

FINDINGS = """
SELECT p.oid::regprocedure::text, f.lineno, f.message, f.detail
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
LEFT JOIN LATERAL (
    SELECT g.tgrelid, g.tgnewtable, g.tgoldtable FROM pg_trigger g WHERE g.tgfoid = p.oid
    ORDER BY g.tgnewtable IS NULL, g.tgoldtable IS NULL LIMIT 1) t ON true
CROSS JOIN LATERAL plpgsql_check_function_tb(
    p.oid, relid => coalesce(t.tgrelid, 0), newtable => t.tgnewtable, oldtable => t.tgoldtable,
    anyelememttype => 'text', fatal_errors => false, performance_warnings => false) f
WHERE p.pronamespace = 'textsim'::regnamespace AND l.lanname = 'plpgsql' AND f.level = 'error'
    AND (p.prorettype <> 'trigger'::regtype OR t.tgrelid IS NOT NULL)
    -- EXECUTE fills such a record.
    AND f.detail IS DISTINCT FROM 'The tuple structure of a not-yet-assigned record is indeterminate.'
    -- The pattern of functions that each corpus has: its tables have no indexes.
    AND NOT EXISTS (
        SELECT FROM pg_proc o WHERE o.pronamespace = p.pronamespace AND o.proname = p.proname || '_2')
"""
MISREAD = {
    "textsim._check_no_transaction(text)",  # it commits, which no function that is checked may
    "textsim._filter_index(regclass,text)",  # it creates the temporary table that it reads
}


def test_no_function_has_an_error(connection: Connection) -> None:
    try:
        connection.execute("CREATE EXTENSION plpgsql_check")
    except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported):
        pytest.skip("needs the extension plpgsql_check")
    connection.execute("SELECT textsim.create_corpus('exact', recall => 1, passages => 13)")
    connection.execute("SELECT textsim.create_corpus('bands', guards => '{numbers}')")
    connection.execute("SELECT textsim.track('bands')")
    connection.execute("CREATE TABLE article (id int PRIMARY KEY, body text)")
    connection.execute("SELECT textsim.attach('bands', 'article', 'id', 'body')")
    connection.execute("SELECT textsim.attach('exact', 'article', 'id', 'body', 'inline')")
    connection.execute(
        "CREATE FUNCTION textsim.wrong() RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM c.nothing FROM textsim.corpus c; END $$"
    )
    rows = connection.execute(FINDINGS).fetchall()
    assert [row for row in rows if row[0] not in MISREAD] == [
        ("textsim.wrong()", 1, "column c.nothing does not exist", None)
    ]
