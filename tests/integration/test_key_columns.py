"""Attached tables whose key has several columns, and tables that are partitioned by day.

After a change that bypasses triggers documents would match whose rows are gone. A worker, reconcile and
index_pending each mend that.
"""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta, timezone
from typing import Any, LiteralString, cast
from uuid import UUID

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
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: str, kind: str = "partitions"
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
    mode: str,
    cause: str,
    mend: Mender,
) -> None:
    kind, statement, keys = BYPASSES[cause]
    make_messages(db, corpus, connection, mode, kind)
    connection.execute(statement)
    assert corpus.status().problems != []
    assert {problem.kind for problem in corpus.check()} == {"attached table"}
    mend(db, corpus, connection)
    check_equal(corpus, connection, keys)


@pytest.mark.sampled
@mending
@in_both_modes
@pytest.mark.parametrize("kind", KINDS)
def test_rows_deleted_while_detached_lose_their_documents(
    db: ts.Database,
    corpus: ts.Corpus,
    connection: Connection,
    mode: str,
    mend: Mender,
    kind: str,
) -> None:
    make_messages(db, corpus, connection, mode, kind)
    corpus.detach("message")
    connection.execute("DELETE FROM message WHERE day = '2026-11-02'")
    connection.execute("UPDATE message SET body = 'a text that changed' WHERE id = 1")
    connection.execute(
        "SELECT textsim.attach('c', 'message', text_column => 'body', mode => %s, "
        "key_columns => ARRAY['day', 'id'])",
        [mode],
    )
    mend(db, corpus, connection)
    check_equal(corpus, connection, keys_of(DAYS[0]))


@in_both_modes
@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_key_columns_and_texts_are_followed(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: str, kind: str
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
        corpus,
        connection,
        (keys_of(*DAYS[:2]) - gone) | {"2026-11-02/50", "2026-11-01/60"},
    )
    assert stored_forms(connection)["2026-11-01/3"] == "another text"


COLUMN_TYPES = ("int", "bigint", "uuid", "date", "timestamp", "timestamptz", "text", "varchar")


def random_value(rng: random.Random, kind: str) -> Any:
    moment = datetime(1990, 1, 1) + timedelta(microseconds=rng.randrange(10**15))
    match kind:
        case "int" | "bigint":
            return rng.randrange(-5, 500)
        case "uuid":
            return UUID(int=rng.getrandbits(128))
        case "date":
            return moment.date()
        case "timestamp":
            return moment.replace(microsecond=rng.choice([0, 500_000, 123_456]))
        case "timestamptz":
            zone = timezone(timedelta(hours=rng.randrange(-11, 12)))
            return moment.replace(tzinfo=zone)
        case _:
            return "".join(rng.choices("/~01ab é'%\"\\{},", k=rng.randrange(5)))


def table_of_types(connection: Connection, types: list[str]) -> str:
    """Create the table t with these key columns and return the names of the columns."""
    columns = ", ".join(f"k{n} {kind}" for n, kind in enumerate(types))
    names = ", ".join(f"k{n}" for n in range(len(types)))
    connection.execute(f"CREATE TABLE t ({columns}, body text, PRIMARY KEY ({names}))".encode())
    return names


def insert_random(
    connection: Connection, rng: random.Random, types: list[str], rows: int
) -> dict[str, int]:
    """Insert rows with random keys, and return the number in the text of each by its key in Python."""
    numbers = {}
    marks = ", ".join(["%s"] * (len(types) + 1))
    for number in range(rows):
        values = [random_value(rng, kind) for kind in types]
        inserted = connection.execute(
            f"INSERT INTO t VALUES ({marks}) ON CONFLICT DO NOTHING".encode(),
            [*values, text_of(number)],
        )
        if inserted.rowcount:
            numbers[ts.join_key(*values)] = number
    return numbers


@pytest.mark.sampled
@in_both_modes
@pytest.mark.parametrize("columns", [2, 3, 4])
def test_keys_do_not_depend_on_the_settings_of_a_session(
    db: ts.Database,
    corpus: ts.Corpus,
    connection: Connection,
    rng: random.Random,
    mode: str,
    columns: int,
) -> None:
    types = rng.sample(COLUMN_TYPES, columns)
    names = table_of_types(connection, types)
    corpus.attach("t", key_columns=names.split(", "), text="body", mode=mode)
    expected: dict[str, int] = {}
    for style, zone in (("ISO", "UTC"), ("German", "Asia/Tokyo"), ("SQL, DMY", "America/New_York")):
        connection.execute("SELECT set_config('DateStyle', %s, false)", [style])
        connection.execute("SELECT set_config('TimeZone', %s, false)", [zone])
        expected |= insert_random(connection, rng, types, 15)
    db.worker().run(until_idle=True)
    assert set(stored_forms(connection)) == set(expected)
    connection.execute("UPDATE t SET body = 'a new text'")
    connection.execute("CALL textsim.index_pending('c')")
    assert set(stored_forms(connection).values()) == {"a new text"}
    assert corpus.check() == []
    assert list(corpus.drift()) == []
    connection.execute("DELETE FROM t")
    connection.execute("CALL textsim.index_pending('c')")
    assert stored_forms(connection) == {}


