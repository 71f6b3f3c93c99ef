"""Attached tables whose key has several columns, and tables that are partitioned by day.

After a change that bypasses triggers documents would match whose rows are gone. A worker, reconcile and
index_pending each mend that.
"""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any, LiteralString, cast

import psycopg
import pytest
from hypothesis import given, strategies as st

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sources import (
    Mender,
    in_both_modes,
    index_all_pending,
    mending,
    run_index_pending,
    run_worker,
    stored_forms,
    text_of,
)
from textsim_db.settings.named_values import ModeName

DAYS = [date(2026, 11, day) for day in (1, 2, 3)]
ROWS = 10
"""Rows of each day."""


def create_partition(connection: Connection, day: date) -> None:
    connection.execute(
        f"CREATE TABLE message_{day.day} PARTITION OF message "
        f"FOR VALUES FROM ('{day}') TO ('{day + timedelta(1)}')".encode()
    )


def insert_rows(connection: Connection, day: date, table: str = "message") -> None:
    """Insert rows of a day; the numbers are the same on each day."""
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {table} VALUES (%s, %s, %s)".encode(),
            [(number, day, text_of(100 * day.day + number)) for number in range(ROWS)],
        )


def keys_of(*days: date) -> set[str]:
    return {f"{day}/{number}" for day in days for number in range(ROWS)}


def check_equal(corpus: ts.Corpus, connection: Connection, keys: set[str]) -> None:
    """Assert that a corpus has the documents of these keys, and that no problem is reported."""
    assert set(stored_forms(connection)) == keys
    assert list(corpus.drift()) == []
    assert corpus.check() == []
    assert corpus.status().problems == []


KINDS: dict[str, LiteralString] = {
    "plain": "CREATE TABLE message (id bigint, day date, body text, PRIMARY KEY (id, day))",
    "partitions": "CREATE TABLE message (id bigint, day date, body text, PRIMARY KEY (id, day)) "
    "PARTITION BY RANGE (day)",
}


def make_messages(
    db: ts.Database,
    corpus: ts.Corpus,
    connection: Connection,
    mode: ModeName,
    kind: str = "partitions",
) -> None:
    """Attach a table with rows of two days; the partition of the second day comes later."""
    connection.execute(KINDS[kind])
    if kind == "partitions":
        create_partition(connection, DAYS[0])
    insert_rows(connection, DAYS[0])
    corpus.attach("message", key_columns=["day", "id"], text="body", mode=mode)
    if kind == "partitions":
        create_partition(connection, DAYS[1])
    insert_rows(connection, DAYS[1])
    db.worker().run(until_idle=True)
    check_equal(corpus, connection, keys_of(*DAYS[:2]))


def while_disabled(statement: LiteralString) -> LiteralString:
    """Return statements that change the table while its triggers are disabled."""
    return (
        f"ALTER TABLE message DISABLE TRIGGER USER; {statement}; "
        "ALTER TABLE message ENABLE TRIGGER USER"
    )


BYPASSES: dict[str, tuple[str, LiteralString, set[str]]] = {
    "partition truncated": ("partitions", "TRUNCATE message_2", keys_of(DAYS[0])),
    "partition dropped": ("partitions", "DROP TABLE message_2", keys_of(DAYS[0])),
    "partition detached": (
        "partitions",
        "ALTER TABLE message DETACH PARTITION message_2",
        keys_of(DAYS[0]),
    ),
    "partitions, trigger disabled": (
        "partitions",
        while_disabled("DELETE FROM message WHERE day = '2026-11-02'"),
        keys_of(DAYS[0]),
    ),
    "partition attached": (
        "partitions",
        "CREATE TABLE other (LIKE message INCLUDING ALL); INSERT INTO other "
        "SELECT n, '2026-11-03', 'row ' || n || ' of a table' FROM generate_series(0, 9) n; "
        "ALTER TABLE message ATTACH PARTITION other FOR VALUES FROM ('2026-11-03') TO ('2026-11-04')",
        keys_of(*DAYS),
    ),
    "partitions, table dropped": ("partitions", "DROP TABLE message", set()),
    "trigger disabled": (
        "plain",
        while_disabled("DELETE FROM message WHERE day = '2026-11-02'"),
        keys_of(DAYS[0]),
    ),
    "key changed, trigger disabled": (
        "plain",
        while_disabled("UPDATE message SET day = '2026-11-03' WHERE day = '2026-11-02'"),
        keys_of(DAYS[0], DAYS[2]),
    ),
    "truncated, trigger disabled": ("plain", while_disabled("TRUNCATE message"), set()),
    "table dropped": ("plain", "DROP TABLE message", set()),
}
"""The kind of a table, changes that triggers miss, and the keys that are left.

The fifth cause of plain tables is a test of its own: rows deleted while the table is detached.
"""


