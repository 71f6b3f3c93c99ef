"""An update of clusters reads few rows, however many documents the corpus has."""

from __future__ import annotations

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import Connection
from textsim_db.db import stored_corpus
from textsim_db.sync import statements

READ = """
SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)
FROM pg_class c
WHERE c.relnamespace = 'textsim'::regnamespace
    AND c.relname ~ '^(document|node|band|match|member|cluster)_1(_|$)'
"""

TEXT = " ".join(f"word{number}" for number in range(30))


@pytest.mark.more
@pytest.mark.parametrize("linkage", ["kept", "single", "complete"])
@pytest.mark.parametrize("is_judged", [False, True])
def test_an_update_for_one_document_reads_few_rows(
    db: ts.Database, connection: Connection, linkage: str, is_judged: bool
) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(documents(20_000, words=40, planted=0.1, seed=1))
    corpus.track(linkage)
    corpus.update_clusters()
    if is_judged:
        first, second, *_ = [pair[:2] for pair in corpus.pairs()]
        corpus.judge(*first, "different")
        corpus.judge(*second, "same")
        corpus.update_clusters()
    for number in range(8):  # plans change after five executions
        corpus.add(f"new {number}", f"a text of its own, number {number}, without any match")
        corpus.add(f"near {number}", f"{TEXT} {number}")
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
