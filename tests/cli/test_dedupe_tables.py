"""textsim dedupe on tables."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.support.commands import Textsim
from tests.support.records import A, records
from textsim_db.dedupe import table_clusters

pytestmark = pytest.mark.one_server


def run_sql(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize("keep", ["first", "max:score", "min:score", "longest"])
def test_tables(textsim: Textsim, database_url: str, keep: str) -> None:
    run_sql(database_url, 'CREATE SCHEMA "My Blog"')
    run_sql(
        database_url, 'CREATE TABLE "My Blog".post (id int PRIMARY KEY, body text, score numeric)'
    )
    for number, row in enumerate(records(), start=8):
        with psycopg.connect(database_url) as connection:
            connection.execute(
                'INSERT INTO "My Blog".post VALUES (%s, %s, %s)',
                [number, row["text"] or None, row["score"]],
            )
    arguments = ["--table", '"My Blog".post', "--text", "body", "--into", "twins", "--keep", keep]
    result = textsim("dedupe", *arguments)
    assert "5 documents: 3 kept, 2 to remove from 1 cluster" in result.stderr
    kept = {"first": 8, "max:score": 10, "min:score": 8, "longest": 12}[keep]
    assert run_sql(database_url, "SELECT key, cluster, kept FROM twins ORDER BY key") == [
        (8, 1, kept),
        (10, 1, kept),
        (12, 1, kept),
    ]
    run_sql(database_url, "SELECT textsim.create_corpus('words')")
    assert run_sql(
        database_url,
        "SELECT bool_and(t.similarity = textsim.jaccard('words', p.body, q.body)) FROM twins t "
        'JOIN "My Blog".post p ON p.id = t.key JOIN "My Blog".post q ON q.id = t.kept',
    ) == [(True,)]
    assert run_sql(database_url, 'SELECT count(*) FROM "My Blog".post') == [(5,)]
    again = textsim("dedupe", *arguments, status=2)
    assert 'twins cannot be created: relation "twins" already exists' in again.stderr


@pytest.mark.parametrize(
    ("type_", "values", "kept"),
    [
        ("double precision", "'nan', 1, 9, NULL", {"max": 3, "min": 2}),
        ("numeric", "'nan', 1, 9, NULL", {"max": 3, "min": 2}),
        ("real", "NULL, 'nan', 'nan', NULL", {"max": 1, "min": 1}),
        ("date", "'2024-01-01', NULL, 'infinity', '2023-01-01'", {"max": 3, "min": 4}),
        ("text", "'b', NULL, 'c', 'a'", {"max": 3, "min": 4}),
    ],
)
def test_values_of_tables(
    textsim: Textsim, database_url: str, type_: str, values: str, kept: dict[str, int]
) -> None:
    run_sql(database_url, f"CREATE TABLE post (id int PRIMARY KEY, text text, score {type_})")
    for number, value in enumerate(values.split(", "), start=1):
        run_sql(database_url, f"INSERT INTO post VALUES ({number}, '{A}', {value})")
    for rule, number in kept.items():
        textsim("dedupe", "--table", "post", "--into", rule, "--keep", f"{rule}:score")
        assert run_sql(database_url, f"SELECT DISTINCT kept FROM {rule}") == [(number,)]


def test_a_refused_target_is_reported_first(
    textsim: Textsim, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql(database_url, "CREATE TABLE post (id int, text text)")
    run_sql(database_url, "CREATE VIEW there AS SELECT 1")
    monkeypatch.setattr(table_clusters, "documents", None)
    for into, message in [
        ("nowhere.x", 'nowhere.x cannot be created: schema "nowhere" does not exist'),
        ("pg_catalog.x", "pg_catalog.x cannot be created: permission denied"),
        (
            "there",
            'there cannot be created: relation "there" already exists; choose another --into',
        ),
        ("a.b.c.d", "a.b.c.d cannot be created"),
    ]:
        result = textsim("dedupe", "--table", "post", "--into", into, status=2)
        assert message in result.stderr
    with pytest.raises(TypeError):  # it would go on
        textsim("dedupe", "--table", "post", "--into", "x")
    assert run_sql(database_url, "SELECT to_regclass('x')") == [(None,)]


def test_refused_tables(textsim: Textsim, database_url: str) -> None:
    run_sql(database_url, "CREATE TABLE post (id int, body text)")
    run_sql(database_url, "INSERT INTO post VALUES (1, 'a'), (1, 'b')")
    for arguments, message in [
        (["--table", "nothing", "--into", "x"], "there is no table 'nothing'"),
        (
            ["--table", "post", "--into", "x"],
            'table post has no column "text"; it has "id", "body"',
        ),
        (
            ["--table", "post", "--text", "body", "--into", "a..b"],
            "'a..b' is not the name of a table",
        ),
        (["--table", "post", "--text", "body", "--into", "x"], 'the column "id" has "1" twice'),
    ]:
        result = textsim("dedupe", *arguments, status=2)
        assert message in result.stderr, arguments
    run_sql(database_url, "UPDATE post SET id = NULL WHERE body = 'b'")
    result = textsim("dedupe", "--table", "post", "--text", "body", "--into", "x", status=2)
    assert 'the column "id" has NULL' in result.stderr
    assert run_sql(database_url, "SELECT count(*) FROM textsim.corpus") == [(0,)]
