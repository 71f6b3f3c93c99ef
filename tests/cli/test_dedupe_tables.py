"""textsim dedupe on tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.commands import Textsim
from tests.support.records import A, records
from tests.support.sampling import sample
from textsim_db.dedupe import table_clusters


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
    assert 'twins cannot be written: relation "twins" already exists' in again.stderr


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
        ("nowhere.x", 'nowhere.x cannot be written: schema "nowhere" does not exist'),
        ("pg_catalog.x", "pg_catalog.x cannot be written: permission denied"),
        (
            "there",
            'there cannot be written: relation "there" already exists; choose another --into',
        ),
        ("a.b.c.d", "a.b.c.d cannot be written"),
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
        (["--table", "post", "--into", "x", "--report", "r.jsonl"], "the report is a page"),
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


def cluster_rows(url: str) -> list[Any]:
    return run_sql(url, "SELECT key, cluster, kept, similarity FROM twins ORDER BY key")


def test_a_second_run_replaces_the_rows_of_the_first(textsim: Textsim, database_url: str) -> None:
    run_sql(database_url, "CREATE TABLE post (id int PRIMARY KEY, text text)")
    run_sql(database_url, f"INSERT INTO post VALUES (1, '{A}'), (2, '{A}')")
    arguments = ["dedupe", "--table", "post", "--into", "twins", "--replace"]
    first = textsim(*arguments)
    assert "replaced" not in first.stderr
    assert cluster_rows(database_url) == [(1, 1, 1, 1.0), (2, 1, 1, 1.0)]
    run_sql(database_url, "CREATE VIEW seen AS SELECT key FROM twins")
    run_sql(database_url, f"DELETE FROM post WHERE id = 1; INSERT INTO post VALUES (3, '{A}')")
    again = textsim(*arguments)
    assert "the rows of twins were replaced" in again.stderr
    assert cluster_rows(database_url) == [(2, 1, 2, 1.0), (3, 1, 2, 1.0)]
    assert run_sql(database_url, "SELECT key FROM seen ORDER BY key") == [(2,), (3,)]
    refused = textsim(*arguments[:-1], status=2)
    assert "choose another --into, or --replace its rows" in refused.stderr


def test_only_a_table_of_clusters_is_replaced(textsim: Textsim, database_url: str) -> None:
    run_sql(database_url, f"CREATE TABLE post AS SELECT 1 AS id, '{A}' AS text")
    columns = "key int, cluster bigint, kept int, similarity double precision"
    message = "has the columns ("
    for other in (columns.replace("int", "text", 1), f"{columns}, note text", "key int"):
        run_sql(database_url, f"DROP TABLE IF EXISTS other; CREATE TABLE other ({other})")
        run_sql(database_url, "INSERT INTO other (key) VALUES (7)")
        arguments = ["dedupe", "--table", "post", "--into", "other", "--replace"]
        refused = textsim(*arguments, status=2)
        assert f"other is not replaced: it {message}key " in refused.stderr
        assert run_sql(database_url, "SELECT count(*) FROM other") == [(1,)]
    run_sql(database_url, f"CREATE TABLE base ({columns}); CREATE VIEW seen AS SELECT * FROM base")
    refused = textsim("dedupe", "--table", "post", "--into", "seen", "--replace", status=2)
    assert 'relation "seen" already exists' in refused.stderr
    wrong = textsim("dedupe", "x.jsonl", "-o", "y.jsonl", "--replace", status=2)
    assert "it needs --table and --into" in wrong.stderr


@pytest.mark.parametrize("keep", sample(["max:score", "last", "longest", "first"], 4))
def test_the_corpus_of_an_attached_table_is_used(
    textsim: Textsim, database_url: str, keep: str
) -> None:
    run_sql(database_url, "CREATE TABLE post (id int PRIMARY KEY, text text, score numeric)")
    texts = [A, A + " again", A, "", None, "a text that is like no other of the table"]
    with psycopg.connect(database_url) as connection, connection.cursor() as cursor:
        rows = [(number, text, number % 4) for number, text in enumerate(texts, start=8)]
        cursor.executemany("INSERT INTO post VALUES (%s, %s, %s)", rows)
    run_sql(database_url, "SELECT textsim.create_corpus('news', threshold => 0.7)")
    run_sql(database_url, "SELECT textsim.attach('news', 'post', 'id', 'text')")
    arguments = ["dedupe", "--table", "post", "--into", "twins", "--replace", "--keep", keep]
    behind = textsim(*arguments, status=2)
    assert 'the corpus "news" of the table is not up to date' in behind.stderr
    textsim("worker", "--once")
    used = textsim(*arguments)
    assert 'the corpus "news" has this table indexed; it is used' in used.stderr
    assert "6 documents: 4 kept, 2 to remove from 1 cluster" in used.stderr
    rows = cluster_rows(database_url)
    indexed = textsim(*arguments, "--threshold", "0.7")
    assert "it is used" not in indexed.stderr
    assert cluster_rows(database_url) == rows
    assert len(rows) == 3
    # A document of another origin, or another column, would change the result.
    others = [*arguments, "--key", "score"], [*arguments, "--text", "score"]
    for other in others:
        assert "it is used" not in textsim(*other, status=None).stderr
    run_sql(database_url, "SELECT textsim.add('news', 'mine', 'a text of my own')")
    assert "it is used" not in textsim(*arguments).stderr


@pytest.mark.parametrize("is_attached", [False, True], ids=["table", "attached table"])
def test_the_page_of_a_table(textsim: Textsim, database_url: str, is_attached: bool) -> None:
    words = " ".join(f"word{i}" for i in range(30))
    run_sql(
        database_url,
        "CREATE TABLE article (id varchar(9) PRIMARY KEY, body text, score int);"
        f"INSERT INTO article VALUES ('<a>', '{words} on 5 May', 1), ('b', '{words} on 6 May', 3), "
        f"('c', '{words} on 6 May', 2), ('other', 'of other things', 4), ('none', NULL, 5)",
    )
    if is_attached:
        run_sql(database_url, "SELECT textsim.create_corpus('news', threshold => 0.7)")
        textsim("attach", "news", "article", "--key", "id", "--text", "body")
        textsim("worker", "--once")
    arguments = ("--table", "article", "--text", "body", "--into", "twins", "--keep", "max:score")
    result = textsim("dedupe", *arguments, "--report", "r.html")
    assert ("it is used" in result.stderr) == is_attached
    html = Path("r.html").read_text("utf-8")
    assert "What to remove from <bdi>article</bdi>" in html
    assert "Nothing was deleted. The table <bdi>twins</bdi> has the clusters." in html
    assert "max:score" in html
    assert f"<bdi>{0.7 if is_attached else 0.8}</bdi>" in html
    assert "row <bdi>b</bdi>: 2 rows to remove" in html
    assert "removed" not in re.sub("<head>.*</head>", "", html, flags=re.S)
    assert "row <bdi>&lt;a&gt;</bdi>" in html
    assert "<del>6</del> " in html
    assert "<ins>5</ins> " in html
    assert run_sql(database_url, "SELECT count(*) FROM article") == [(5,)]


def test_a_key_of_several_columns(textsim: Textsim, database_url: str) -> None:
    """The keys of the clusters lead back to the rows, with the corpus of the table and without it."""
    run_sql(
        database_url,
        "CREATE TABLE post (site text, day date, text text, PRIMARY KEY (day, site)) "
        "PARTITION BY LIST (day);"
        "CREATE TABLE post_1 PARTITION OF post FOR VALUES IN ('2026-11-01');"
        "CREATE TABLE post_2 PARTITION OF post FOR VALUES IN ('2026-11-02');"
        f"INSERT INTO post VALUES ('a/b', '2026-11-02', '{A}'), ('a/b', '2026-11-01', '{A}'), "
        "('c', '2026-11-01', 'a text that is like no other')",
    )
    keys = ["--key", "site", "--key", "day"]
    arguments = ["dedupe", "--table", "post", *keys, "--into", "twins", "--replace"]
    expected = [
        ("a~1b/2026-11-01", 1, "a~1b/2026-11-01", 1.0),
        ("a~1b/2026-11-02", 1, "a~1b/2026-11-01", 1.0),
    ]
    assert "3 documents: 2 kept, 1 to remove" in textsim(*arguments).stderr
    assert cluster_rows(database_url) == expected
    textsim("attach", "news", "post", "--key", "site", "--key", "day", "--create")
    assert 'the corpus "news" has this table indexed; it is used' in textsim(*arguments).stderr
    assert cluster_rows(database_url) == expected
    textsim(*arguments, "--report", "r.html")
    assert "<bdi>a~1b/2026-11-02</bdi>" in Path("r.html").read_text("utf-8")
    swapped = [*arguments[:3], "--key", "day", "--key", "site", *arguments[-3:]]
    assert "it is used" not in textsim(*swapped).stderr
    run_sql(
        database_url,
        "DELETE FROM post p USING twins t WHERE t.key <> t.kept "
        "AND p.site = textsim.key_part(t.key, 2) AND p.day = textsim.key_part(t.key, 1)::date",
    )
    assert run_sql(database_url, "SELECT site, day::text FROM post ORDER BY 1, 2") == [
        ("a/b", "2026-11-01"),
        ("c", "2026-11-01"),
    ]


def test_columns_that_are_no_key_are_refused(textsim: Textsim, database_url: str) -> None:
    run_sql(database_url, "CREATE TABLE post (a int PRIMARY KEY, b int NOT NULL, c int, text text)")
    for keys, message in [
        ("ab", 'columns "a", "b" are not unique together'),
        ("ac", 'column "c" may be NULL'),
        ("ad", 'table post has no column "d"'),
    ]:
        options = [option for key in keys for option in ("--key", key)]
        result = textsim("dedupe", "--table", "post", "--into", "x", *options, status=2)
        assert message in result.stderr, keys
    result = textsim("dedupe", "x.jsonl", "-o", "y.jsonl", "--key", "a", "--key", "b", status=2)
    assert "here the key of a file has one column" in result.stderr