@pytest.mark.sampled
@mending
@in_both_modes
@pytest.mark.parametrize("cause", BYPASSES)
def test_rows_and_documents_are_equal_again(
    db: ts.Database,
    corpus: ts.Corpus,
    connection: Connection,
    mode: ModeName,
    cause: str,
    mend: Mender,
) -> None:
    kind, statement, keys = BYPASSES[cause]
    make_messages(db, corpus, connection, mode, kind)
    connection.execute(statement)
    status = corpus.status()
    assert [*status.problems, *status.notes] != []
    dropped = "table dropped" in cause
    assert [problem.kind for problem in corpus.check()] == ["attached table"] * dropped
    mend(db, corpus, connection)
    check_equal(corpus, connection, keys)


@in_both_modes
@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_key_columns_and_texts_are_followed(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: ModeName, kind: str
) -> None:
    """An UPDATE of the day moves a row to another partition; its document gets another key."""
    make_messages(db, corpus, connection, mode, kind)
    connection.execute(
        "UPDATE message SET day = '2026-11-02', id = 50 WHERE id = 1 AND day = '2026-11-01'"
    )
    connection.execute("UPDATE message SET id = 60 WHERE id = 2 AND day = '2026-11-01'")
    connection.execute(
        "UPDATE message SET body = 'another text' WHERE id = 3 AND day = '2026-11-01'"
    )
    connection.execute("DELETE FROM message WHERE id = 4")
    index_all_pending(db, corpus)
    gone = {"2026-11-01/1", "2026-11-01/2", "2026-11-01/4", "2026-11-02/4"}
    check_equal(
        corpus, connection, (keys_of(*DAYS[:2]) - gone) | {"2026-11-02/50", "2026-11-01/60"}
    )
    assert stored_forms(connection)["2026-11-01/3"] == "another text"


PART = st.text(st.sampled_from("/~01a") | st.characters(exclude_characters="\0", codec="utf-8"))


@pytest.mark.more
@given(st.lists(st.tuples(PART, PART, PART), min_size=2, max_size=20))
def test_two_different_rows_never_have_one_key(rows: list[tuple[str, str, str]]) -> None:
    keys = [ts.join_key(*row) for row in rows]
    assert [tuple(ts.split_key(key)) for key in keys] == rows


def test_sql_joins_and_splits_keys_as_python_does(
    connection: Connection, rng: random.Random
) -> None:
    for _ in range(300):
        sizes = rng.choices(range(5), k=rng.randrange(1, 5))
        parts = ["".join(rng.choices("/~01ab é'%\"\\{},", k=size)) for size in sizes]
        key = ts.join_key(*parts)
        assert connection.execute(
            "SELECT textsim.join_key(VARIADIC %s::text[])", [parts]
        ).fetchone() == (key,)
        if len(parts) > 1:
            row = connection.execute(
                "SELECT array(SELECT textsim.key_part(%s, n) FROM generate_series(1, %s) n)",
                [key, len(parts)],
            ).fetchone()
            assert row == (parts,), key
    assert connection.execute(
        "SELECT textsim.join_key('a', NULL), textsim.join_key(VARIADIC '{}')"
    ).fetchone() == (None, None)


def test_values_without_a_key_are_refused() -> None:
    for parts in [(), (None, 1), (1.5, 2), (True, 1)]:
        with pytest.raises(TypeError, match="key"):
            ts.join_key(*cast("tuple[Any, ...]", parts))


REFUSALS: list[tuple[LiteralString, str, str]] = [
    ("a int, b int", "ab", 'column "a" may be NULL'),
    ("a int PRIMARY KEY, b int NOT NULL", "ab", 'columns "a", "b" are not unique together'),
    (
        "a int, b int, c int, PRIMARY KEY (a, b, c)",
        "ab",
        'columns "a", "b" are not unique together',
    ),
    (
        "a int, b numeric, PRIMARY KEY (a, b)",
        "ab",
        'column "b" is of type numeric; expected an integer',
    ),
    ("a int, b int, PRIMARY KEY (a, b)", "aa", "not unique together"),
]


def test_columns_that_are_no_key_are_refused(corpus: ts.Corpus, connection: Connection) -> None:
    for columns, key, message in REFUSALS:
        connection.execute(f"CREATE TABLE t (body text, {columns})".encode())
        with pytest.raises(ts.ConfigurationError, match=message):
            corpus.attach("t", key_columns=[*key], text="body")
        connection.execute("DROP TABLE t")


