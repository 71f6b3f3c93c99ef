"""No statement brings twins into the table of a unique corpus, at random or by an attack."""

from __future__ import annotations

import random
from collections.abc import Callable

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.reference import similarity
from tests.support.sampling import sample
from tests.support.sources import expected_forms, stored_forms

pytestmark = pytest.mark.both_servers

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
    "delete and insert in one statement": [
        "INSERT INTO t VALUES (1, <A>)",
        "WITH gone AS (DELETE FROM t RETURNING id) INSERT INTO t SELECT id + 1, <A2> FROM gone",
        "INSERT INTO t VALUES (3, <A>)",
        "WITH gone AS (DELETE FROM t WHERE id = 1 RETURNING id) INSERT INTO t SELECT id, <B> FROM gone",
        "INSERT INTO t VALUES (2, <B2>)",
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
    "a trigger that deletes its row afterwards": [
        "CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql "
        "AS $$ BEGIN DELETE FROM t WHERE id = NEW.id; RETURN NULL; END $$",
        "CREATE TRIGGER aaa AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION change()",
        "INSERT INTO t VALUES (1, <B>)",
        "DROP TRIGGER aaa ON t",
        "INSERT INTO t VALUES (2, <B2>)",
        "INSERT INTO t VALUES (3, <B>)",
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
    "another name of a column": [
        "INSERT INTO t VALUES (1, <A>)",
        "ALTER TABLE t RENAME COLUMN body TO words",
        "INSERT INTO t VALUES (2, <A2>)",
        "ALTER TABLE t RENAME COLUMN words TO body",
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
MERGE = [
    "INSERT INTO t VALUES (1, <A>), (2, <B>)",
    "MERGE INTO t USING (VALUES (2::bigint, <C>), (3, <B2>)) s (id, body) ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET body = s.body "
    "WHEN NOT MATCHED THEN INSERT (id, body) VALUES (s.id, s.body)",
    "MERGE INTO t USING (VALUES (1::bigint, <C>), (4, <A2>)) s (id, body) ON t.id = s.id "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, body) VALUES (s.id, s.body)",
]


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


def test_merge_brings_no_twin_in(corpus: ts.Corpus, connection: Connection) -> None:
    if connection.info.server_version < 150000:
        pytest.skip("MERGE came with PostgreSQL 15")
    attach(connection, BIGINT)
    for statement in MERGE:
        attempt(connection, statement)
        check(connection)


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


def test_a_generated_column_is_checked(corpus: ts.Corpus, connection: Connection) -> None:
    attach(
        connection,
        "id bigint PRIMARY KEY, title text, body text GENERATED ALWAYS AS (title || '') STORED",
    )
    assert attempt(connection, "INSERT INTO t (id, title) VALUES (1, <A>)") is None
    assert attempt(connection, "INSERT INTO t (id, title) VALUES (2, <A2>)") == "23505"
    assert attempt(connection, "INSERT INTO t (id, title) VALUES (2, <B>)") is None
    assert attempt(connection, "UPDATE t SET title = <A2> WHERE id = 2") == "23505"
    check(connection)


# Statements at random

STATEMENTS = 120
# A trigger that changes a row of its own statement is left out: the row's event then has the old text.
LATER = """
CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.other = 1 THEN RETURN NULL; END IF;
    IF NEW.other = 2 THEN NEW.body := NEW.body || ' late'; END IF;
    IF NEW.other = 3 THEN NEW.id := NEW.id || 'x'; END IF;
    IF NEW.other = 4 THEN UPDATE t SET body = NEW.body WHERE id = 'fixed'; END IF;
    IF NEW.other = 5 THEN
        INSERT INTO t VALUES (NEW.id || 'y', NULL, NEW.body || ' inner', 0) ON CONFLICT DO NOTHING;
    END IF;
    IF NEW.other = 6 THEN DELETE FROM t WHERE id = 'fixed'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER z_later BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION later()
"""
CONFLICTS = (
    "",
    "ON CONFLICT DO NOTHING",
    "ON CONFLICT (id) DO NOTHING",
    "ON CONFLICT (email) DO NOTHING",
    "ON CONFLICT (id) DO UPDATE SET body = excluded.body",
    "ON CONFLICT (email) DO UPDATE SET body = excluded.body",
    "ON CONFLICT (email) DO UPDATE SET id = excluded.id, body = excluded.body",
    "ON CONFLICT (email) DO UPDATE SET other = 9 WHERE t.id < '4'",
)
REFUSALS = (pg.UniqueViolation, pg.CardinalityViolation, pg.TriggeredDataChangeViolation)


def body(rng: random.Random) -> str | None:
    """Return one of few texts, so that many match."""
    words = f"one two three four five six seven eight {rng.choice('abcd')} {rng.choice('abcd')}"
    return rng.choice([words, words, words, " ".join(rng.choices("efghij", k=6)), "", None])


def key(rng: random.Random) -> str:
    return str(rng.randrange(8))


def statement(rng: random.Random) -> tuple[str, list[object]]:
    """Return a statement with its parameters; most touch rows that exist."""
    kind = rng.choice(["insert"] * 5 + ["update", "key", "delete", "all"])
    if kind == "insert":
        rows = [
            [
                key(rng),
                rng.choice(["m", "n", None]),
                body(rng),
                rng.choice([0, 0, 0, 1, 2, 3, 4, 5, 6]),
            ]
            for _ in range(rng.randint(1, 4))
        ]
        values = ", ".join(["(%s, %s, %s, %s)"] * len(rows))
        parameters: list[object] = [field for row in rows for field in row]
        return f"INSERT INTO t VALUES {values} {rng.choice(CONFLICTS)}", parameters
    if kind == "update":
        return "UPDATE t SET body = %s WHERE id = %s", [body(rng), key(rng)]
    if kind == "key":
        return "UPDATE t SET id = %s WHERE id = %s", [key(rng), key(rng)]
    if kind == "delete":
        return "DELETE FROM t WHERE id = %s", [key(rng)]
    return "UPDATE t SET body = body || %s", [rng.choice([" k", " l"])]


def test_rows_and_documents_agree_after_every_statement(
    db: ts.Database, connection: Connection, rng: random.Random, seed: int
) -> None:
    db.create_corpus("c", shingle="word:1", threshold=0.7, recall=1, is_unique=True)
    connection.execute(
        "CREATE TABLE t (id text PRIMARY KEY, email text UNIQUE, body text, other int)"
    )
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
    connection.execute("INSERT INTO t VALUES ('fixed', NULL, 'a row that no statement inserts', 0)")
    connection.execute(LATER)
    done = refused = 0
    for number in range(STATEMENTS):
        text, parameters = statement(rng)
        try:
            with connection.transaction(force_rollback=rng.random() < 0.1):
                connection.execute(text.encode(), parameters)
        except REFUSALS:
            refused += 1
        else:
            done += 1
        context = f"--seed {seed}, statement {number}: {text} {parameters}"
        assert stored_forms(connection) == expected_forms(connection, "t"), context
        pairs = connection.execute("SELECT * FROM textsim.pairs('c')").fetchall()
        assert pairs == [], context
    assert done > 20
    assert refused > 5
