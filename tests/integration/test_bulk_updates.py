"""A bulk UPDATE is logged in few entries, which list the keys whose text changed."""

from __future__ import annotations

from typing import Any

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sources import expected_forms, stored_forms

pytestmark = pytest.mark.both_servers

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


def test_the_keys_whose_text_changed_are_logged(
    db: ts.Database, corpus: ts.Corpus, table: Connection
) -> None:
    for statement, keys in CHANGES:
        # A statement that renumbers rows needs a deferrable key, and ON CONFLICT another one.
        form = "" if "ON CONFLICT" in statement else "DEFERRABLE"
        table.execute(
            f"ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id) {form}; DELETE FROM t; "
            "INSERT INTO t VALUES (1, 0, 'one'), (2, 0, 'two'), (3, 0, 'three'), (4, 0, NULL)".encode()
        )
        db.worker().run(until_idle=True)
        table.execute("DELETE FROM textsim.pending")
        table.execute(statement.encode())
        rows = table.execute("SELECT keys FROM textsim.pending").fetchall()
        assert sorted(key for (each,) in rows for key in each) == keys, statement
        db.worker().run(until_idle=True)
        assert stored_forms(table) == expected_forms(table, "t"), statement
        assert corpus.check() == [], statement
