"""Sessions that add similar texts to a unique corpus at the same moment: one of each pair gets in."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import LiteralString

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.sampling import sample
from tests.support.waiting import PATIENCE_SECONDS

SESSIONS = 16
ROUNDS = 25

INSERTS: dict[str, LiteralString] = {
    "add": "SELECT textsim.add('c', %s, %s)",
    "add_unique": "SELECT * FROM textsim.add_unique('c', %s, %s)",
    "insert": "INSERT INTO t VALUES (%s, %s)",
}
ADDED = {"add": 1, "add_unique": 0, "insert": 1}
"""The number of rows of the statement if the text got in."""
SETTINGS = {"exact": {"recall": 1.0}, "bands": {"num_hashes": 64, "bands": 32, "rows": 2}}


def repeat(connection: Connection, statement: LiteralString, parameters: list[object]) -> None:
    """Change one row, and repeat the statement while it is ended by a deadlock."""
    while True:
        with suppress(psycopg.errors.DeadlockDetected):
            assert connection.execute(statement, parameters).rowcount == 1
            return


def twins(rng: random.Random) -> list[str]:
    """Return two texts that differ in their last word."""
    words = [f"w{rng.randrange(10**6)}" for _ in range(60)]
    return [" ".join([*words, last]) for last in ("red", "blue")]


def race(url: str, rounds: int, insert: Callable[[Connection, int, int], int]) -> int:
    """Let all sessions insert in each round at the same moment; return how much got in.

    insert: gets the connection, the round and the session, and returns how much got in.
    """
    barrier = threading.Barrier(SESSIONS)

    def run(session: int) -> int:
        inserted = 0
        with psycopg.connect(url, autocommit=True) as own:
            for number in range(rounds):
                barrier.wait(PATIENCE_SECONDS)
                with suppress(psycopg.errors.UniqueViolation):
                    inserted += insert(own, number, session)
        return inserted

    with ThreadPoolExecutor(SESSIONS) as pool:
        return sum(pool.map(run, range(SESSIONS)))


def check(connection: Connection, inserted: int, expected: int) -> None:
    """Assert that one text of each pair got in, and is stored."""
    assert connection.execute("SELECT * FROM textsim.pairs('c')").fetchall() == []
    assert inserted == expected
    assert value(connection, "SELECT count(*) FROM textsim.document_1") == inserted


@pytest.mark.parametrize("settings", sample(SETTINGS, 9))
@pytest.mark.parametrize("how", INSERTS)
def test_of_two_similar_texts_one_gets_in(
    db: ts.Database, connection: Connection, rng: random.Random, how: str, settings: str
) -> None:
    db.create_corpus("c", is_unique=True, **SETTINGS[settings])  # type: ignore[arg-type]
    if how == "insert":
        connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
        connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
    pairs = [[twins(rng) for _ in range(SESSIONS // 2)] for _ in range(ROUNDS)]

    def insert(own: Connection, number: int, session: int) -> int:
        text = pairs[number][session // 2][session % 2]
        return own.execute(INSERTS[how], [f"{number} {session}", text]).rowcount == ADDED[how]

    check(connection, race(db.url, ROUNDS, insert), ROUNDS * SESSIONS // 2)


@pytest.mark.parametrize("settings", sample(SETTINGS, 9))
def test_of_two_similar_rows_of_a_partitioned_table_one_gets_in(
    db: ts.Database, connection: Connection, rng: random.Random, settings: str
) -> None:
    """The two rows of a pair are in different partitions, and an UPDATE moves rows between them.

    A move removes the document before it locks the buckets, so a similar INSERT may deadlock with it.
    """
    db.create_corpus("c", is_unique=True, **SETTINGS[settings])  # type: ignore[arg-type]
    connection.execute(
        "CREATE TABLE t (id text, day int, body text, PRIMARY KEY (id, day)) PARTITION BY LIST (day);"
        "CREATE TABLE t_0 PARTITION OF t FOR VALUES IN (0);"
        "SELECT textsim.attach('c', 't', text_column => 'body', key_columns => ARRAY['day', 'id']);"
        "CREATE TABLE t_1 PARTITION OF t FOR VALUES IN (1)"
    )
    pairs = [[twins(rng) for _ in range(SESSIONS // 2)] for _ in range(ROUNDS)]

    def insert(own: Connection, number: int, session: int) -> int:
        """Add one text of a pair, and move the row."""
        day, key = session % 2, f"{number}/{session}"
        own.execute("SET deadlock_timeout = '20ms'")
        repeat(
            own, "INSERT INTO t VALUES (%s, %s, %s)", [key, day, pairs[number][session // 2][day]]
        )
        repeat(own, "UPDATE t SET day = %s WHERE id = %s", [1 - day, key])
        return 1

    check(connection, race(db.url, ROUNDS, insert), ROUNDS * SESSIONS // 2)
    rows = connection.execute("SELECT textsim.join_key(day::text, id) FROM t ORDER BY 1").fetchall()
    assert rows == connection.execute("SELECT key FROM textsim.document_1 ORDER BY 1").fetchall()


LISTED = "textsim.twins_of('c', %(keys)s::text[], %(bodies)s::text[])"
ROWS = "unnest(%(keys)s::text[], %(bodies)s::text[]) AS s (id, body)"
WRITES: dict[str, list[str]] = {
    "one statement": [
        f"INSERT INTO t SELECT s.* FROM {ROWS} "
        f"WHERE NOT EXISTS (SELECT FROM {LISTED} t WHERE t.key = s.id) RETURNING id"
    ],
    "two statements": [
        f"SELECT key FROM {LISTED}",
        f"INSERT INTO t SELECT s.* FROM {ROWS} WHERE s.id <> ALL (%(left_out)s::text[]) RETURNING id",
    ],
}


@pytest.mark.sampled
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("size", [2, 12])
def test_sessions_that_ask_twins_of_first_meet_no_twin(
    db: ts.Database,
    connection: Connection,
    rng: random.Random,
    write: str,
    settings: str,
    size: int,
) -> None:
    """Lists that lock buckets, and lists that lock the corpus. A refused list would be missed."""
    db.create_corpus("c", is_unique=True, **SETTINGS[settings])  # type: ignore[arg-type]
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
    rounds = [
        [[twins(rng) for _ in range(size)] for _ in range(SESSIONS // 2)]
        for _ in range(max(2, 24 // size))
    ]
    orders = [[rng.sample(range(size), size) for _ in range(SESSIONS)] for _ in rounds]

    def insert(own: Connection, number: int, session: int) -> int:
        """Insert a list, in an order of its own."""
        pairs = rounds[number][session // 2]
        texts = {f"{number} {session} {i}": pairs[i][session % 2] for i in orders[number][session]}
        values = {"keys": [*texts], "bodies": [*texts.values()], "left_out": [""]}
        with own.transaction():
            for statement in WRITES[write]:
                rows = own.execute(statement.encode(), values).fetchall()
                values["left_out"] = [key for (key,) in rows]
        return len(rows)

    check(connection, race(db.url, len(rounds), insert), len(rounds) * size * SESSIONS // 2)


@pytest.mark.parametrize("settings", sample(SETTINGS, 9))
def test_sorted_facts_and_a_locked_scope_end_in_no_deadlock(
    db: ts.Database, connection: Connection, rng: random.Random, settings: str
) -> None:
    """Agents write the same facts of one scope in any order, several in a transaction."""
    db.create_corpus("c", is_unique=True, scoped=True, **SETTINGS[settings])  # type: ignore[arg-type]
    facts = [twins(rng) for _ in range(10)]
    chosen = [[rng.sample(facts, 5) for _ in range(SESSIONS)] for _ in range(ROUNDS)]

    def insert(own: Connection, number: int, session: int) -> int:
        texts = [pair[session % 2] for pair in chosen[number][session]]
        with own.transaction():
            if number % 2:
                own.execute("SELECT textsim.lock_scope('c', 'anna')")
            else:
                texts.sort()
            rows = [
                own.execute(
                    "SELECT * FROM textsim.add_unique('c', %s, %s, 'anna')",
                    [f"{number} {session} {place}", text],
                ).rowcount
                for place, text in enumerate(texts)
            ]
        return rows.count(0)

    added = race(db.url, ROUNDS, insert)
    check(connection, added, len({fact[0] for each in chosen for some in each for fact in some}))


def test_a_locked_scope_leaves_other_scopes_alone(db: ts.Database, connection: Connection) -> None:
    db.create_corpus("c", is_unique=True, scoped=True)
    add = "SELECT textsim.add('c', %s, %s, %s)"
    with psycopg.connect(db.url) as holder:
        holder.execute("SELECT textsim.lock_scope('c', 'anna')")
        assert holder.execute(add, ["1", "a fact that anna knows", "anna"]).fetchall() == [(True,)]
        connection.execute("SET lock_timeout = '50ms'")
        assert value(connection, add, ["2", "a fact that anna knows", "ben"])
        with pytest.raises(psycopg.errors.LockNotAvailable):
            connection.execute(add, ["3", "another text", "anna"])
        holder.commit()
    assert value(connection, add, ["3", "another text", "anna"])
    db.create_corpus("d", is_unique=True)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="not scoped"):
        connection.execute("SELECT textsim.lock_scope('d', 'anna')")
