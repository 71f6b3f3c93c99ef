"""An update of clusters reads few rows, however many documents the corpus has."""

from __future__ import annotations

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import Connection

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
