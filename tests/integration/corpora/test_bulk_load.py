"""A bulk load builds the band index at its end, even after an interruption, and vacuums meanwhile."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import textsim_db as ts
from tests.support.sampling import sample
from tests.support.waiting import LOCKS, wait_for, wait_until
from textsim_db.base.run_ahead import BATCH_DOCUMENTS
from textsim_db.db import stored_corpus
from textsim_db.results import AddReport
from textsim_db.sketch.learned_shingles import SAMPLE_DOCUMENTS
from textsim_db.write import vacuum_loads

LOAD = (
    "import sys, textsim_db as ts\n"
    "words = [f'w{i * i % 9973}' for i in range(20)]\n"
    "documents = ((str(i), ' '.join(words) + f' {i} {i * 7}') for i in range(10**7))\n"
    "ts.connect(sys.argv[1]).corpus('c').add_many(documents)"
)


def texts(count: int) -> Iterator[tuple[str, str]]:
    for number in range(count):
        yield f"k{number}", f"this is the text of number {number} and of {number * 7}"


def has_index(url: str) -> bool:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT to_regclass('textsim.band_1_bucket')").fetchone()
    return row is not None and row[0] is not None


def test_a_first_load_builds_the_index_at_its_end(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    had_index: list[bool] = []
    corpus.add_many(texts(12_000), lambda report: had_index.append(has_index(db.url)))
    assert had_index == [False] * -(-12_000 // BATCH_DOCUMENTS)
    had_index.clear()
    assert has_index(db.url)
    corpus.add_many(texts(15_000), lambda report: had_index.append(has_index(db.url)))
    assert set(had_index) == {True}  # a load into documents keeps the index
    assert corpus.check() == []


def test_a_small_load_keeps_the_index(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    had_index: list[bool] = []
    corpus.add_many(texts(10), lambda report: had_index.append(has_index(db.url)))
    assert had_index == [True]


@pytest.mark.parametrize("recall", [0.95, 1])
def test_a_load_that_fails_stores_what_came_before_and_builds_the_index(
    db: ts.Database, recall: float
) -> None:
    corpus = db.create_corpus("c", recall=recall)
    count = BATCH_DOCUMENTS + 300

    def failing() -> Iterator[tuple[str, str]]:
        yield from texts(count)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        corpus.add_many(failing())
    assert len(corpus) == count
    assert (corpus.config.common is not None) == (recall == 1)
    assert corpus.check() == []


NOBODY_LOADS = f"""
SELECT WHERE NOT EXISTS (
    SELECT FROM {LOCKS} WHERE mode IN ('RowExclusiveLock', 'AccessExclusiveLock')
)
""".encode()


@pytest.mark.more
@pytest.mark.parametrize("next_step", sample(["search", "load"], 2))
def test_the_index_is_built_after_a_load_was_killed(db: ts.Database, next_step: str) -> None:
    corpus = db.create_corpus("c")
    loading = subprocess.Popen([sys.executable, "-c", LOAD, db.url])
    try:
        wait_for(lambda: len(corpus), 60)
    finally:
        loading.kill()
        loading.wait()
    with psycopg.connect(db.url, autocommit=True) as connection:
        wait_until(connection, NOBODY_LOADS)  # the server has ended the session
    assert not has_index(db.url)
    assert [problem.subject for problem in corpus.check()] == ["textsim.band_1_bucket"]
    stored = len(corpus)
    if next_step == "search":
        assert corpus.neighbours("0", threshold=0.9) is not None
    else:
        corpus.add_many(texts(1500))
        stored += 1500
    assert has_index(db.url)
    assert corpus.check() == []
    assert len(corpus) == stored
    assert corpus.check() == []


def test_loads_that_end_at_once_build_one_index(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(texts(2000))
    with psycopg.connect(db.url) as writer, ThreadPoolExecutor(4) as pool:
        writer.execute("DROP INDEX textsim.band_1_bucket")
        writer.commit()
        writer.execute("INSERT INTO textsim.band_1 VALUES (0, 0)")
        futures = [
            pool.submit(
                stored_corpus.build_band_index, db.engine, stored_corpus.load(db.engine, "c")
            )
            for _ in range(4)
        ]
        # All four have seen that the index is missing, and wait for the writer.
        waiting = (
            f"SELECT count(*) FROM {LOCKS} "
            "WHERE NOT granted AND relation = 'textsim.band_1'::regclass"
        )
        with psycopg.connect(db.url, autocommit=True) as other:
            wait_for(lambda: other.execute(waiting).fetchone() == (4,))
        writer.rollback()
        for future in futures:
            future.result()
    assert has_index(db.url)
    assert corpus.check() == []


HAS_MARKED_PAGES = b"""
SELECT FROM pg_class WHERE relnamespace = 'textsim'::regnamespace AND relname = ANY (%s)
HAVING bool_and(relallvisible > 0)
"""
NO_VACUUM_RUNS = b"""
SELECT WHERE NOT EXISTS (
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'
        AND query LIKE '%%VACUUM (%%' AND pid <> pg_backend_pid())
