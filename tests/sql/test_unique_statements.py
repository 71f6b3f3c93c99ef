"""Random statements on a table of a unique corpus: rows and documents agree, and no two rows match."""

from __future__ import annotations

import random

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sources import expected_forms, stored_forms

pytestmark = pytest.mark.both_servers

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
