"""Updates of clusters and statements over the log read few rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import cycle
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import Connection
from tests.support.waiting import wait_for
from textsim_db.db import stored_corpus
from textsim_db.settings.named_values import Verdict
from textsim_db.sync import statements

READ = """
SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)
FROM pg_class c
WHERE c.relnamespace = 'textsim'::regnamespace
    AND c.relname ~ '^(word|(document|node|band|match|member|cluster)_1)(_|$)'
"""

TEXT = " ".join(f"word{number}" for number in range(30))


@pytest.mark.more
@pytest.mark.parametrize("is_judged", [False, True])
def test_an_update_for_one_document_reads_few_rows(
    db: ts.Database, connection: Connection, is_judged: bool
) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(documents(8_000, words=40, planted=0.1, seed=1))
    corpus.track()
    corpus.update_clusters()
    pairs = [pair[:2] for pair in corpus.pairs()][:100]
    if is_judged:
        for pair, verdict in zip(pairs, cycle((Verdict.DIFFERENT, Verdict.SAME)), strict=False):
            corpus.judge(*pair, verdict)
        corpus.update_clusters()
    for number in range(8):  # plans change after five executions
        corpus.add(f"new {number}", f"a text of its own, number {number}, without any match")
        corpus.add(f"near {number}", f"{TEXT} {number}")
        corpus.add(pairs[number][0], f"this one was judged, and has the new text {number}")
        with connection.transaction():
            connection.execute("SELECT textsim._update_clusters('c')")
            (read,) = connection.execute(READ).fetchone() or (0,)
        print(f"{read} rows and entries of indexes were read")
        assert 0 < read < 4_000


@pytest.mark.parametrize("statement", ["REMOVE_MATCHES_WITHOUT_NODES", "LOG_UNSEEN"])
def test_more_nodes_than_fit_into_memory_are_looked_up(
    db: ts.Database, connection: Connection, statement: str
) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(documents(5_000, words=10, planted=0.1, seed=1))
    corpus.track()
    corpus.update_clusters()
    connection.execute("ANALYZE")
    connection.execute("SET work_mem = '64kB'")
    config = stored_corpus.load(db.engine, "c")
    explained = f"EXPLAIN {config.statement(getattr(statements, statement))}"
    plan = "\n".join(line for (line,) in connection.execute(explained.encode()).fetchall())
    assert "SubPlan" in plan
    assert "Materialize" not in plan, plan  # NOT IN would read all nodes again and again


ENTRIES = 100_000
MOST = 1000
"""The keys of a claim. Each entry of these tests has one key."""

CLAIM = f"SELECT id FROM textsim._claim(ARRAY[1], true, '{{}}', 0, {MOST}, 60)"
STATEMENTS = {
    "claim": CLAIM,
    "lease": f"SELECT textsim._lease_entries((SELECT array_agg(id) FROM ({CLAIM}) c), 60, 0)",
    "delete": f"SELECT textsim._delete_entries((SELECT array_agg(id) FROM ({CLAIM}) c))",
    "batch of index_pending": "SELECT entries FROM textsim._pending_batch('c', 0, '{}')",
    "comparisons": "SELECT textsim._is_uncompared(1)",
    "warnings": "SELECT w.* FROM textsim.corpus c, textsim._search_warnings(c) w",
}
ROWS_READ = """
SELECT pg_stat_get_xact_tuples_returned('textsim.pending'::regclass), (
    SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_index
    WHERE indrelid = 'textsim.pending'::regclass)