"""
SLOW_VACUUM = ["lock_timeout = '20ms'", "vacuum_cost_delay = '20ms'"]
SOME_VACUUMS, MANY_VACUUMS = 7 * BATCH_DOCUMENTS, 100 * BATCH_DOCUMENTS


@pytest.fixture
def vacuums_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """One VACUUM alone may mark no page: an ANALYZE of autovacuum beside it holds a snapshot."""
    monkeypatch.setattr(vacuum_loads, "DOCUMENTS_BETWEEN", BATCH_DOCUMENTS)


@pytest.mark.more
@pytest.mark.usefixtures("vacuums_each_batch")
@pytest.mark.parametrize("passages", [None, 4])
def test_pages_are_vacuumed_while_a_first_load_lasts(db: ts.Database, passages: int | None) -> None:
    corpus = db.create_corpus("c", passages=passages)
    learned_from = SAMPLE_DOCUMENTS if passages else 0

    def texts_until_marked() -> Iterator[tuple[str, str]]:
        with psycopg.connect(db.url, autocommit=True) as connection:
            for number, text in enumerate(texts(learned_from + MANY_VACUUMS)):
                if number % BATCH_DOCUMENTS == 0:
                    wait_until(connection, NO_VACUUM_RUNS)
                    if number > learned_from and are_pages_marked(db):
                        return
                yield text
        pytest.fail("no VACUUM has marked pages")

    assert corpus.add_many(texts_until_marked()).added > learned_from
    assert corpus.check() == []


@pytest.mark.more
@pytest.mark.usefixtures("vacuums_each_batch")
def test_pages_are_vacuumed_while_a_corpus_is_rebuilt(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(texts(SOME_VACUUMS))

    with psycopg.connect(db.url, autocommit=True) as connection:

        def wait(done: int, count: int) -> None:
            # While a VACUUM runs, a batch begins none. So fast batches would have only one or two.
            wait_until(connection, NO_VACUUM_RUNS)
            if done == count:
                wait_for(lambda: are_pages_marked(db))

        corpus.rebuild(passages=4, progress=wait)
    assert corpus.check() == []


HOLDS_BAND_ROWS = f"""
SELECT FROM {LOCKS} WHERE relation = 'textsim.band_1'::regclass AND mode = 'ShareUpdateExclusiveLock'
""".encode()


def test_a_load_ends_if_a_vacuum_holds_the_lock_of_the_index(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 2 * BATCH_DOCUMENTS
    monkeypatch.setattr(vacuum_loads, "DOCUMENTS_BETWEEN", count)
    corpus = db.create_corpus("c")
    with psycopg.connect(db.url, autocommit=True) as connection:
        for setting in SLOW_VACUUM:
            connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET {setting}'.encode())

        def wait_after_last_batch(report: AddReport) -> None:
            if report.added == count:
                wait_until(connection, HOLDS_BAND_ROWS)

        with ts.connect(db.url) as limited:
            limited.corpus("c").add_many(texts(count), wait_after_last_batch)
    assert has_index(db.url)
    assert corpus.check() == []


def are_pages_marked(db: ts.Database) -> bool:
    """Return whether VACUUM has marked pages of each table of the corpus that is being filled."""
    with psycopg.connect(db.url, autocommit=True) as connection:
        row = connection.execute("SELECT max(id) FROM textsim.corpus").fetchone()
        assert row is not None
        tables = [f"{kind}_{row[0]}" for kind in ("document", "band", "passage")]
        return bool(connection.execute(HAS_MARKED_PAGES, [tables]).fetchall())