def test_a_key_is_named_once(corpus: ts.Corpus, connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a int, b int, body text, PRIMARY KEY (a, b))")
    for arguments in ({"key": "a", "key_columns": ["a", "b"]}, {}, {"key_columns": "ab"}):
        with pytest.raises(ts.ConfigurationError, match="key"):
            corpus.attach("t", text="body", **cast("dict[str, Any]", arguments))
    for call in (
        "'a', 'body', key_columns => '{a,b}'",
        "text_column => 'body'",
        "text_column => 'body', key_columns => '{}'",
        "text_column => 'body', key_columns => '{a,NULL}'",
    ):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="key"):
            connection.execute(f"SELECT textsim.attach('c', 't', {call})".encode())


def test_renamed_columns_are_reported(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", keep_for="30 days")
    connection.execute(
        "CREATE TABLE t (a int, b text, body text, at date, hidden boolean, PRIMARY KEY (a, b))"
    )
    connection.execute("INSERT INTO t VALUES (1, 'x', 'a text', now(), false)")
    corpus.attach("t", key_columns=["b", "a"], text="body", time="at", row_filter="NOT hidden")
    connection.execute('ALTER TABLE t RENAME b TO "B, c"; ALTER TABLE t RENAME at TO written')
    other, problem = corpus.status().problems
    assert 'its column "b" is now named "B, c"' in problem
    assert 'its column "at" is now named "written"' in other
    connection.execute(
        "SELECT textsim.attach('c', 't', text_column => 'body', key_columns => '{\"B, c\",a}', "
        "time_column => 'written', row_filter => 'NOT hidden', replace => true)"
    )
    connection.execute("UPDATE t SET body = 'another text'")
    connection.execute("CALL textsim.index_pending('c')")
    assert stored_forms(connection)["x/1"] == "another text"
    assert corpus.status().problems == []
    assert [(s.time, s.row_filter) for s in db.sources()] == [("written", "(NOT hidden)")]
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        connection.execute("ALTER TABLE t DROP hidden")
    connection.execute("ALTER TABLE t RENAME hidden TO secret")
    (problem,) = corpus.status().problems
    assert 'its column "hidden" is now named "secret"' in problem
    connection.execute(
        "ALTER TABLE t RENAME secret TO hidden; ALTER TABLE t DROP CONSTRAINT t_pkey"
    )
    (problem,) = corpus.status().problems
    assert 'columns "B, c", "a" are not unique together' in problem


@pytest.mark.parametrize("mend", [run_worker, run_index_pending], ids=lambda mend: mend.__name__)
def test_a_unique_corpus_follows_a_partitioned_table(
    db: ts.Database, connection: Connection, mend: Mender
) -> None:
    """A dropped partition takes its documents along; then a similar row gets in."""
    corpus = db.create_corpus("c", shingle="word:2", threshold=0.7, recall=1, is_unique=True)
    connection.execute(
        "CREATE TABLE message (id bigint, day date, body text, PRIMARY KEY (id, day)) "
        "PARTITION BY RANGE (day)"
    )
    create_partition(connection, DAYS[0])
    connection.execute(
        "INSERT INTO message VALUES (1, '2026-11-01', 'rain closed two schools on tuesday')"
    )
    corpus.attach("message", key_columns=["day", "id"], text="body")
    create_partition(connection, DAYS[1])
    insert = "INSERT INTO message VALUES (1, '2026-11-02', 'rain closed two schools on tuesday')"
    with pytest.raises(psycopg.errors.UniqueViolation, match=r'document "2026-11-02/1" matches'):
        connection.execute(insert)
    connection.execute("DROP TABLE message_1")
    with pytest.raises(psycopg.errors.UniqueViolation):  # until the change is noticed
        connection.execute(insert)
    mend(db, corpus, connection)
    connection.execute(insert)
    connection.execute("CREATE TABLE other (LIKE message INCLUDING ALL)")
    connection.execute(
        "INSERT INTO other VALUES (7, '2026-11-03', 'rain closed two schools on tuesday')"
    )
    connection.execute(
        "ALTER TABLE message ATTACH PARTITION other FOR VALUES FROM ('2026-11-03') TO ('2026-11-04')"
    )
    mend(db, corpus, connection)
    assert set(stored_forms(connection)) == {"2026-11-02/1"}
    (failure,) = corpus.pending()
    assert failure.key == "2026-11-03/7"
    assert 'matches document "2026-11-02/1"' in failure.error
