"""Sixteen writers beside four workers that are killed at random: every change is indexed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection, count_deadlocks
from tests.support.sources import expected_forms, index_all_pending, stored_forms
from tests.support.workers import wait_for_postponed

SECONDS = float(os.environ.get("TEXTSIM_TEST_SECONDS", "2"))
WRITERS, WORKERS = 16, 4
KEYS = 400
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
WORKER = "import sys, textsim_db as ts; ts.connect(sys.argv[1]).worker(lease=1.0).run()"


class Writer(threading.Thread):
    """Changes random rows in transactions of random length, and keeps its error."""

    def __init__(self, url: str, seed: int, end: float) -> None:
        super().__init__()
        self._url, self._rng, self._end = url, random.Random(seed), end
        self.transactions = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with psycopg.connect(self._url) as connection:
                while time.monotonic() < self._end:
                    self._transaction(connection)
                    self.transactions += 1
        except BaseException as error:
            self.failure = error

    def _transaction(self, connection: Connection) -> None:
        rng = self._rng
        # The keys are in order, so that writers alone cause no deadlock.
        keys = sorted(rng.sample(range(KEYS), rng.randrange(1, 6)))
        for key in keys:
            connection.execute(*self._change(key))
            if rng.random() < 0.02:
                time.sleep(rng.random())
        if rng.random() < 0.1:
            with connection.transaction(force_rollback=True):
                connection.execute(*self._change(keys[-1]))
        if rng.random() < 0.2:
            connection.rollback()
        else:
            connection.commit()

    def _change(self, key: int) -> tuple[Any, ...]:
        rng = self._rng
        words = " ".join(rng.choices(WORDS, k=12))
        text = f"{words} {rng.randrange(10**6)} {rng.randrange(10**6)}"
        kind = rng.random()
        if kind < 0.5:
            return (
                "INSERT INTO t VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
                [key, text],
            )
        if kind < 0.7:
            return "UPDATE t SET body = %s WHERE id = %s", [text, key]
        if kind < 0.9:
            return "DELETE FROM t WHERE id = %s", [key]
        if kind < 0.95:
            return "UPDATE t SET body = NULL WHERE id = %s", [key]
        # The new numbers are random, so that two writers never use the same number.
        return "UPDATE t SET id = %s WHERE id = %s", [10**6 + rng.randrange(10**12), key]


@pytest.mark.more
@pytest.mark.parametrize("mode", ["queue", "inline"])
def test_every_change_of_many_writers_is_indexed(db: ts.Database, seed: int, mode: str) -> None:
    rng = random.Random(seed)
    corpus = db.create_corpus("c", shingle="word:2", passages=4)
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, body text)")
        corpus.attach("t", "id", "body", mode)
        before = count_deadlocks(connection)
        end = time.monotonic() + SECONDS
        writers = [Writer(db.url, rng.randrange(2**32), end) for _ in range(WRITERS)]
        workers = [start_worker(db.url) for _ in range(WORKERS)]
        try:
            for writer in writers:
                writer.start()
            kills = 0
            while time.monotonic() < end:
                time.sleep(rng.uniform(0.3, 1.5))
                number = rng.randrange(WORKERS)
                workers[number].kill()
                workers[number].wait()
                workers[number] = start_worker(db.url)
                kills += 1
            for writer in writers:
                writer.join()
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        for writer in writers:
            if writer.failure is not None:
                raise writer.failure
        print(f"{sum(w.transactions for w in writers)} transactions, {kills} workers killed")
        assert sum(writer.transactions for writer in writers) > WRITERS
        wait_for_postponed(connection)
        index_all_pending(db, corpus)
        assert stored_forms(connection) == expected_forms(connection, "t")
        rows = connection.execute("SELECT id::text, body FROM t WHERE body IS NOT NULL").fetchall()
        found = corpus.query_many([body for _, body in rows])
        for (key, _), matches in zip(rows, found, strict=True):
            assert key in [match.key for match in matches], f"--seed {seed}"
        assert count_deadlocks(connection) == before, f"--seed {seed}"


def start_worker(url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WORKER, url])
