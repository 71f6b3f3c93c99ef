"""No call leaves reference cycles, so memory is freed without a full garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Callable

import psycopg
import pytest

import textsim_db as ts
from textsim_db.cluster.keep_rule import Preference
from textsim_db.dedupe.removals import Document, Rule, deduplicate
from textsim_db.settings.corpus_settings import CorpusSettings

DOCUMENTS = [(f"k{i}", f"document number {i} of many w{i % 97} v{i % 7}") for i in range(300)]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("base.run_ahead", "sync.pieces"):
        monkeypatch.setattr(f"textsim_db.{module}.BATCH_DOCUMENTS", 30)


def assert_no_cycles(work: Callable[[], object]) -> None:
    """Assert that the second run of the work leaves no cycles; the first run compiles kernels."""
    work()
    gc.collect()
    gc.disable()
    try:
        work()
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.more
def test_writing_and_searching_leave_no_cycles(db: ts.Database) -> None:
    corpus = db.create_corpus("c", shingle="word:2", num_hashes=16)
    assert_no_cycles(lambda: corpus.add_many(DOCUMENTS))
    assert_no_cycles(lambda: corpus.add_many(DOCUMENTS + [(k, f"{t} more") for k, t in DOCUMENTS]))
    assert_no_cycles(lambda: corpus.query_many([text for _, text in DOCUMENTS[:20]]))
    assert_no_cycles(lambda: sum(1 for _ in corpus.pairs()))
    assert_no_cycles(lambda: sum(1 for _ in corpus.duplicates()))
    assert_no_cycles(lambda: corpus.remove([key for key, _ in DOCUMENTS]))


@pytest.mark.more
def test_a_worker_leaves_no_cycles(
    db: ts.Database, connection: psycopg.Connection[tuple[object, ...]]
) -> None:
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", DOCUMENTS)
    corpus = db.create_corpus("c", shingle="word:2", num_hashes=16)
    corpus.attach("t", "id", "body")
    worker = db.worker()

    def work() -> None:
        connection.execute("UPDATE t SET body = body || ' more'")
        assert worker.run(until_idle=True).replaced == len(DOCUMENTS)

    assert_no_cycles(work)
    assert_no_cycles(corpus.reconcile)


def test_deduplication_leaves_no_cycles(db: ts.Database) -> None:
    documents = [Document(text) for _, text in DOCUMENTS]
    first = Preference.parse("first")
    rule = Rule(first, CorpusSettings("word:2", num_hashes=16).complete())
    assert_no_cycles(lambda: deduplicate(documents, rule))
