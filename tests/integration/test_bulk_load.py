"""A bulk load builds the band index at its end, and whatever comes in between."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import textsim_db as ts
from tests.support.sampling import sample
from tests.support.waiting import wait_for, wait_until
from textsim_db.db import stored_corpus
from textsim_db.write.prepared_batch import BATCH_DOCUMENTS

pytestmark = pytest.mark.one_server

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


def test_the_index_is_built_at_the_end(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    during: list[bool] = []
    corpus.add_many(texts(12_000), lambda report: during.append(has_index(db.url)))
    assert during == [False] * -(-12_000 // BATCH_DOCUMENTS)
    during.clear()
    assert has_index(db.url)
    corpus.add_many(texts(15_000), lambda report: during.append(has_index(db.url)))
    assert set(during) == {True}  # no more: it is not empty now
    assert corpus.check() == []


def test_a_small_load_keeps_the_index(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    during: list[bool] = []
    corpus.add_many(texts(10), lambda report: during.append(has_index(db.url)))
    assert during == [True]


def test_a_load_that_fails_builds_the_index(db: ts.Database) -> None:
    corpus = db.create_corpus("c")

    def failing() -> Iterator[tuple[str, str]]:
        yield from texts(2000)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        corpus.add_many(failing())
    assert has_index(db.url)
    assert len(corpus) == 2000


NOBODY_LOADS = b"""
SELECT WHERE NOT EXISTS (
    SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE d.datname = current_database() AND l.mode IN ('RowExclusiveLock', 'AccessExclusiveLock')
)
"""


@pytest.mark.parametrize("then", sample(["search", "load"], 2))
def test_a_load_that_is_killed(db: ts.Database, then: str) -> None:
    corpus = db.create_corpus("c")
    loading = subprocess.Popen([sys.executable, "-c", LOAD, db.url])
    try:
        wait_for(lambda: len(corpus), 60)
    finally:
        loading.kill()
        loading.wait()
    with psycopg.connect(db.url, autocommit=True) as connection:
        wait_until(connection, NOBODY_LOADS)  # the server has noticed
    assert not has_index(db.url)
    assert corpus.check() == []
    stored = len(corpus)
    if then == "search":
        assert corpus.neighbours("0", threshold=0.9) is not None
    else:
        corpus.add_many(texts(1500))
        stored += 1500
    assert has_index(db.url)
    assert len(corpus) == stored
    assert corpus.check() == []


def test_two_loads_that_end_at_once(db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(texts(2000))
    with psycopg.connect(db.url) as writer, ThreadPoolExecutor(4) as pool:
        writer.execute("DROP INDEX textsim.band_1_bucket")
        writer.commit()
        writer.execute("INSERT INTO textsim.band_1 VALUES (0, 0)")
        building = [
            pool.submit(
                stored_corpus.build_band_index, db.engine, stored_corpus.load(db.engine, "c")
            )
            for _ in range(4)
        ]
        # All of them have seen that there is no index, and wait for the writer.
        waiting = (
            "SELECT count(*) FROM pg_locks "
            "WHERE NOT granted AND relation = 'textsim.band_1'::regclass"
        )
        with psycopg.connect(db.url, autocommit=True) as other:
            wait_for(lambda: other.execute(waiting).fetchone() == (4,))
        writer.rollback()
        for one in building:
            one.result()
    assert has_index(db.url)
    assert corpus.check() == []
