"""Attached tables with a row filter: only the rows for which it is true have a document."""

from __future__ import annotations

import random

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.roles import as_role
from tests.support.sources import index_all_pending, stored_forms
from textsim_db.settings.named_values import ModeName

FILTER = "state = 'published' AND NOT coalesce(hidden, false) AND found > 0"
TABLE = """
CREATE TYPE state AS ENUM ('draft', 'published');
CREATE TABLE t (id int PRIMARY KEY, body text, state state, hidden boolean, found numeric DEFAULT 1)
"""
ATTACH = "SELECT textsim.attach('c', 't', 'id', 'body', %s, row_filter => %s)"


@pytest.fixture
def corpus(db: ts.Database, connection: Connection) -> ts.Corpus:
    connection.execute(TABLE)
    return db.create_corpus("c", shingle="word:2", threshold=0.7)


def settle(db: ts.Database, connection: Connection, corpus: ts.Corpus, by_sql: bool) -> None:
    if by_sql:
        connection.execute("CALL textsim.index_pending('c')")
    index_all_pending(db, corpus)


@pytest.mark.more
@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["queue", "inline"])
@pytest.mark.parametrize("by_sql", [False, True])
def test_changes_at_random_leave_the_documents_of_the_filtered_rows(
    db: ts.Database,
    connection: Connection,
    corpus: ts.Corpus,
    mode: ModeName,
    by_sql: bool,
    rng: random.Random,
) -> None:
    connection.execute(
        "INSERT INTO t SELECT i, 'text of row ' || i, (ARRAY['draft', 'published'])[1 + i % 2]::state "
        "FROM generate_series(1, 40) i"
    )
    corpus.attach("t", "id", "body", mode, row_filter=FILTER)
    statements: list[str] = [
        "UPDATE t SET state = CASE state WHEN 'draft' THEN 'published'::state ELSE 'draft' END "
        "WHERE id % 7 = {}",
        "UPDATE t SET hidden = NOT coalesce(hidden, false) WHERE id % 5 = {}",
        "UPDATE t SET body = body || ' anew', found = 1 - coalesce(found, 0) WHERE id % 6 = {}",
        "UPDATE t SET state = NULL, found = 2 WHERE id % 11 = {}",
        "UPDATE t SET id = id + (SELECT max(id) FROM t) WHERE id % 9 = {}",
        "DELETE FROM t WHERE id % 13 = {}",
        "INSERT INTO t SELECT coalesce(max(id), 0) + 1 + {}, 'a new text', 'published' FROM t",
    ]
    for _ in range(25):
        connection.execute(rng.choice(statements).format(rng.randrange(5)).encode())
        if rng.random() < 0.3:
            settle(db, connection, corpus, by_sql)
    # By chance, none of the rows is left.
    connection.execute(
        "INSERT INTO t SELECT coalesce(max(id), 0) + i, 'a last text', "
        "(ARRAY['draft', 'published'])[i]::state FROM t CROSS JOIN generate_series(1, 2) i GROUP BY i"
    )
    settle(db, connection, corpus, by_sql)
    rows = connection.execute(f"SELECT id::text, body FROM t WHERE {FILTER}".encode()).fetchall()
    assert stored_forms(connection) == dict(rows)
    assert 0 < len(rows) < value(connection, "SELECT count(*) FROM t")
    assert list(corpus.drift()) == []


def test_a_unique_corpus_compares_the_filtered_rows_only(
    db: ts.Database, connection: Connection
) -> None:
    connection.execute(TABLE)
    connection.execute("INSERT INTO t VALUES (1, 'one and the same text', 'published')")
    connection.execute("INSERT INTO t VALUES (2, 'one and the same text', 'draft')")
    corpus = db.create_corpus("c", shingle="word:2", threshold=0.7, recall=1, is_unique=True)
    corpus.attach("t", "id", "body", row_filter="state = 'published'")
    with pytest.raises(pg.UniqueViolation, match='document "2" matches document "1"'):
        connection.execute("UPDATE t SET state = 'published' WHERE id = 2")
    connection.execute("UPDATE t SET state = 'draft' WHERE id = 1")
    connection.execute("UPDATE t SET state = 'published' WHERE id = 2")
    assert list(stored_forms(connection)) == ["2"]
    assert corpus.check() == []
    assert corpus.rebuild(seed=7)
    connection.execute("UPDATE t SET state = 'draft'")
    assert len(corpus) == 0


