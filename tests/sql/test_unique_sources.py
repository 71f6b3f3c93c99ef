"""Tables that are attached to a unique corpus: what happens to a row that matches another."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sources import expected_forms, stored_forms

pytestmark = pytest.mark.both_servers

COMMON = "one two three four five six seven eight nine ten"
RED, BLUE, OTHER = f"{COMMON} red", f"{COMMON} blue", "nothing that any other text in here contains"
TABLE = "CREATE TABLE t (id text PRIMARY KEY, email text UNIQUE, body text, other int)"

Attach = Callable[..., None]


@pytest.fixture(params=[1.0, pytest.param(0.95, marks=pytest.mark.more)], ids=["exact", "bands"])
def corpus(db: ts.Database, request: pytest.FixtureRequest) -> ts.Corpus:
    return db.create_corpus(
        "c", shingle="word:2", threshold=0.7, recall=request.param, is_unique=True
    )


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


def test_rows_that_match_no_other_are_indexed_at_once(
    attach: Attach, connection: Connection
) -> None:
    attach()
    connection.execute("INSERT INTO t VALUES ('a', NULL, %s), ('b', NULL, %s)", [RED, OTHER])
    connection.execute("INSERT INTO t VALUES ('c', NULL, NULL), ('d', NULL, ''), ('e', NULL, '!')")
    assert keys(connection) == ["a", "b", "d", "e"]
    connection.execute("UPDATE t SET body = %s WHERE id = 'a'", [BLUE])
    connection.execute("UPDATE t SET id = 'z' WHERE id = 'a'")
    connection.execute("DELETE FROM t WHERE id = 'b'")
    assert keys(connection) == ["d", "e", "z"]
    connection.execute("TRUNCATE t")
    assert keys(connection) == []
    connection.execute("INSERT INTO t VALUES ('a', NULL, %s)", [RED])
    assert keys(connection) == ["a"]


def test_error_names_the_table_the_corpus_and_the_standing_row(
    attach: Attach, connection: Connection
) -> None:
    attach()
    connection.execute("INSERT INTO t VALUES ('a', NULL, %s)", [RED])
    with pytest.raises(pg.UniqueViolation) as raised:
        connection.execute("INSERT INTO t VALUES ('b', NULL, %s)", [BLUE])
    diagnostics = raised.value.diag
    assert diagnostics.constraint_name == "c"
    assert (diagnostics.schema_name, diagnostics.table_name) == ("public", "t")
    assert diagnostics.message_primary == (
        'near-duplicate text violates unique corpus "c": document "b" matches document "a" '
        "with similarity 0.8181818181818182"
    )
    assert diagnostics.message_detail == (
        "Key (a) has similarity 0.8181818181818182; the threshold is 0.7."
    )
    assert keys(connection) == ["a"]


def test_a_row_is_not_compared_with_itself(attach: Attach, connection: Connection) -> None:
    attach()
    connection.execute("INSERT INTO t VALUES ('a', 'a', %s)", [RED])
    connection.execute("UPDATE t SET body = %s, id = 'b'", [BLUE])
    upsert = (
        "INSERT INTO t VALUES ('b', 'x', %s) ON CONFLICT (id) DO UPDATE SET body = excluded.body"
    )
    connection.execute(upsert, [RED])
    assert keys(connection) == ["b"]
    assert stored_forms(connection) == {"b": RED}


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


@pytest.mark.parametrize(
    ("table", "arguments", "error", "message"),
    [
        (TABLE, "mode => 'queue'", pg.FeatureNotSupported, "unique.* use mode inline"),
        (TABLE, "existing => NULL", pg.InvalidParameterValue, 'expected "refuse" or "keep"'),
        (
            "CREATE TABLE whole (id text PRIMARY KEY, body text) PARTITION BY HASH (id);"
            "CREATE TABLE t PARTITION OF whole FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
            "",
            pg.FeatureNotSupported,
            "it is a partition, and the corpus is unique; attach the partitioned table",
        ),
        (TABLE.replace("TABLE", "UNLOGGED TABLE"), "", pg.FeatureNotSupported, "unlogged"),
        (
            TABLE.replace("PRIMARY KEY", "PRIMARY KEY DEFERRABLE"),
            "",
            pg.FeatureNotSupported,
            "deferrable",
        ),
        (
            TABLE + "; ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
            "",
            pg.FeatureNotSupported,
            "row security",
        ),
    ],
)
def test_attach_refuses(
    corpus: ts.Corpus,
    connection: Connection,
    table: str,
    arguments: str,
    error: type[psycopg.Error],
    message: str,
) -> None:
    if "SECURITY" in table:
        owner = f"owner_of_{connection.info.dbname}"
        connection.execute(
            f"CREATE ROLE {owner}; GRANT CREATE, USAGE ON SCHEMA public TO {owner}; "
            f"SELECT textsim.grant_writer('{owner}'); SET ROLE {owner}".encode()
        )
    try:
        connection.execute(table.encode())
        comma = ", " if arguments else ""
        with pytest.raises(error, match=message):
            connection.execute(
                f"SELECT textsim.attach('c', 't', 'id', 'body'{comma}{arguments})".encode()
            )
    finally:
        connection.execute("RESET ROLE")
        if "SECURITY" in table:
            connection.execute(f"DROP OWNED BY {owner}; DROP ROLE {owner}".encode())


def test_a_corpus_that_is_not_unique_keeps_no_twins(
    db: ts.Database, connection: Connection
) -> None:
    db.create_corpus("c")
    connection.execute(TABLE.encode())
    with pytest.raises(pg.FeatureNotSupported, match='corpus "c" is not unique'):
        connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', existing => 'keep')")


def test_two_tables_exclude_each_other(attach: Attach, connection: Connection) -> None:
    attach()
    connection.execute("CREATE TABLE u (id text PRIMARY KEY, body text)")
    connection.execute("SELECT textsim.attach('c', 'u', 'id', 'body')")
    connection.execute("INSERT INTO t VALUES ('a', NULL, %s)", [RED])
    with pytest.raises(pg.UniqueViolation, match='document "b" matches document "a"'):
        connection.execute("INSERT INTO u VALUES ('b', %s)", [BLUE])
    with pytest.raises(pg.UniqueViolation, match=r'document "a" from table public\.t already'):
        connection.execute("INSERT INTO u VALUES ('a', %s)", [OTHER])
    with pytest.raises(pg.UniqueViolation, match='document "n" matches document "a"'):
        connection.execute("SELECT textsim.add('c', 'n', %s)", [BLUE])


def test_index_pending_sets_twins_aside(attach: Attach, connection: Connection) -> None:
    """Rows that triggers did not see are compared later; their twins are listed, and not indexed."""
    attach()
    connection.execute("INSERT INTO t VALUES ('a', NULL, %s)", [RED])
    connection.execute("ALTER TABLE t DISABLE TRIGGER USER")
    connection.execute("INSERT INTO t VALUES ('b', NULL, %s), ('c', NULL, %s)", [BLUE, OTHER])
    connection.execute("ALTER TABLE t ENABLE TRIGGER USER")
    connection.execute("CALL textsim.index_pending('c')")
    assert stored_forms(connection) == {"a": RED, "c": OTHER}
    assert connection.execute(
        "SELECT keys, error FROM textsim.pending WHERE error IS NOT NULL"
    ).fetchall() == [
        (
            ["b"],
            'it matches document "a" with similarity 0.8181818181818182, and the corpus is unique',
        )
    ]
