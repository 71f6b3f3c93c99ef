"""Attached tables: create them, index their pending changes, compare them with stored documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from psycopg import sql

import textsim_db as ts
from tests.support.connections import Connection, tables_of

MODES = ("queue", "inline")


def text_of(number: object) -> str:
    return f"this is the text with the number {number} and {number} has other words than the rest"


def stored_forms(connection: Connection, corpus: str = "c") -> dict[str, str | None]:
    """Return the normal form of each document of a corpus, by key."""
    documents, _ = tables_of(connection, corpus)
    return dict(
        connection.execute(
            "SELECT d.key, textsim._stored_form(c.id, d.word_ids, d.normal_form) "
            f"FROM {documents} d, textsim.corpus c WHERE c.name = %s".encode(),
            [corpus],
        ).fetchall()
    )


def expected_forms(connection: Connection, table: str, key: str = "id", text: str = "body") -> Any:
    """Return the normal form of each text of a table, by key."""
    query = sql.SQL(
        "SELECT {key}::text, textsim.normal_form({text}) FROM {table} WHERE {text} IS NOT NULL"
    ).format(key=sql.Identifier(key), text=sql.Identifier(text), table=sql.SQL(table))
    return dict(connection.execute(query).fetchall())


def index_all_pending(db: ts.Database, corpus: ts.Corpus) -> None:
    """Have a worker index all pending changes; assert that the index is complete and sound."""
    db.worker().run(until_idle=True)
    assert corpus.status()[1:4] == (0, None, 0)
    assert corpus.check() == []
    assert list(corpus.drift()) == []


def make_table(connection: Connection, rows: int = 5) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text, other int DEFAULT 0)")
    for number in range(rows):
        connection.execute("INSERT INTO t VALUES (%s, %s)", [number, text_of(number)])


def run_worker(db: ts.Database, corpus: ts.Corpus, connection: Connection) -> None:
    db.worker().run(until_idle=True)


def run_reconcile(db: ts.Database, corpus: ts.Corpus, connection: Connection) -> None:
    corpus.reconcile()


def run_index_pending(db: ts.Database, corpus: ts.Corpus, connection: Connection) -> None:
    connection.execute("CALL textsim.index_pending('c')")


MENDERS = (run_worker, run_reconcile, run_index_pending)
"""Each indexes what triggers have missed."""
Mender = Callable[[ts.Database, ts.Corpus, Connection], None]

mending = pytest.mark.parametrize("mend", MENDERS, ids=lambda mend: mend.__name__)
in_both_modes = pytest.mark.parametrize("mode", MODES)