def test_an_attached_table_shows_its_filter_and_takes_another(
    db: ts.Database, connection: Connection, corpus: ts.Corpus
) -> None:
    connection.execute("INSERT INTO t VALUES (1, 'a text', 'draft'), (2, 'another', 'published')")
    corpus.attach("t", "id", "body", row_filter="state = 'draft'")
    assert [source.row_filter for source in db.sources()] == ["(state = 'draft'::text)"]
    connection.execute("SELECT textsim.detach('c', 't')")
    assert value(connection, "SELECT to_regproc('textsim._filter_1') IS NULL")
    corpus.attach("t", "id", "body", row_filter="state <> 'draft'")
    assert list(stored_forms(connection)) == ["2"]
    connection.execute("SELECT textsim.detach('c', 't')")
    corpus.attach("t", "id", "body")
    assert stored_forms(connection).keys() == {"1", "2"}


IMPURE = [
    ("status = 'x'", 'column "status" does not exist'),
    ("body", "must be type boolean"),
    ("body = ", "syntax error"),
    ("true) DROP TABLE t; --", "syntax error"),
    ("true); DROP TABLE t; SELECT (1", "cannot open multi-query plan as cursor"),
    ("id IN (SELECT 1)", "cannot use subquery"),
    ("found < random()", "must be marked IMMUTABLE"),
    ("now() > '2020-01-01'", "must be marked IMMUTABLE"),
    ("public.is_good(body)", "its row filter uses function (public.)?is_good"),
    ("id OPERATOR(public.<+>) 1 = 2", "its row filter uses operator"),
    ("count(*) > 1", "aggregate functions are not allowed"),
    ("t.* IS NOT NULL", "missing FROM-clause entry|does not exist"),
    ("ctid IS NOT NULL", "system column"),
    ("", "syntax error"),
    ("id = 'x'", "invalid input syntax"),
]


@pytest.mark.both_servers
def test_a_filter_is_a_pure_condition_on_the_row(connection: Connection, corpus: ts.Corpus) -> None:
    connection.execute(
        """
        CREATE FUNCTION is_good(text) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN true;
        CREATE OPERATOR <+> (LEFTARG = int, RIGHTARG = int, FUNCTION = int4pl)
        """
    )
    for row_filter, reason in IMPURE:
        with pytest.raises(pg.FeatureNotSupported, match=reason) as raised:
            connection.execute(ATTACH, [None, row_filter])
        assert "table public.t cannot be attached" in str(raised.value), row_filter
        assert value(connection, "SELECT count(*) FROM textsim.sources") == 0, row_filter


def test_no_function_of_a_user_runs_for_a_filter(
    connection: Connection, corpus: ts.Corpus, database_url: str
) -> None:
    """The trigger function has the rights of the schema's owner, and runs for any table."""
    connection.execute("CREATE ROLE mallory LOGIN; GRANT CREATE ON SCHEMA public TO mallory")
    connection.execute("SELECT textsim.grant_writer('mallory')")
    with psycopg.connect(as_role(database_url, "mallory"), autocommit=True) as mallory:
        mallory.execute(
            """
            CREATE TABLE mine (id int PRIMARY KEY, body text, state text);
            CREATE TYPE evil AS (a int);
            CREATE FUNCTION steal(evil) RETURNS text LANGUAGE plpgsql AS
                $$BEGIN RAISE EXCEPTION 'ran as %', current_user; END$$;
            CREATE CAST (evil AS text) WITH FUNCTION steal(evil) AS IMPLICIT;
            """
        )
        mallory.execute(
            "SELECT textsim.attach('c', 'mine', 'id', 'body', 'inline', row_filter => 'state > ''(1)''')"
        )
        mallory.execute(
            """
            DO $$ DECLARE t record; BEGIN
                FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'mine'::regclass LOOP
                    EXECUTE format('DROP TRIGGER %I ON mine', t.tgname);
                END LOOP;
            END $$;
            ALTER TABLE mine ALTER state TYPE evil USING ROW(0);
            CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION textsim._changes_1();
            INSERT INTO mine VALUES (1, 'a text', ROW(2)), (2, 'a text', ROW(1));
            """
        )
    assert list(stored_forms(connection)) == ["1"]
