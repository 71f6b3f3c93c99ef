"""Tracked clusters are right after writers and clusterers worked at once, and some were killed."""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.threads import repeating
from tests.support.tracked import compare
from tests.support.workers import running_worker

SECONDS = float(os.environ.get("TEXTSIM_TEST_SECONDS", "2"))
WRITERS, CLUSTERERS = 4, 2
KEYS, TEXTS = 25, 12
KILL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND query LIKE '%update_clusters%' AND pid <> pg_backend_pid()
"""


class Writer:
    """Writes few keys and few texts, so that documents return to earlier texts and become copies."""

    def __init__(self, url: str, seed: int) -> None:
        self._url, self._rng = url, random.Random(seed)

    def write(self) -> None:
        """Change some documents in one transaction, which may take long, or be rolled back."""
        rng = self._rng
        with psycopg.connect(self._url, autocommit=True) as connection:
            for _ in range(20):
                # The keys are in order, so that writers cause no deadlock.
                keys = sorted(rng.sample(range(KEYS), rng.choice((1, 1, 3))))
                with connection.transaction(force_rollback=rng.random() < 0.1):
                    for key in keys:
                        self._change(connection, f"{key:02}")
                        time.sleep(rng.choice((0, 0, 0.001, 0.02)))

    def _change(self, connection: Connection, key: str) -> None:
        rng = self._rng
        if rng.random() < 0.15:
            self._judge(connection, key)
        elif rng.random() < 0.3:
            connection.execute("SELECT textsim.remove('c', %s)", [key])
        else:
            number = rng.randrange(TEXTS)
            text = " ".join(f"w{word}" for word in range(number, number + 8))
            connection.execute("SELECT textsim.add('c', %s, %s)", [key, text])

    def _judge(self, connection: Connection, key: str) -> None:
        rng = self._rng
        pair = ["c", key, f"{rng.randrange(KEYS):02}"]
        if key >= pair[2]:
            return
        connection.execute("SELECT textsim.unjudge(%s, %s, %s)", pair)
        verdict = rng.choice(("same", "different", "different", "unsure", None))
        if verdict is not None:
            # Another writer may judge the pair at the same time.
            with suppress(psycopg.errors.RestrictViolation), connection.transaction():
                connection.execute("SELECT textsim.judge(%s, %s, %s, %s)", [*pair, verdict])


def update(url: str) -> None:
    """Update the clusters once, and survive being killed."""
    with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CALL textsim.update_clusters('c')")


@pytest.mark.parametrize(
    ("linkage", "recall"),
    [
        *sample([("kept", 0.9), ("single", 1.0), ("complete", 0.9)], 3, "more"),
        *sample([("kept", 0.9), ("kept", 1.0), ("single", 0.9), ("complete", 1.0)], 4)[1:],
    ],
)
def test_writers_and_killed_clusterers(
    db: ts.Database,
    database_url: str,
    connection: Connection,
    rng: random.Random,
    linkage: str,
    recall: float,
) -> None:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.5, recall=recall)
    corpus.track(linkage)
    writers = [Writer(database_url, rng.randrange(2**32)).write for _ in range(WRITERS)]

    def kill() -> None:
        time.sleep(rng.random() * 0.1)
        connection.execute(KILL)

    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        clusterers = [lambda: update(database_url)] * CLUSTERERS
        with running_worker(db, poll=0.01), repeating(*writers, *clusterers, kill):
            time.sleep(SECONDS / 4)
        corpus.update_clusters()
        compare(connection, corpus, linkage, 0.5)
    assert corpus.check() == []
    assert len(corpus) > KEYS / 3


@pytest.mark.parametrize("linkage", sample(["kept", "single", "complete"], 3))
def test_writers_that_update_clusters_at_commit(
    db: ts.Database,
    database_url: str,
    connection: Connection,
    rng: random.Random,
    linkage: str,
) -> None:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.5)
    corpus.track(linkage, mode="inline")
    writers = [Writer(database_url, rng.randrange(2**32)).write for _ in range(2 * WRITERS)]
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with repeating(*writers):
            time.sleep(SECONDS / 4)
        compare(connection, corpus, linkage, 0.5)
    assert corpus.check() == []
