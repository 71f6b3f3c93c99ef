"""Clusters and duplicates in SQL equal Python's, and the query of group_pairs is the caller's."""

from __future__ import annotations

import random
from math import nextafter
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.judgements import random_pairs
from textsim_db.results import Cluster
from textsim_db.settings.named_values import Linkage

Row = tuple[str, int, str | None, float]


def rows_of(clusters: list[Cluster[Any]]) -> list[Row]:
    """Return clusters as the rows of SQL."""
    return [
        (str(key), number, None if c.kept is None else str(c.kept), c.weakest)
        for number, c in enumerate(clusters, start=1)
        for key in c.keys
    ]


def group(connection: Connection, query: str, linkage: str = "kept") -> list[Any]:
    statement = "SELECT key, cluster, kept, weakest FROM textsim.group_pairs(%s, %s)"
    return connection.execute(statement, [query, linkage]).fetchall()


def test_clusters_of_random_pairs_equal_those_of_python(
    connection: Connection, rng: random.Random
) -> None:
    for type_name, key in (("text", str), ("bigint", int)):
        query = f"SELECT a::{type_name}, b::{type_name}, s FROM given ORDER BY place"
        for _ in range(30):
            pairs: list[Any] = [(key(a), key(b), s) for a, b, s in random_pairs(rng)]
            rng.shuffle(pairs)
            connection.execute("DROP TABLE IF EXISTS given")
            connection.execute(
                "CREATE TABLE given (place serial, a text, b text, s double precision)"
            )
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO given (a, b, s) VALUES (%s, %s, %s)", pairs)
            for linkage in Linkage:
                expected = rows_of(ts.group_pairs(pairs, linkage))
                assert group(connection, query, linkage) == expected, linkage


def test_a_query_needs_no_similarity(connection: Connection) -> None:
    query = "SELECT 'é', 'z' UNION ALL SELECT 'z', 'a'; -- two columns"
    with pytest.raises(psycopg.errors.SyntaxError):
        group(connection, query)
    query = query.replace(";", "")
    expected = [("a", 1, None, 1.0), ("z", 1, None, 1.0), ("é", 1, None, 1.0)]
    assert group(connection, query, "single") == expected
    assert [row[2] for row in group(connection, "SELECT 'é', 'z';\n")] == ["z", "z"]
    assert group(connection, "SELECT 1, 2 WHERE false") == []


BAD: list[tuple[str, str]] = [
    (
        "VALUES (1, 2), (3, 3)",
        "pair 2 is .'3', '3'. with similarity 1: it has the same key twice",
    ),
    (
        "VALUES ('a', 'b'), (NULL, 'c')",
        "pair 2 is .NULL, 'c'. with similarity 1: a key is NULL",
    ),
    (
        "VALUES (1, 2, 1999)",
        "pair 1 is .* with similarity 1999: expected a similarity from 0 to 1",
    ),
    ("VALUES (1, 2, 'NaN'::float)", "expected a similarity from 0 to 1"),
    ("VALUES (1, 2, NULL::float)", "expected a similarity from 0 to 1"),
    ("SELECT 'a'::text, 1", "UNION types text and integer cannot be matched"),
    ("SELECT 1", "has 2 columns available but 3 columns specified"),
    ("INSERT INTO mine VALUES (1, 2) RETURNING a, b", "syntax error"),
    ("WITH n AS (INSERT INTO mine VALUES (1, 2) RETURNING a, b) SELECT * FROM n", "top level"),
    ("SELECT 1, 2; DROP TABLE mine", "syntax error"),
    ("SELECT 1, 2) q) r; DROP TABLE mine; --", "syntax error|multiple|column"),
]


def test_a_bad_query_is_refused(connection: Connection) -> None:
    connection.execute("CREATE TABLE mine (a int, b int)")
    for query, message in BAD:
        with pytest.raises(psycopg.Error, match=message):
            group(connection, query)
        assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)
    for arguments in ("NULL", "'SELECT 1, 2', NULL", "'SELECT 1, 2', 'average'"):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            connection.execute(f"SELECT * FROM textsim.group_pairs({arguments})".encode())


def test_the_names_in_a_query_are_those_of_the_caller(connection: Connection) -> None:
    connection.execute("CREATE SCHEMA own; CREATE TABLE own.couple AS SELECT 1 AS a, 2 AS b")
    with pytest.raises(psycopg.errors.UndefinedTable):
        group(connection, "SELECT a, b FROM couple")
    connection.execute("SET search_path = own, pg_catalog")
    connection.execute(
        "CREATE FUNCTION own.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql "
        "AS $$ SELECT 'hostile' $$"
    )
    connection.execute(
        "CREATE FUNCTION own.row_number() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$"
    )
    assert group(connection, "SELECT a, b FROM couple") == [("1", 1, "1", 1.0), ("2", 1, "1", 1.0)]
    assert connection.execute("SHOW search_path").fetchone() == ("own, pg_catalog",)


def test_all_digits_of_a_threshold_count(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.5, recall=1)
    corpus.add_many({"a": "one two three", "b": "one two three four", "c": "one two three five"})
    connection.execute("SET extra_float_digits = -15")
    statement = "SELECT key FROM textsim.clusters('c', %s, 'kept')"
    for threshold, keys in ((3 / 4, 3), (nextafter(3 / 4, 1), 0)):
        assert len(connection.execute(statement, [threshold]).fetchall()) == keys


def test_the_query_runs_once(connection: Connection) -> None:
    connection.execute("CREATE SEQUENCE calls")
    connection.execute(
        "CREATE FUNCTION couples() RETURNS TABLE (a bigint, b text) LANGUAGE sql "
        "AS $$ SELECT nextval('calls'), '0' $$"
    )
    group(connection, "SELECT a::text, b FROM couples()")
    assert connection.execute("SELECT last_value FROM calls").fetchone() == (1,)