@in_both_modes
def test_the_key_of_a_row_leads_back_to_the_row(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, rng: random.Random, mode: str
) -> None:
    names = table_of_types(connection, ["date", "text", "bigint"])
    numbers = insert_random(connection, rng, ["date", "text", "bigint"], 40)
    corpus.attach("t", key_columns=names.split(", "), text="body", mode=mode)
    rows = connection.execute(
        "SELECT d.key, t.body FROM textsim.document_1 d "
        "JOIN t ON t.k0 = textsim.key_part(d.key, 1)::date "
        "AND t.k1 = textsim.key_part(d.key, 2) AND t.k2 = textsim.key_part(d.key, 3)::bigint"
    ).fetchall()
    assert dict(rows) == {key: text_of(number) for key, number in numbers.items()}
    assert len(rows) == len(numbers)


PART = st.text(st.sampled_from("/~01a") | st.characters(exclude_characters="\0", codec="utf-8"))


@given(st.lists(st.tuples(PART, PART, PART), min_size=2, max_size=20))
def test_two_different_rows_never_have_one_key(rows: list[tuple[str, str, str]]) -> None:
    keys = [ts.join_key(*row) for row in rows]
    assert [tuple(ts.split_key(key)) for key in keys] == rows


def test_sql_joins_and_splits_keys_as_python_does(
    connection: Connection, rng: random.Random
) -> None:
    for _ in range(300):
        parts = [random_value(rng, "text") for _ in range(rng.randrange(1, 5))]
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
    ).fetchone() == (
        None,
        None,
    )


def test_values_without_a_key_are_refused() -> None:
    for parts in [(), (None, 1), (1.5, 2), (True, 1)]:
        with pytest.raises(TypeError, match="key"):
            ts.join_key(*cast("tuple[Any, ...]", parts))


REFUSALS: dict[LiteralString, tuple[str, list[str]]] = {
    "CREATE TABLE t (a int, b int, body text)": ('column "a" may be NULL', ["a", "b"]),
    "CREATE TABLE t (a int NOT NULL, b int NOT NULL, body text)": (
        'columns "a", "b" are not unique together',
        ["a", "b"],
    ),
    "CREATE TABLE t (a int, b int, c int, body text, PRIMARY KEY (a, b, c))": (
        'columns "a", "b" are not unique together',
        ["a", "b"],
    ),
    "CREATE TABLE t (a int PRIMARY KEY, b int NOT NULL, body text)": (
        'columns "a", "b" are not unique together',
        ["a", "b"],
    ),
    "CREATE TABLE t (a int, b numeric, body text, PRIMARY KEY (a, b))": (
        'column "b" is of type numeric; expected an integer, uuid, text, varchar, date',
        ["a", "b"],
    ),
    "CREATE TABLE t (a int, b int, body text, PRIMARY KEY (a, b))": (
        "name a column twice",
        ["a", "a"],
    ),
}


@pytest.mark.parametrize("statement", REFUSALS)
def test_columns_that_are_no_key_are_refused(
    corpus: ts.Corpus, connection: Connection, statement: LiteralString
) -> None:
    message, columns = REFUSALS[statement]
    connection.execute(statement)
    with pytest.raises(ts.ConfigurationError, match=message):
        corpus.attach("t", key_columns=columns, text="body")


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


def test_a_renamed_key_column_is_reported_with_the_statements_that_mend_it(
    corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute("CREATE TABLE t (a int, b text, body text, PRIMARY KEY (a, b))")
    connection.execute("INSERT INTO t VALUES (1, 'x', 'a text')")
    corpus.attach("t", key_columns=["b", "a"], text="body")
    connection.execute('ALTER TABLE t RENAME b TO "B, c"')
    (problem,) = corpus.status().problems
    assert 'its column "b" is now named "B, c"' in problem
    connection.execute(problem[problem.index("SELECT textsim.detach") :].encode())
    connection.execute("UPDATE t SET body = 'another text'")
    connection.execute("CALL textsim.index_pending('c')")
    assert stored_forms(connection)["x/1"] == "another text"
    assert corpus.status().problems == []
    connection.execute("ALTER TABLE t DROP CONSTRAINT t_pkey")
    (problem,) = corpus.status().problems
    assert 'columns "B, c", "a" are not unique together' in problem


@pytest.mark.more
def test_a_large_table_of_many_partitions(
    db: ts.Database, corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute(
        "CREATE TABLE message (id bigint, day date, body text, PRIMARY KEY (id, day)) "
        "PARTITION BY RANGE (day)"
    )
    for number in range(1, 31):
        create_partition(connection, date(2026, 11, number))
    connection.execute(
        "INSERT INTO message SELECT i, date '2026-11-01' + i % 30, "
        "'the text ' || md5(i::text) || ' has one word of its own ' || i "
        "FROM generate_series(1, 20000) i"
    )
    corpus.attach("message", key_columns=["day", "id"], text="body")
    assert len(corpus) == 20000
    connection.execute("DROP TABLE message_7")
    run_worker(db, corpus, connection)
    assert len(corpus) == 20000 - 667
    connection.execute("ALTER TABLE message DETACH PARTITION message_8")
    connection.execute("UPDATE message SET body = body || ' again' WHERE day = '2026-11-10'")
    run_index_pending(db, corpus, connection)
    assert len(corpus) == 20000 - 2 * 667
    assert list(corpus.drift()) == []
    assert corpus.check() == []


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
    (failure,) = corpus.failures()
    assert failure.key == "2026-11-03/7"
    assert 'matches document "2026-11-02/1"' in failure.error
