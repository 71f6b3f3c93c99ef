"""After every kind of statement the corpus becomes equal to its attached table."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.sources import (
    MODES,
    expected_forms,
    index_all_pending,
    make_table,
    stored_forms,
    text_of,
)
from textsim_db.settings.named_values import ModeName

STATEMENTS: dict[str, list[LiteralString]] = {
    "insert": ["INSERT INTO t VALUES (10, 'one more text that is here')"],
    "insert many": [
        "INSERT INTO t SELECT i, 'text ' || i || ' of many' FROM generate_series(10, 99) i"
    ],
    "insert nothing": ["INSERT INTO t SELECT 10, 'none' WHERE false"],
    "update text": ["UPDATE t SET body = 'a text that was changed' WHERE id = 2"],
    "update all texts": ["UPDATE t SET body = body || ' with something added to it'"],
    "update key": ["UPDATE t SET id = 200 WHERE id = 2"],
    "update both": ["UPDATE t SET id = 200, body = 'another key and text' WHERE id = 2"],
    "update neither": ["UPDATE t SET other = 5"],
    "a chain of keys": ["UPDATE t SET id = -id - 1", "UPDATE t SET id = -id"],
    "a chain of keys upwards": ["UPDATE t SET id = id + 1000", "UPDATE t SET id = id - 999"],
    "a chain of equal texts": ["UPDATE t SET body = 'the same'", "UPDATE t SET id = -id - 1"],
    "keys of rows without a text": [
        "UPDATE t SET body = NULL WHERE id IN (1, 3)",
        "UPDATE t SET id = -id - 1",
        "DELETE FROM t WHERE body IS NULL",
    ],
    "delete": ["DELETE FROM t WHERE id = 3"],
    "delete all": ["DELETE FROM t"],
    "truncate": ["TRUNCATE t"],
    "truncate and refill": ["TRUNCATE t", "INSERT INTO t VALUES (1, 'the only one that is left')"],
    "to null": ["UPDATE t SET body = NULL WHERE id = 1"],
    "null and back": [
        "UPDATE t SET body = NULL WHERE id = 1",
        "UPDATE t SET body = 'it is back again' WHERE id = 1",
    ],
    "insert null": ["INSERT INTO t VALUES (10, NULL)"],
    "no words": ["INSERT INTO t VALUES (10, '...')", "UPDATE t SET body = '' WHERE id = 1"],
    "upsert": [
        "INSERT INTO t VALUES (1, 'upserted here'), (11, 'inserted by an upsert') "
        "ON CONFLICT (id) DO UPDATE SET body = excluded.body"
    ],
    "upsert nothing": ["INSERT INTO t VALUES (1, 'not taken') ON CONFLICT DO NOTHING"],
    "merge": [
        "MERGE INTO t USING (VALUES (1, 'merged into it'), (12, 'added by a merge')) v (id, body) "
        "ON t.id = v.id WHEN MATCHED THEN UPDATE SET body = v.body "
        "WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.body)"
    ],
    "writable cte": [
        "WITH gone AS (DELETE FROM t WHERE id = 1 RETURNING *) "
        "INSERT INTO t SELECT 13, body || ' moved' FROM gone"
    ],
    "copy": ["COPY"],
    "delete and insert again": [
        "BEGIN",
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t VALUES (1, 'the same key with another text')",
        "COMMIT",
    ],
    "rollback": [
        "BEGIN",
        "INSERT INTO t VALUES (10, 'never to be seen')",
        "DELETE FROM t",
        "ROLLBACK",
    ],
    "savepoint": [
        "BEGIN",
        "INSERT INTO t VALUES (10, 'this one stays')",
        "SAVEPOINT a",
        "INSERT INTO t VALUES (11, 'this one goes')",
        "UPDATE t SET body = 'and this goes as well' WHERE id = 1",
        "ROLLBACK TO a",
        "UPDATE t SET body = 'but this one stays' WHERE id = 2",
        "COMMIT",
    ],
}


def run_statements(connection: Connection, statements: list[LiteralString]) -> None:
    for statement in statements:
        if statement == "COPY":
            with connection.cursor().copy("COPY t (id, body) FROM STDIN") as copy:
                for number in range(20, 40):
                    copy.write_row((number, text_of(number)))
        else:
            connection.execute(statement)


@pytest.mark.parametrize("mode", sample(MODES, 2, "more"))
def test_changes_by_every_kind_of_statement_are_indexed(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: ModeName
) -> None:
    make_table(connection)
    connection.execute("CREATE TABLE at_first AS TABLE t")
    corpus.attach("t", "id", "body", mode)
    for name, statements in STATEMENTS.items():
        if name == "merge" and connection.info.server_version < 150000:
            continue  # MERGE came with PostgreSQL 15
        connection.execute("TRUNCATE t; INSERT INTO t TABLE at_first")
        if mode == "queue":  # mode inline has indexed the rows
            db.worker().run(until_idle=True)
        run_statements(connection, statements)
        if mode == "inline":
            # Mode inline indexes a change within its transaction, and leaves a worker nothing to do.
            assert stored_forms(connection) == expected_forms(connection, "t"), name
            if "TRUNCATE t" not in statements:
                assert corpus.status().pending == 0, name
        db.worker().run(until_idle=True)
        assert stored_forms(connection) == expected_forms(connection, "t"), name
        assert corpus.check() == [], name
    index_all_pending(db, corpus)


def test_keys_shift_along_a_chain_in_mode_inline(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    """Another row may have the old key before the trigger of a row runs; no document is lost."""
    connection.execute(
        "CREATE TABLE t (id bigint PRIMARY KEY DEFERRABLE, body text, other integer)"
    )
    for number in range(6):
        connection.execute("INSERT INTO t VALUES (%s, %s)", [number, text_of(number)])
    corpus.attach("t", "id", "body", "inline")
    chains: tuple[LiteralString, ...] = (
        "UPDATE t SET id = id + 1",
        "UPDATE t SET id = id - 1",
        "UPDATE t SET id = 5 - id",
        "UPDATE t SET id = (id + 2) % 6, body = body || ' more' WHERE id <> 9",
        "BEGIN; INSERT INTO t VALUES (6, 'a new row'); UPDATE t SET id = id + 1; "
        "SAVEPOINT a; UPDATE t SET id = id - 1; RELEASE a; DELETE FROM t WHERE id = 6; COMMIT",
        "UPDATE t SET body = 'the same words' WHERE id < 4",
    )
    for statement in (*chains, *chains):
        connection.execute(statement)
        assert stored_forms(connection) == expected_forms(connection, "t"), statement
        assert corpus.status().pending == 0, statement
    # If the owner of the schema must not read the table, a worker looks at both keys.
    connection.execute("CREATE FUNCTION f(integer) RETURNS integer IMMUTABLE LANGUAGE sql RETURN 1")
    role = f"stranger_{connection.info.backend_pid}"
    connection.execute(f"CREATE ROLE {role}".encode())
    connection.execute(f"ALTER FUNCTION f(integer) OWNER TO {role}".encode())
    try:
        connection.execute("CREATE INDEX ON t (f(other))")
        connection.execute("UPDATE t SET id = id + 1")
        assert corpus.status().pending > 0
    finally:
        connection.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}".encode())
    db.worker().run(until_idle=True)
    assert stored_forms(connection) == expected_forms(connection, "t")


def test_texts_are_indexed_as_a_users_trigger_changes_them(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    connection.execute(
        """
        CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN NEW.body := NEW.body || ' ' || NEW.other; RETURN NEW; END $$;
        CREATE TRIGGER shout BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION shout()
        """
    )
    corpus.attach("t", "id", "body")
    connection.execute("UPDATE t SET other = 7")
    index_all_pending(db, corpus)
    assert stored_forms(connection) == expected_forms(connection, "t")
    assert stored_forms(connection)["1"] == text_of(1) + " 7"


def test_a_transaction_finds_its_own_rows_in_mode_inline(
    corpus: ts.Corpus, connection: Connection
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body", "inline")
    search = "SELECT key FROM textsim.matches('c', 'a text that nobody else can see yet')"
    with connection.transaction() as transaction:
        connection.execute("INSERT INTO t VALUES (50, 'A text that nobody else can see, yet!')")
        assert connection.execute(search).fetchall() == [("50",)]
        assert corpus.query("a text that nobody else can see yet") == []
        raise psycopg.Rollback(transaction)
    assert connection.execute(search).fetchall() == []


ROWS = 30_000


def logged(connection: Connection) -> list[Any]:
    """Return the keys of each entry, sorted, and empty the log."""
    rows = connection.execute("DELETE FROM textsim.pending RETURNING kind, keys").fetchall()
    assert {kind for kind, _ in rows} <= {"change"}
    return sorted(sorted(keys) for _, keys in rows)


@pytest.fixture
def table(corpus: ts.Corpus, connection: Connection) -> Connection:
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, n int, body text)")
    corpus.attach("t", "id", "body")
    return connection


@pytest.mark.both_servers
def test_an_update_of_many_rows_is_logged_in_few_entries(table: Connection) -> None:
    table.execute("INSERT INTO t SELECT i, 0, 'text ' || i FROM generate_series(1, %s) i", [ROWS])
    logged(table)
    table.execute("UPDATE t SET body = body || ' b'")
    entries = logged(table)
    assert [len(keys) for keys in entries] == [10_000] * (ROWS // 10_000)
    assert {key for keys in entries for key in keys} == {str(i) for i in range(1, ROWS + 1)}
    table.execute("UPDATE t SET n = n + 1")
    assert logged(table) == []


CHANGES = [
    ("UPDATE t SET n = 5", []),
    ("UPDATE t SET body = body", []),
    ("UPDATE t SET body = upper(body) WHERE id = 2", ["2"]),
    ("UPDATE t SET body = NULL WHERE id = 2", ["2"]),
    ("UPDATE t SET body = '' WHERE id = 4", ["4"]),
    ("UPDATE t SET body = 'new' WHERE id IN (3, 4)", ["3", "4"]),
    # The key of a row without a text has no document.
    ("UPDATE t SET id = 40 WHERE id = 4", []),
    ("UPDATE t SET id = 10 WHERE id = 1", ["1", "10"]),
    ("UPDATE t SET id = 4 - id WHERE id < 4", ["1", "3"]),
    ("UPDATE t SET id = id + 1", ["1", "2", "3", "4"]),
    ("INSERT INTO t VALUES (2, 0, 'x'), (9, 0, 'y') ON CONFLICT (id) DO UPDATE "
     "SET body = excluded.body", ["2", "9"]),
    ("INSERT INTO t VALUES (2, 0, 'x') ON CONFLICT (id) DO UPDATE SET n = 7", []),
]  # fmt: skip


@pytest.mark.both_servers
def test_the_keys_whose_text_changed_are_logged(table: Connection) -> None:
    for statement, keys in CHANGES:
        # A statement that renumbers rows needs a deferrable key, and ON CONFLICT another one.
        form = "" if "ON CONFLICT" in statement else "DEFERRABLE"
        table.execute(
            f"ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id) {form}; DELETE FROM t; "
            "INSERT INTO t VALUES (1, 0, 'one'), (2, 0, 'two'), (3, 0, 'three'), (4, 0, NULL)".encode()
        )
        table.execute("DELETE FROM textsim.pending")
        table.execute(statement.encode())
        rows = table.execute("SELECT keys FROM textsim.pending").fetchall()
        assert sorted(key for (each,) in rows for key in each) == keys, statement
