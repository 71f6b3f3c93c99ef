"""The planner knows that a search takes longer than a look-up in an index, and runs few searches."""

from __future__ import annotations

import textsim_db as ts
from tests.support.connections import Connection, value

ROWS = 300
TABLES = f"""
CREATE TABLE post (id text PRIMARY KEY, body text, author int, at date);
CREATE TABLE author (id int PRIMARY KEY, is_blocked boolean NOT NULL);
INSERT INTO author SELECT i, i > 1 FROM generate_series(0, {ROWS // 3}) i;
INSERT INTO post SELECT i::text, 'one two three four five six seven eight nine ' || i, i / 3,
    '2026-01-01'::date + i FROM generate_series(1, {ROWS}) i;
ANALYZE post, author;
"""
MATCH = "EXISTS (SELECT FROM textsim.matches('c', p.body) m WHERE m.key <> p.id)"
ALLOWED = "(SELECT NOT a.is_blocked FROM author a WHERE a.id = p.author)"
NEIGHBOURS = "SELECT n.key FROM textsim.neighbours('c', p.id) n"
SHAPES = {
    f"SELECT count(*) FROM post p WHERE {MATCH} AND {ALLOWED}": 5,
    f"SELECT count(*) FROM post p WHERE {ALLOWED} AND {MATCH}": 5,
    f"SELECT count(*) FROM post p WHERE {MATCH} AND p.id IN ('7', '8')": 2,
    f"SELECT count(*) FROM post p WHERE {MATCH} AND p.at < '2026-01-05'": 3,
    f"SELECT count(*) FROM post p WHERE NOT {MATCH} AND NOT {ALLOWED} AND p.author = 9": 3,
    f"SELECT count(*) FROM post p WHERE {MATCH} AND p.body LIKE '%99'": 3,
    f"SELECT count(*) FROM post p WHERE {MATCH} AND length(p.body) < 47": 9,
    f"SELECT count(*) FROM post p WHERE '8' IN ({NEIGHBOURS}) AND {ALLOWED}": 5,
    f"SELECT count(*) FROM post p WHERE EXISTS ({NEIGHBOURS}) AND p.author = 1": 3,
    f"SELECT count(*) FROM post p JOIN author a ON a.id = p.author WHERE a.id = 1 AND {MATCH}": 3,
    "SELECT count(*) FROM post p, textsim.matches('c', p.body) m WHERE p.author = 1": 3,
    f"SELECT p.id, ARRAY({NEIGHBOURS}) FROM post p WHERE p.author = 1": 3,
    f"SELECT p.id, ({NEIGHBOURS} LIMIT 1) FROM post p ORDER BY p.id LIMIT 2": 2,
    "SELECT p.* FROM textsim.matches('c', 'one two three four five six') m "
    "JOIN post p ON p.id = m.key": 1,
    "SELECT count(*) FROM post p WHERE textsim.jaccard('c', p.body, 'one two') > 0.5 "
    f"AND {ALLOWED}": 5,
}
"""Statements with the number of calls that they need."""
CALLS = """
SELECT coalesce(sum(calls), 0) FROM pg_stat_xact_user_functions
WHERE schemaname = 'textsim' AND funcname IN ('matches', 'neighbours', 'jaccard')
"""


def test_cheap_conditions_come_first(db: ts.Database, connection: Connection) -> None:
    connection.execute(TABLES)
    corpus = db.create_corpus("c", shingle="word:2", threshold=0.6, recall=1)
    corpus.attach("post", "id", "body")
    db.worker().run(until_idle=True)
    connection.execute("SET track_functions = 'all'")
    if connection.info.server_version >= 150000:
        connection.execute("SET stats_fetch_consistency = none")
    calls = {}
    for statement in SHAPES:
        with connection.transaction():
            before = value(connection, CALLS)
            connection.execute(statement.encode())
            calls[statement] = value(connection, CALLS) - before
    assert calls == SHAPES


def test_functions_that_search_say_what_they_cost(connection: Connection) -> None:
    """An operator costs 1, and a look-up in an index some 3,000."""
    cheap = connection.execute(
        """
        SELECT p.oid::regprocedure::text FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname !~ '^_' AND p.prokind = 'f'
            AND p.provolatile = 's' AND p.proargnames[1] = 'corpus' AND p.procost < 10000
        """
    ).fetchall()
    assert cheap == []


def test_the_rows_of_a_search_are_few(connection: Connection) -> None:
    many = connection.execute(
        """
        SELECT p.oid::regprocedure::text FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace AND p.proretset AND p.provolatile = 's'
            AND 'max_results' = ANY (p.proargnames) AND p.prorows > 10
        """
    ).fetchall()
    assert many == []
