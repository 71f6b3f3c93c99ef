"""Several processes change one corpus at once; no document is lost, doubled or half-written."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import textsim_db as ts
from tests.support.waiting import PATIENCE_SECONDS


def test_threads_share_one_database_object(db: ts.Database) -> None:
    corpus = db.create_corpus("shared", shingle="word:2", num_hashes=32)

    def work(number: int) -> list[str]:
        for i in range(20):
            corpus.add(f"{number}-{i}", f"thread {number} adds text {i} of twenty")
            corpus.add("everyone's", f"thread {number} was here {i}")
        return [m.key for m in corpus.query(f"thread {number} adds text 7 of twenty", 1.0)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [[f"{number}-7"] for number in range(8)]
    assert len(corpus) == 161
    assert corpus.check() == []


def test_threads_create_one_corpus_at_once(db: ts.Database) -> None:
    def create(_: int) -> ts.Corpus:
        return db.create_corpus("shared", num_hashes=32, exist_ok=True)

    with ThreadPoolExecutor(8) as pool:
        corpora = list(pool.map(create, range(8)))
    assert {corpus.config for corpus in corpora} == {db.corpus("shared").config}
    assert db.corpora() == ["shared"]


def install(url: str) -> str:
    return ts.install(url)


def test_threads_install_the_schema_at_once(empty_database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        revisions = set(pool.map(install, [empty_database_url] * 4))
    assert len(revisions) == 1
    with ts.connect(empty_database_url) as db:
        assert db.corpora() == []


def test_dropping_a_corpus_does_not_delay_another(db: ts.Database) -> None:
    dropped, kept = db.create_corpus("gone"), db.create_corpus("stays")
    for corpus in (dropped, kept):
        corpus.add("a", "one two three four")
    # The reader locks the tables of the dropped corpus, so the drop waits for it.
    with psycopg.connect(db.url) as reader:
        reader.execute("SELECT count(*) FROM textsim.document_1")
        dropping = threading.Thread(target=dropped.drop)
        dropping.start()
        time.sleep(0.5)
        assert dropping.is_alive()
        with psycopg.connect(db.url, options="-c lock_timeout=60000") as writer:
            writer.execute("SELECT textsim.add('stays', 'b', 'one two three five')")
            pairs = writer.execute("SELECT * FROM textsim.candidate_pairs('stays')")
            assert len(pairs.fetchall()) <= 1
        with ts.connect(db.url) as other:
            other.create_corpus("made meanwhile")
        reader.commit()
    dropping.join(PATIENCE_SECONDS)
    assert not dropping.is_alive()
    assert db.corpora() == ["made meanwhile", "stays"]
    assert kept.check() == []


def test_an_error_of_the_progress_function_leaves_no_thread(db: ts.Database) -> None:
    corpus = db.create_corpus("c")

    def fail(report: ts.AddReport) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        corpus.add_many(((f"k{i}", f"text number {i}") for i in range(25_000)), fail)
    assert not [t.name for t in threading.enumerate() if t.name.startswith("textsim-ahead")]
    assert corpus.check() == []
