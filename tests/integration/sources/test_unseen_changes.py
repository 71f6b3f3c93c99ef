"""Changes that bypass triggers: partitions, dropped, altered and crashed tables, disabled triggers.

After such changes documents would match whose rows are deleted. A worker, reconcile and index_pending
each mend that; until then status and check report the change.
"""

from __future__ import annotations

from typing import LiteralString, NamedTuple

import psycopg
import pytest

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.sources import Mender, in_both_modes, mending, text_of
from textsim_db.db.engine import autocommit
from textsim_db.settings.named_values import ModeName
from textsim_db.sync import read_source

ROWS = 40
FIRST_LATE = 100
"""First key of the partition that is created after the table was attached."""


def insert_rows(connection: Connection, first: int = 0, rows: int = ROWS) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO t VALUES (%s, %s)", [(i, text_of(i)) for i in range(first, first + rows)]
        )


def make_table(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
    insert_rows(connection)


def make_partitions(
    db: ts.Database, connection: Connection, corpus: ts.Corpus, mode: ModeName
) -> None:
    """Attach a partitioned table, then create and fill the partition t_late."""
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text) PARTITION BY RANGE (id)")
    connection.execute("CREATE TABLE t_early PARTITION OF t FOR VALUES FROM (0) TO (100)")
    insert_rows(connection)
    corpus.attach("t", "id", "body", mode)
    connection.execute("CREATE TABLE t_late PARTITION OF t FOR VALUES FROM (100) TO (200)")
    insert_rows(connection, FIRST_LATE)
    db.worker().run(until_idle=True)
    assert len(corpus) == 2 * ROWS


def check_equal(corpus: ts.Corpus, keys: set[int]) -> None:
    """Assert that a corpus has the documents of these keys, and that no problem is reported."""
    assert {int(key) for key in stored_keys(corpus)} == keys
    assert list(corpus.drift()) == []
    assert corpus.check() == []
    assert corpus.status().problems == []


def stored_keys(corpus: ts.Corpus) -> list[str]:
    with autocommit(corpus._current.store.engine) as connection:
        return [key for (key,) in connection.execute("SELECT key FROM textsim.document_1")]


def check_noted(corpus: ts.Corpus) -> None:
    """Assert that status has a note of the table, and that nothing calls it a problem."""
    status = corpus.status()
    assert ["triggers miss" in each for each in status.notes] == [True]
    details = [*status.problems, *(problem.detail for problem in corpus.check())]
    assert not any("triggers miss" in each for each in details)


