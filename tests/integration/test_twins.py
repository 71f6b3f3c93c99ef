"""Near-duplicates that are written at once find each other after both commits."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

import textsim_db as ts
from tests.support.sources import index_all_pending
from tests.support.workers import running_worker

LONG = float(os.environ.get("TEXTSIM_TEST_SECONDS", "10")) >= 60
PAIRS = 3000 if LONG else 50  # for each kind of writer
LANES = 2
"""Pairs of clients at work; the two clients of a pair wait for each other before each write."""


def twins(number: int, seed: int) -> tuple[str, str]:
    rng = random.Random(f"{seed} {number}")
    words = [f"w{rng.randrange(10**6)}" for _ in range(30)]
    return " ".join(words), " ".join([*words, f"x{number}"])


@contextmanager
def writer(kind: str, url: str, meet: Callable[[], object]) -> Iterator[Callable[[str, str], None]]:
    """Yield a function that writes one document at the same moment as the other client of the pair."""
    with psycopg.connect(url) as connection, ts.connect(url) as db:
        corpus = db.corpus("c")

        def write(key: str, text: str) -> None:
            if kind == "python":
                meet()
                corpus.add(key, text)
                return
            if kind == "sql":
                connection.execute("SELECT textsim.add('c', %s, %s)", [key, text])
            else:
                connection.execute("INSERT INTO t VALUES (%s, %s)", [key, text])
            # Before both commit, no transaction sees the other.
            meet()
            connection.commit()

        yield write


@pytest.mark.parametrize("kind", ["python", "sql", "table"])
def test_documents_written_at_once_find_each_other(db: ts.Database, seed: int, kind: str) -> None:
    corpus = db.create_corpus("c", shingle="word:2", threshold=0.8)
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    if kind == "table":
        corpus.attach("t", "id", "body")
    texts = [twins(number, seed) for number in range(PAIRS)]

    def write(lane: int, side: int, barrier: threading.Barrier) -> None:
        try:
            with writer(kind, db.url, lambda: barrier.wait(30)) as write_document:
                for number in range(lane, PAIRS, LANES):
                    write_document(f"{number}{'ab'[side]}", texts[number][side])
        except BaseException:
            barrier.abort()
            raise

    with (
        running_worker(db),
        ts.connect(db.url) as other,
        running_worker(other),
        ThreadPoolExecutor(2 * LANES) as pool,
    ):
        barriers = [threading.Barrier(2) for _ in range(LANES)]
        futures = [
            pool.submit(write, lane, side, barrier)
            for lane, barrier in enumerate(barriers)
            for side in (0, 1)
        ]
        for future in futures:
            future.result()
    index_all_pending(db, corpus)
    missed = {(f"{number}a", f"{number}b") for number in range(PAIRS)}
    missed -= {(pair.a, pair.b) for pair in corpus.pairs()}
    matches = corpus.query_many([text for text, _ in texts])
    unmatched = [
        number
        for number, matches_of_text in enumerate(matches)
        if {match.key for match in matches_of_text} != {f"{number}a", f"{number}b"}
    ]
    numbers = random.Random(seed).sample(range(PAIRS), 30)
    unmatched += [n for n in numbers if [m.key for m in corpus.neighbours(f"{n}b")] != [f"{n}a"]]
    print(
        f"--seed {seed}: {PAIRS} pairs, {len(missed)} missed by pairs(), {len(unmatched)} by query()"
    )
    assert (missed, unmatched) == (set(), [])
