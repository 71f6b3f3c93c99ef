"""ALTER TABLE on attached tables: what happens, what status says, and whether its advice works."""

from __future__ import annotations

import re
from typing import NamedTuple

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sampling import sample


class Alteration(NamedTuple):
    """A change of a table."""

    statement: str
    problem: str | None = None
    """A part of the problem that status reports; None if it reports no problem."""
    error: str | None = None
    """The SQLSTATE of a write after the change; None if writes succeed."""
    way_out: str = ""
    """SQL that mends the table, if status does not print it."""
    table: str = "post"
    columns: str = "id, body"


ALTERED = [
    Alteration(
        "ALTER TABLE post RENAME body TO content",
        'its column "body" is now named "content", and writes to the table fail',
        error="42703",
        columns="id, content",
    ),
    Alteration(
        "ALTER TABLE post RENAME id TO number",
        'its column "id" is now named "number", and writes to the table fail',
        error="42703",
        columns="number, body",
    ),
    Alteration(
        'ALTER TABLE post RENAME id TO "my id"; ALTER TABLE post RENAME body TO "The Text"',
        'is now named "my id"',
        error="42703",
        columns='"my id", "The Text"',
    ),
    Alteration("ALTER TABLE post RENAME TO letter", table="letter"),
    Alteration("CREATE SCHEMA old; ALTER TABLE post SET SCHEMA old", table="old.post"),
    Alteration(
        "ALTER TABLE post DROP COLUMN body CASCADE; ALTER TABLE post ADD COLUMN body text",
        "detach the table and attach it again",
        way_out="SELECT textsim.detach('news', 'post'); "
        "SELECT textsim.attach('news', 'post', 'id', 'body')",
    ),
    Alteration(
        "ALTER TABLE post DROP CONSTRAINT post_pkey",
        'its column "id" is not unique by itself',
        way_out="ALTER TABLE post ADD PRIMARY KEY (id)",
    ),
    Alteration(
        "ALTER TABLE post DROP CONSTRAINT post_pkey; ALTER TABLE post ALTER id DROP NOT NULL",
        'its column "id" may be NULL',
        way_out="ALTER TABLE post ADD PRIMARY KEY (id)",
    ),
    Alteration(
        "ALTER TABLE post SET UNLOGGED", "it is unlogged", way_out="ALTER TABLE post SET LOGGED"
    ),
    Alteration(
        "ALTER TABLE post DISABLE TRIGGER ALL",
        "is disabled: changes are missed until ALTER TABLE",
        way_out="ALTER TABLE post ENABLE TRIGGER ALL",
    ),
    Alteration("ALTER TABLE post OWNER TO pg_database_owner"),
    Alteration("ALTER TABLE post ENABLE ROW LEVEL SECURITY"),
    Alteration("ALTER TABLE post ADD COLUMN more text DEFAULT 'x' NOT NULL"),
    Alteration(
        "CREATE TABLE parent (id integer PRIMARY KEY, body text) PARTITION BY RANGE (id); "
        "ALTER TABLE parent ATTACH PARTITION post FOR VALUES FROM (0) TO (1000)",
        "it has become a partition: changes through its parent are missed; detach it and attach it",
        way_out="SELECT textsim.detach('news', 'post'); "
        "SELECT textsim.attach('news', 'post', 'id', 'body')",
    ),
]


@pytest.fixture
def news(db: ts.Database, connection: Connection) -> ts.Corpus:
    connection.execute("CREATE TABLE post (id integer PRIMARY KEY, body text)")
    connection.execute(
        "INSERT INTO post SELECT i, 'text number ' || i FROM generate_series(1, 9) i"
    )
    corpus = db.create_corpus("news")
    corpus.attach("post", "id", "body")
    return corpus


def run(connection: Connection, statements: str) -> None:
    for statement in statements.split("; "):
        connection.execute(statement.encode())


@pytest.mark.parametrize(
    "altered", sample(ALTERED, 3, "more"), ids=lambda each: each.statement[:50]
)
def test_an_altered_table_is_indexed_or_named_with_a_way_out(
    db: ts.Database, connection: Connection, news: ts.Corpus, altered: Alteration
) -> None:
    run(connection, altered.statement)
    problems = " ".join(news.status().problems)
    assert (altered.problem or "") in problems
    assert bool(problems) == (altered.problem is not None), problems
    insert = (
        f"INSERT INTO {altered.table} ({altered.columns}) VALUES (10, 'one more text of a row')"
    )
    if altered.error is not None:
        with pytest.raises(psycopg.Error) as raised:
            connection.execute(insert.encode())
        assert raised.value.sqlstate == altered.error
        if match := re.search(r"until it is attached anew: (.*?\))(?: table|$)", problems):
            run(connection, match[1])
    run(connection, altered.way_out or "SELECT 1")
    connection.execute(insert.encode())
    db.worker().run(until_idle=True)
    assert news.status().problems == []
    assert "10" in news
    assert news.check() == []
    assert list(news.drift()) == []


def test_the_server_refuses_to_change_the_columns(connection: Connection, news: ts.Corpus) -> None:
    for change in (
        "DROP COLUMN body",
        "DROP COLUMN id",
        "ALTER body TYPE varchar(100)",
        "ALTER id TYPE bigint",
    ):
        with pytest.raises(psycopg.Error) as raised:
            connection.execute(f"ALTER TABLE post {change}".encode())
        assert raised.value.sqlstate in ("2BP01", "0A000"), change
    assert news.status().problems == []