"""
"""The rows that a session has read by sequential scans, and the entries of indexes."""


def read_by(connection: Connection, statement: bytes) -> tuple[list[Any], int, int]:
    """Run a statement; return its rows, the rows of sequential scans, and the entries of indexes."""
    before = connection.execute(ROWS_READ).fetchall()[0]
    rows = connection.execute(statement, prepare=True).fetchall()
    after = connection.execute(ROWS_READ).fetchall()[0]
    return rows, int(after[0] - before[0]), int(after[1] - before[1])


def fill(connection: Connection, entries: int = ENTRIES) -> None:
    connection.execute(
        "INSERT INTO textsim.pending (kind, corpus_id, source_id, keys) "
        "SELECT 'change', 1, 1, ARRAY[i::text] FROM generate_series(1, %s) i",
        [entries],
    )


def make_empty(connection: Connection) -> None:
    """The statistics of an empty log."""
    connection.execute("VACUUM ANALYZE textsim.pending")


def make_bloated(connection: Connection) -> None:
    """The statistics of a log with one row in many pages."""
    fill(connection, 5000)
    connection.execute(
        "DELETE FROM textsim.pending WHERE id < (SELECT max(id) FROM textsim.pending)"
    )
    connection.execute("VACUUM ANALYZE textsim.pending")


def make_huge(connection: Connection) -> None:
    """The statistics of a log with many rows, of which one is left."""
    fill(connection)
    connection.execute("VACUUM ANALYZE textsim.pending")
    connection.execute(
        "DELETE FROM textsim.pending WHERE id < (SELECT max(id) FROM textsim.pending)"
    )


@pytest.fixture
def log(corpus: ts.Corpus, connection: Connection) -> Connection:
    """A corpus with an attached table, whose log nobody vacuums or analyzes."""
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
    corpus.attach("t", "id", "body")
    connection.execute("ALTER TABLE textsim.pending SET (autovacuum_enabled = off)")
    return connection


# A statement that writes comes last: its versions of the rows stay in the indexes after a rollback.
@pytest.mark.more
@pytest.mark.sampled
@pytest.mark.parametrize(
    "statements", [("comparisons", "batch of index_pending", "claim"), ("lease",), ("delete",)]
)
@pytest.mark.parametrize("plans", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("make_state", [make_empty, make_bloated, make_huge])
def test_statements_read_few_rows_of_a_huge_log(
    log: Connection,
    make_state: Callable[[Connection], None],
    plans: str,
    statements: tuple[str, ...],
) -> None:
    """The plans are made with the statistics of one state, and used in another one."""
    make_state(log)
    with psycopg.connect(log.info.dsn, autocommit=True) as session:
        session.execute(f"SET plan_cache_mode = {plans}".encode())

        def read(statement: str) -> tuple[list[Any], int, int]:
            with session.transaction(force_rollback=True):
                return read_by(session, STATEMENTS[statement].encode())

        for statement in statements:
            for _ in range(10):  # a plan becomes generic at the sixth time
                read(statement)
            wait_for(lambda: read(statement)[2] < 100)  # noqa: B023
        fill(log)
        for statement in statements:
            returned, in_order, by_index = read(statement)
            case = f"{statement}: {by_index} index entries read, at most {4 * MOST + 100}"
            assert len(returned) == MOST or statement != "claim"
            assert in_order == 0, f"{statement}: {in_order} rows read by sequential scans"
            assert by_index <= 4 * MOST + 100, case


@pytest.mark.more
def test_a_walk_does_not_read_deleted_entries_again(log: Connection) -> None:
    """While an old transaction is open, deleted entries stay in the indexes."""
    fill(log)
    with ExitStack() as stack:
        old = stack.enter_context(psycopg.connect(log.info.dsn))
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM textsim.pending")
        row = log.execute("SELECT max(id) FROM textsim.pending").fetchone()
        assert row is not None
        log.execute("DELETE FROM textsim.pending")
        fill(log, 10)
        for after, least, most in ((0, ENTRIES, 3 * ENTRIES), (row[0], 10, 100)):
            with log.transaction(force_rollback=True):
                claim = CLAIM.replace(", 0, ", f", {after}, ").encode()
                claimed, in_order, by_index = read_by(log, claim)
            assert len(claimed) == 10
            assert in_order == 0
            assert least <= by_index <= most, f"after {after}: {by_index} index entries read"
