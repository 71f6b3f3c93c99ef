"""Unique corpora in SQL: add, add_unique, the buckets that a document locks, and attached tables."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, value
from tests.support.sources import expected_forms, stored_forms

COMMON = "one two three four five six seven eight nine ten"
RED, BLUE, OTHER = f"{COMMON} red", f"{COMMON} blue", "nothing that any other text in here contains"
ADD = "SELECT textsim.add('c', %s, %s)"
ADD_UNIQUE = "SELECT * FROM textsim.add_unique('c', %s, %s)"


@pytest.fixture(params=[1.0, pytest.param(0.95, marks=pytest.mark.more)], ids=["exact", "bands"])
def corpus(db: ts.Database, request: pytest.FixtureRequest) -> ts.Corpus:
    return db.create_corpus(
        "c", shingle="word:2", threshold=0.7, recall=request.param, is_unique=True
    )


def test_add_raises_the_error_of_a_unique_index(corpus: ts.Corpus, connection: Connection) -> None:
    assert value(connection, ADD, ["a", RED])
    with pytest.raises(pg.UniqueViolation) as raised:
        connection.execute(ADD, ["b", BLUE])
    diagnostics = raised.value.diag
    assert diagnostics.constraint_name == "c"
    assert (diagnostics.schema_name, diagnostics.table_name) == ("textsim", "document_1")
    assert diagnostics.message_primary == (
        'near-duplicate text violates unique corpus "c": document "b" matches document "a" '
        "with similarity 0.8181818181818182"
    )
    assert diagnostics.message_detail == (
        "Key (a) has similarity 0.8181818181818182; the threshold is 0.7."
    )
    assert stored_forms(connection) == {"a": RED}


def test_add_unique_returns_the_matches_best_first(
    corpus: ts.Corpus, connection: Connection
) -> None:
    for key, text, outcome in (
        ("a", RED, "new"),
        ("a", RED, "unchanged"),
        ("b", f"{OTHER} {COMMON}", "new"),
    ):
        rows = connection.execute(ADD_UNIQUE, [key, text]).fetchall()
        assert rows == [(outcome, None, None, None, None, None)]
    rows = connection.execute(ADD_UNIQUE, ["c", BLUE]).fetchall()
    assert rows == [("twin", "a", 9 / 11, [], None, None)]
    connection.execute("SELECT textsim.add('c', 'd', %s, force => true)", [BLUE])
    matches = connection.execute(ADD_UNIQUE, ["e", BLUE]).fetchall()
    assert matches == [("twin", "d", 1.0, [], None, None), ("twin", "a", 9 / 11, [], None, None)]
    assert list(stored_forms(connection)) == ["a", "b", "d"]
    with pytest.raises(pg.InvalidParameterValue, match="the text is NULL"):
        connection.execute(ADD_UNIQUE, ["f", None])


def test_a_document_of_another_language_is_a_twin(db: ts.Database, connection: Connection) -> None:
    db.create_corpus(
        "c", shingle="word:2", threshold=0.7, recall=1, language="auto", is_unique=True
    )
    connection.execute(ADD, ["a", RED])
    connection.execute("UPDATE textsim.document_1 SET language = 'xx'")
    with pytest.raises(pg.UniqueViolation):
        connection.execute(ADD, ["b", BLUE])


def test_only_unique_corpora_have_these_functions(db: ts.Database, connection: Connection) -> None:
    db.create_corpus("c")
    for call in (
        "textsim.add_unique('c', 'a', 'a')",
        "textsim.lock_corpus('c')",
        "textsim.twins_of('c', ARRAY['a'], ARRAY['b'])",
    ):
        with pytest.raises(pg.ObjectNotInPrerequisiteState, match='corpus "c" is not unique'):
            connection.execute(f"SELECT {call}".encode())
    connection.execute(TABLE.encode())
    with pytest.raises(pg.FeatureNotSupported, match='corpus "c" is not unique'):
        connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', existing => 'keep')")
    with pytest.raises(pg.UndefinedObject, match='corpus "d" does not exist'):
        connection.execute("SELECT textsim.lock_corpus('d')")


def test_the_number_of_locks_is_a_setting(corpus: ts.Corpus, connection: Connection) -> None:
    connection.execute("SET textsim.max_bucket_locks = 'many'")
    with pytest.raises(pg.InvalidTextRepresentation, match='for type integer: "many"'):
        connection.execute(ADD, ["a", RED])
    connection.execute("SET textsim.max_bucket_locks = 0")
    assert value(connection, ADD, ["a", RED])
    connection.execute("RESET textsim.max_bucket_locks")
    assert value(connection, ADD, ["b", OTHER])


def test_a_document_locks_two_rows_less_than_it_has(shared_connection: Connection) -> None:
    """n - o + 1 locks, where o is the smallest number with o / n >= threshold."""
    for threshold in (0.05, 0.3, 0.55, 0.7, 0.8, 0.9, 1.0):
        rows = shared_connection.execute(
            "SELECT n, cardinality(textsim._buckets_to_lock("
            "    c, array(SELECT generate_series(1, n)), n, NULL)) FROM generate_series(0, 300) n, "
            "jsonb_populate_record(NULL::textsim.corpus, jsonb_build_object('threshold', %s::float8)) c",
            [threshold],
        ).fetchall()
        for n, locks in rows:
            overlap = next((o for o in range(1, n + 1) if o / n >= threshold), 1)
            assert locks == (n - overlap + 1 if n else 0), threshold


TABLE = "CREATE TABLE t (id text PRIMARY KEY, email text UNIQUE, body text, other int)"

Attach = Callable[..., None]


@pytest.fixture
def attach(corpus: ts.Corpus, connection: Connection) -> Attach:
    """A function that creates the table with some rows, and attaches it."""

    def create(rows: str = "", **arguments: str) -> None:
        connection.execute(TABLE.encode())
        if rows:
            connection.execute(f"INSERT INTO t VALUES {rows}".encode())
        names = "".join(f", {name} => '{text}'" for name, text in arguments.items())
        connection.execute(f"SELECT textsim.attach('c', 't', 'id', 'body'{names})".encode())

    return create


def keys(connection: Connection) -> list[str]:
    """Return the keys of the table, after comparing its rows with the documents."""
    forms = expected_forms(connection, "t")
    assert stored_forms(connection) == forms
    return sorted(forms)


# Attaching


TWINS = f"('a', NULL, '{RED}'), ('b', NULL, '{BLUE}'), ('c', NULL, '{OTHER}')"


def test_attach_refuses_rows_that_match(
    attach: Attach, corpus: ts.Corpus, connection: Connection
) -> None:
    connection.execute("SELECT textsim.add('c', 'old', %s)", [OTHER])
    with pytest.raises(
        pg.UniqueViolation, match=r"2 rows of table public\.t match other rows"
    ) as raised:
        attach(rows=TWINS)
    assert raised.value.diag.constraint_name == "c"
    assert raised.value.diag.message_detail == (
        '"b" and "a" (similarity 0.8181818181818182), "c" and "old" (similarity 1)'
    )
    assert connection.execute("SELECT FROM textsim.sources").fetchall() == []
    assert stored_forms(connection) == {"old": OTHER}


def test_attach_keeps_rows_that_match(attach: Attach, connection: Connection) -> None:
    notices: list[tuple[str | None, str | None]] = []
    # The diagnostics are gone when the handler returns.
    connection.add_notice_handler(
        lambda notice: notices.append((notice.severity_nonlocalized, notice.message_detail))
    )
    attach(rows=TWINS, existing="keep")
    assert notices == [("WARNING", '"b" and "a" (similarity 0.8181818181818182)')]
    assert keys(connection) == ["a", "b", "c"]
    with pytest.raises(pg.UniqueViolation, match=r"matches document") as raised:
        connection.execute("INSERT INTO t VALUES ('d', NULL, %s)", [RED])
    assert str(raised.value.diag.message_detail).endswith(" 2 documents match.")
    # A row that stands may change, unless it becomes the twin of a third row.
    connection.execute("UPDATE t SET body = 'some words of its own' WHERE id = 'b'")
    assert keys(connection) == ["a", "b", "c"]


def test_a_table_is_attached_again(attach: Attach, connection: Connection) -> None:
    """Rows that changed meanwhile are indexed, and not compared with the old documents."""
    attach()
    connection.execute("INSERT INTO t VALUES ('a', NULL, %s), ('b', NULL, %s)", [RED, OTHER])
    connection.execute("SELECT textsim.detach('c', 't')")
    connection.execute("UPDATE t SET body = CASE id WHEN 'a' THEN %s ELSE %s END", [OTHER, BLUE])
    connection.execute("INSERT INTO t VALUES ('c', NULL, 'some more words')")
    connection.execute("SELECT textsim.attach('c', 't', 'id', 'body')")
    assert keys(connection) == ["a", "b", "c"]
    with pytest.raises(pg.UniqueViolation, match='document "d" matches document "b"'):
        connection.execute("INSERT INTO t VALUES ('d', NULL, %s)", [RED])


def test_attach_refuses(corpus: ts.Corpus, connection: Connection) -> None:
    for table, arguments, message in (
        (TABLE, ", mode => 'queue'", "unique.* use mode inline"),
        (TABLE, ", existing => NULL", "expected refuse or keep"),
        (TABLE.replace("TABLE", "UNLOGGED TABLE"), "", "unlogged"),
        (TABLE.replace("PRIMARY KEY", "PRIMARY KEY DEFERRABLE"), "", "deferrable"),
    ):
        connection.execute(table.encode())
        call = f"SELECT textsim.attach('c', 't', 'id', 'body'{arguments})"
        with pytest.raises(psycopg.Error, match=message):
            connection.execute(call.encode())
        connection.execute("DROP TABLE t")