@in_both_modes
def test_a_table_with_another_file_is_no_problem(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, textsim: Textsim, mode: ModeName
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body", mode)
    db.worker().run(until_idle=True)
    for statement in ("VACUUM FULL t", "CLUSTER t USING t_pkey"):
        connection.execute(statement.encode())
        check_noted(corpus)
        assert (corpus.check(), corpus.status().problems) == ([], [])
        for command in ("check", "status"):
            assert "triggers miss" in " ".join(textsim(command, status=0).output.split())
    db.worker().run(until_idle=True)
    assert corpus.status().notes == []


@in_both_modes
def test_a_name_that_belongs_to_another_table_is_reported(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: ModeName
) -> None:
    make_table(connection)
    corpus.attach("t", "id", "body", mode)
    db.worker().run(until_idle=True)
    connection.execute("ALTER TABLE t RENAME TO before")
    assert not any("attached as" in each for each in corpus.status().problems)
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
    check_reported(
        corpus, 'it was attached as "public.t", and this name now belongs to another table'
    )
    connection.execute("DROP TABLE before")
    check_reported(
        corpus, 'it was attached as "public.t", and this name now belongs to another table'
    )
    db.worker().run(until_idle=True)
    (problem,) = corpus.status().problems
    assert problem.startswith("table public.t: it is not indexed, although it has the name of")
    for _ in range(2):  # detached by its user, it is no problem any more
        corpus.attach("t", "id", "body", mode)
        assert corpus.status().problems == []
        corpus.detach("t")
        connection.execute("DROP TABLE t")
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
        assert corpus.status().problems == []


def check_reported(corpus: ts.Corpus, message: str) -> None:
    """Assert that both status and check report a problem of the table."""
    assert any(message in problem for problem in corpus.status().problems)
    assert any(message in problem.detail for problem in corpus.check())


@pytest.mark.parametrize(
    "statement", ["DROP TABLE t_late", "ALTER TABLE t DETACH PARTITION t_late"]
)
def test_only_the_keys_of_a_lost_partition_are_logged(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, statement: LiteralString
) -> None:
    """A new partition in its place is logged too, and a changed table is compared as a whole."""
    make_partitions(db, connection, corpus, "queue")
    connection.execute(statement)
    connection.execute("CREATE TABLE t_other PARTITION OF t FOR VALUES FROM (200) TO (300)")
    connection.execute("INSERT INTO t VALUES (200, 'a row of a new partition')")
    connection.execute("DELETE FROM textsim.pending")
    connection.execute("SELECT textsim._compare_changed(id) FROM textsim.source")
    logged = connection.execute("SELECT keys FROM textsim.pending ORDER BY id").fetchall()
    late = [str(i) for i in range(FIRST_LATE, FIRST_LATE + ROWS)]
    assert [sorted(keys) for (keys,) in logged] == [["200"], late]
    connection.execute("ALTER TABLE t DETACH PARTITION t_other")
    connection.execute("TRUNCATE t_early")
    connection.execute("SELECT textsim._compare_changed(id) FROM textsim.source")
    last = connection.execute("SELECT kind, keys FROM textsim.pending ORDER BY id DESC LIMIT 1")
    assert last.fetchone() == ("compare", None)
    db.worker().run(until_idle=True)
    check_equal(corpus, set())


@pytest.mark.sampled
@mending
@in_both_modes
def test_rows_inserted_with_disabled_triggers_while_attaching_are_indexed(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: str, mend: Mender
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
    with connection.transaction():
        connection.execute("SELECT textsim.attach('c', 't', 'id', 'body', %s)", [mode])
        connection.execute("ALTER TABLE t DISABLE TRIGGER USER")
        insert_rows(connection)
        connection.execute("ALTER TABLE t ENABLE TRIGGER USER")
    mend(db, corpus, connection)
    check_equal(corpus, set(range(ROWS)))


@in_both_modes
def test_columns_that_exchange_their_names_are_reported_or_indexed(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, mode: ModeName
) -> None:
    """A trigger for rows belongs to the old column; a trigger for statements finds the new one."""
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text, title text)")
    connection.execute("INSERT INTO t VALUES (1, 'a text', 'a title')")
    corpus.attach("t", "id", "body", mode)
    connection.execute("ALTER TABLE t RENAME body TO old")
    connection.execute("ALTER TABLE t RENAME title TO body")
    if mode == "inline":
        check_reported(corpus, 'its column "body" is not the column that was attached')
    else:
        check_noted(corpus)
    db.worker().run(until_idle=True)
    assert list(corpus.drift()) == []
    if mode == "queue":
        connection.execute("UPDATE t SET body = 'another title'")
        assert corpus.status().pending == 1
        db.worker().run(until_idle=True)
        assert list(corpus.drift()) == []


def test_a_locked_new_partition_does_not_stop_a_worker(
    db: ts.Database,
    corpus: ts.Corpus,
    connection: Connection,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker skips the table, and goes on with another table."""
    monkeypatch.setattr(read_source, "READING_PATIENCE", "100ms")
    make_partitions(db, connection, corpus, "queue")
    connection.execute("CREATE TABLE other (id bigint PRIMARY KEY, body text)")
    db.create_corpus("other").attach("other", "id", "body")
    with psycopg.connect(database_url) as holder:
        connection.execute("CREATE TABLE t_next PARTITION OF t FOR VALUES FROM (200) TO (300)")
        insert_rows(connection, 200, 3)
        holder.execute("LOCK TABLE t_next")
        connection.execute("INSERT INTO other VALUES (1, 'a row of another table')")
        db.worker().run(until_idle=True)
        assert len(db.corpus("other")) == 1
        holder.rollback()
    db.worker(lease=0.1).run(until_idle=True)
    corpus.reconcile()
    check_equal(corpus, {*range(ROWS), *range(100, 100 + ROWS), 200, 201, 202})


class Alteration(NamedTuple):
    """A change of a table."""

    statement: str
    problem: str | None = None
    """A part of the problem that status reports; None if it reports no problem."""
    error: str | None = None
    """The SQLSTATE of a write after the change; None if writes succeed."""
    way_out: str = ""
    """SQL that mends the table."""
    table: str = "post"
    columns: str = "id, body"


ALTERED = [
    Alteration(
        "ALTER TABLE post RENAME body TO content",
        'its column "body" is now named "content", and writes to the table fail',
        error="42703",
        way_out="SELECT textsim.attach('news', 'post', 'id', 'content', replace => true)",
        columns="id, content",
    ),
    Alteration(
        "ALTER TABLE post RENAME id TO number",
        'its column "id" is now named "number", and writes to the table fail',
        error="42703",
        way_out="SELECT textsim.attach('news', 'post', 'number', 'body', replace => true)",
        columns="number, body",
    ),
    Alteration(
        'ALTER TABLE post RENAME id TO "my id"; ALTER TABLE post RENAME body TO "The Text"',
        'is now named "my id"',
        error="42703",
        way_out="SELECT textsim.attach('news', 'post', 'my id', 'The Text', replace => true)",
        columns='"my id", "The Text"',
    ),
    Alteration("ALTER TABLE post RENAME TO letter", table="letter"),
    Alteration("CREATE SCHEMA old; ALTER TABLE post SET SCHEMA old", table="old.post"),
    Alteration(
        "ALTER TABLE post DROP COLUMN body CASCADE; ALTER TABLE post ADD COLUMN body text",
        "detach the table and attach it again",
        way_out="SELECT textsim.detach('news', 'post'); "
        "SELECT textsim.attach('news', 'post', 'id', 'body')",
    ),
    Alteration(
        "ALTER TABLE post DROP CONSTRAINT post_pkey; ALTER TABLE post ALTER id DROP NOT NULL",
        'its column "id" may be NULL',
        way_out="ALTER TABLE post ADD PRIMARY KEY (id)",
    ),
    Alteration(
        "ALTER TABLE post SET UNLOGGED", "it is unlogged", way_out="ALTER TABLE post SET LOGGED"
    ),
    Alteration(
        "ALTER TABLE post DISABLE TRIGGER ALL",
        "is disabled: changes are missed until ALTER TABLE",
        way_out="ALTER TABLE post ENABLE TRIGGER ALL",
    ),
    Alteration("ALTER TABLE post OWNER TO pg_database_owner"),
    Alteration("ALTER TABLE post ENABLE ROW LEVEL SECURITY"),
    Alteration("ALTER TABLE post ADD COLUMN more text DEFAULT 'x' NOT NULL"),
    Alteration(
        "CREATE TABLE parent (id integer PRIMARY KEY, body text) PARTITION BY RANGE (id); "
        "ALTER TABLE parent ATTACH PARTITION post FOR VALUES FROM (0) TO (1000)",
        "it has become a partition: changes through its parent are missed; detach it and attach it",
        way_out="SELECT textsim.detach('news', 'post'); "
        "SELECT textsim.attach('news', 'post', 'id', 'body')",
    ),
]


@pytest.fixture
def news(db: ts.Database, connection: Connection) -> ts.Corpus:
    connection.execute("CREATE TABLE post (id integer PRIMARY KEY, body text)")
    connection.execute(
        "INSERT INTO post SELECT i, 'text number ' || i FROM generate_series(1, 9) i"
    )
    corpus = db.create_corpus("news")
    corpus.attach("post", "id", "body")
    return corpus


def run(connection: Connection, statements: str) -> None:
    for statement in statements.split("; "):
        connection.execute(statement.encode())


@pytest.mark.parametrize(
    "altered", sample(ALTERED, 3, "more"), ids=lambda each: each.statement[:50]
)
def test_an_altered_table_is_indexed_or_named_with_a_way_out(
    db: ts.Database, connection: Connection, news: ts.Corpus, altered: Alteration
) -> None:
    run(connection, altered.statement)
    problems = " ".join(news.status().problems)
    assert (altered.problem or "") in problems
    assert bool(problems) == (altered.problem is not None), problems
    insert = (
        f"INSERT INTO {altered.table} ({altered.columns}) VALUES (10, 'one more text of a row')"
    )
    if altered.error is not None:
        with pytest.raises(psycopg.Error) as raised:
            connection.execute(insert.encode())
        assert raised.value.sqlstate == altered.error
    run(connection, altered.way_out or "SELECT 1")
    connection.execute(insert.encode())
    db.worker().run(until_idle=True)
    assert news.status().problems == []
    assert "10" in news
    assert news.check() == []
    assert list(news.drift()) == []


def test_the_server_refuses_to_change_the_columns(connection: Connection, news: ts.Corpus) -> None:
    for change in (
        "DROP COLUMN body",
        "DROP COLUMN id",
        "ALTER body TYPE varchar(100)",
        "ALTER id TYPE bigint",
    ):
        with pytest.raises(psycopg.Error) as raised:
            connection.execute(f"ALTER TABLE post {change}".encode())
        assert raised.value.sqlstate in ("2BP01", "0A000"), change
    assert news.status().problems == []
