"""No statement brings twins into the table of a unique corpus."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.reference import similarity
from tests.support.sampling import sample
from tests.support.sources import expected_forms, stored_forms

A = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu"
B = "one two three four five six seven eight nine ten eleven twelve"
C = "red orange yellow green blue indigo violet black white grey brown pink"
TEXTS = {"A": f"'{A}'", "A2": f"'{A} nu'", "B": f"'{B}'", "B2": f"'{B} thirteen'", "C": f"'{C}'"}
"""A2 matches A, and B2 matches B."""
THRESHOLD = 0.8
BIGINT = "id bigint PRIMARY KEY, body text, other integer"


def attach(connection: Connection, columns: str) -> None:
    """Create a table and attach it to the corpus."""
    connection.execute(f"CREATE TABLE t ({columns})".encode())
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")


def attempt(connection: Connection, statement: str) -> str | None:
    """Run a statement, and return the SQLSTATE of its error."""
    for name, text in TEXTS.items():
        statement = statement.replace(f"<{name}>", text)
    try:
        connection.execute(statement.encode())
    except psycopg.Error as error:
        return error.sqlstate
    return None


def matching_rows(connection: Connection) -> list[tuple[str, str]]:
    """Return the rows that match each other, by brute force."""
    rows = connection.execute("SELECT id::text, body FROM t WHERE body IS NOT NULL").fetchall()
    return [
        (a, b)
        for i, (a, one) in enumerate(rows)
        for b, other in rows[:i]
        if similarity(one, other) >= THRESHOLD
    ]


ATTACKS: dict[str, list[str]] = {
    "two inserts of one statement": [
        "WITH one AS (INSERT INTO t VALUES (1, <A>) RETURNING id) INSERT INTO t VALUES (2, <A2>)",
        "WITH one AS (INSERT INTO t VALUES (3, <B>) RETURNING id) "
        "INSERT INTO t VALUES (3, <C>) ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (5, <B2>)",
    ],
    "a stable function": [
        "CREATE FUNCTION put(key text, body text) RETURNS boolean LANGUAGE plpgsql STABLE "
        "AS $$ BEGIN RETURN textsim.add('c', key, body); END $$",
        "INSERT INTO t VALUES (1, <A>)",
        "SELECT put('s', <A2>)",
        "SELECT put('s', <B>), put('r', <B2>)",
    ],
    "add for the key of a row": [
        "INSERT INTO t VALUES (1, <A>)",
        "SELECT textsim.add('c', '1', <B>)",
        "SELECT textsim.remove('c', '1')",
        "INSERT INTO t VALUES (2, <A2>)",
    ],
    "a trigger that changes its row afterwards": [
        "CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql "
        "AS $$ BEGIN UPDATE t SET body = <A2> WHERE id = NEW.id AND body <> <A2>; RETURN NULL; END $$",
        "CREATE TRIGGER aaa AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION change()",
        "INSERT INTO t VALUES (1, <B>)",
        "DROP TRIGGER aaa ON t",
        "INSERT INTO t VALUES (2, <A>)",
        "INSERT INTO t VALUES (3, <B>)",
        "INSERT INTO t VALUES (4, <B2>)",
    ],
    "settings of a user": [
        "INSERT INTO t VALUES (1, <A>)",
        "SET textsim.bucket_locks = -100",
        "INSERT INTO t VALUES (2, <A2>)",
        "SET textsim.bucket_locks = 2147483640",
        "INSERT INTO t VALUES (2, <A2>)",
        "SET textsim.max_bucket_locks = 0",
        "INSERT INTO t VALUES (2, <A2>)",
        "SET plan_cache_mode = force_custom_plan",
        "SET enable_indexscan = off",
        "SET debug_parallel_query = on",
        "SET search_path = pg_temp",
        "INSERT INTO public.t VALUES (2, <A2>)",
        "RESET ALL",
    ],
    "a foreign key that cascades": [
        "CREATE TABLE owner (id bigint PRIMARY KEY)",
        "INSERT INTO owner VALUES (1), (2), (3)",
        "ALTER TABLE t ADD FOREIGN KEY (id) REFERENCES owner ON DELETE CASCADE ON UPDATE CASCADE",
        "INSERT INTO t VALUES (1, <A>), (2, <B>)",
        "DELETE FROM owner WHERE id = 1",
        "INSERT INTO t VALUES (3, <A2>)",
        "UPDATE owner SET id = 7 WHERE id = 3",
        "INSERT INTO owner VALUES (3)",
        "INSERT INTO t VALUES (3, <A>)",
    ],
    "a table that becomes a partition": [
        "INSERT INTO t VALUES (1, <A>)",
        "CREATE TABLE p (id bigint NOT NULL, body text, other integer) PARTITION BY RANGE (id)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200)",
        "ALTER TABLE p ATTACH PARTITION t FOR VALUES FROM (0) TO (100)",
        "INSERT INTO p VALUES (2, <A2>)",
        "INSERT INTO p VALUES (1, <B>) ON CONFLICT DO NOTHING",
        "INSERT INTO p VALUES (102, <A2>)",
        "UPDATE p SET id = 3 WHERE id = 102",
        "UPDATE p SET id = 103 WHERE id = 1",
        "INSERT INTO p VALUES (4, <A>)",
    ],
}


@pytest.fixture
def corpus(db: ts.Database) -> ts.Corpus:
    """A unique, exact corpus."""
    return db.create_corpus("c", threshold=THRESHOLD, recall=1.0, is_unique=True)


def check(connection: Connection) -> None:
    """Assert that no rows match, and that the documents of the table are its rows."""
    assert matching_rows(connection) == []
    stored = {key: form for key, form in stored_forms(connection).items() if key.isdigit()}
    assert stored == expected_forms(connection, "t")


@pytest.mark.parametrize("name", sample(ATTACKS, 3, "more"))
def test_no_statement_brings_a_twin_in(
    corpus: ts.Corpus, connection: Connection, name: str
) -> None:
    attach(connection, BIGINT)
    for statement in ATTACKS[name]:
        attempt(connection, statement)
    check(connection)
    # A table that becomes a partition is reported, and is no fault of its documents.
    assert [problem for problem in corpus.check() if problem.kind != "attached table"] == []


def test_a_key_too_long_to_index_is_refused(corpus: ts.Corpus, connection: Connection) -> None:
    attach(connection, "id text PRIMARY KEY, body text")
    assert attempt(connection, "INSERT INTO t VALUES ('1', <A>)") is None
    for statement in (
        "INSERT INTO t VALUES (repeat('k', 1001), <B>)",
        "UPDATE t SET id = repeat('k', 1001)",
    ):
        assert attempt(connection, statement) == "22023"
        check(connection)


def test_python_leaves_the_documents_of_a_table_alone(
    corpus: ts.Corpus, connection: Connection
) -> None:
    attach(connection, BIGINT)
    attempt(connection, "INSERT INTO t VALUES (1, <A>)")
    writes: list[Callable[[], object]] = [
        lambda: corpus.add("1", B),
        lambda: corpus.add_unique("1", B),
        lambda: corpus.add_many({"1": B, "2": C}),
        lambda: corpus.remove(["1"]),
    ]
    for write in writes:
        with pytest.raises(ts.DatabaseError, match='document "1" of unique corpus "c" belongs to'):
            write()
    assert corpus.add_many({"1": A}).unchanged == 1
    check(connection)
    assert list(stored_forms(connection)) == ["1"]
