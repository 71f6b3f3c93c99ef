"""Rows of an attached table are looked up by an index of the table, whatever its key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any, LiteralString

import pytest

import textsim_db as ts
from tests.support.connections import Connection, value
from textsim_db.db.engine import transaction
from textsim_db.sync import read_source

pytestmark = pytest.mark.more

DAYS = 30
ROWS = 60_000
TEXT = "the parcel was left with a neighbour who is at home after six in the evening"
KEYS = 50
"""The keys that are looked up at once."""
PAGE = 1000
"""The rows of a page when a table is compared with its documents."""

COMPOSITE = "m.day = textsim.key_part(d.key, 1)::date AND m.id = textsim.key_part(d.key, 2)::bigint"
TABLES: dict[str, tuple[str, list[str], str]] = {
    "one column": ("PRIMARY KEY (id))", ["id"], "m.id = d.key::bigint"),
    "two columns": ("PRIMARY KEY (id, day))", ["day", "id"], COMPOSITE),
    "partitions": ("PRIMARY KEY (id, day)) PARTITION BY RANGE (day)", ["day", "id"], COMPOSITE),
}
"""The end of the definition of a table, its key columns, and the condition of a join with d."""

READ: LiteralString = """
SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)::bigint
FROM pg_class c WHERE c.relname ~ '^message'
"""
"""The rows that a transaction has read by sequential scans, and the entries of indexes."""


def make_table(connection: Connection, kind: str) -> None:
    end, *_ = TABLES[kind]
    connection.execute(f"CREATE TABLE message (id bigint, day date, body text, {end}".encode())
    for number in range(DAYS if kind == "partitions" else 0):
        day = date(2026, 11, 1) + timedelta(number)
        connection.execute(
            f"CREATE TABLE message_{number} PARTITION OF message "
            f"FOR VALUES FROM ('{day}') TO ('{day + timedelta(1)}')".encode()
        )


@pytest.mark.sampled
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("is_analyzed", [False, True])
def test_rows_are_looked_up_by_the_index_of_the_key(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, kind: str, is_analyzed: bool
) -> None:
    make_table(connection, kind)
    _, key_columns, join = TABLES[kind]
    corpus.attach("message", key_columns=key_columns, text="body")
    connection.execute(
        "INSERT INTO message SELECT i, date '2026-11-01' + i %% %s, 'the text of row ' || i "
        "FROM generate_series(1, %s) i",
        [DAYS, ROWS],
    )
    if is_analyzed:
        connection.execute("VACUUM ANALYZE message")
    (source,) = read_source.sources(db.engine)
    row = connection.execute(
        f"SELECT array_agg({source.key}) FROM message t WHERE id %% %s = 0".encode(), [ROWS // KEYS]
    ).fetchone()
    assert row is not None
    (keys,) = row
    assert len(keys) == KEYS
    corpus.add_many(dict.fromkeys(keys, TEXT))
    connection.execute("UPDATE textsim.document_1 SET source_id = 1")
    statements: dict[str, tuple[str, list[Any], int]] = {
        "matches": (
            f"SELECT m.id FROM textsim.matches('c', %s) d JOIN message m ON {join}",
            [TEXT],
            KEYS,
        ),
        "candidates": (
            f"SELECT m.id FROM textsim.candidates('c', %s) d JOIN message m ON {join}",
            [TEXT],
            KEYS,
        ),
        "rows": (
            "SELECT r.body FROM textsim.source s, textsim._rows_of(s, %s) r WHERE r.body IS NOT NULL",
            [keys],
            KEYS,
        ),
        "page": ("SELECT unnest(keys) FROM textsim._next_page(1, false, %s)", [keys[3]], PAGE),
    }
    for _ in range(8):  # plans change after five executions
        for name, (statement, parameters, most) in statements.items():
            with connection.transaction(), few_rows_read(connection, name, most):
                rows = connection.execute(statement.encode(), parameters, prepare=True).fetchall()
                assert len(rows) == most, name
        with connection.transaction(), few_rows_read(connection, "page of documents", KEYS):
            absent = value(connection, "SELECT keys FROM textsim._next_page(1, true, NULL)")
            assert absent == []
        with transaction(db.engine) as own:
            with few_rows_read(own, "read_rows", KEYS):
                assert read_source.read_rows(own, source, keys).keys() == set(keys)
            with few_rows_read(own, "read_sizes", KEYS):
                assert read_source.read_sizes(own, source, keys).keys() == set(keys)
            with few_rows_read(own, "absent_keys", KEYS):
                assert read_source.absent_keys(own, source, keys) == []
            for after in (None, keys[3]):
                with few_rows_read(own, f"read_page after {after}", PAGE):
                    assert len(read_source.read_page(own, source, after, PAGE)) == PAGE


@contextmanager
def few_rows_read(connection: Connection, name: str, expected: int) -> Iterator[None]:
    """Assert that a transaction reads the expected rows meanwhile, and few others."""
    before = value(connection, READ)
    yield
    read = value(connection, READ) - before
    # A page of a partitioned table begins in each partition.
    most = 2 * expected + 2 * DAYS
    assert expected <= read <= most, f"{name}: {read} rows read, at most {most}"
