"""The steady load of the soak test: processes that write, query, and use a table of their own."""

from __future__ import annotations

import multiprocessing
import multiprocessing.synchronize
import random
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from typing import TypeAlias

import numpy as np
import psycopg

import textsim_db as ts
from benchmarks.generate import vocabulary
from tests.soak.samples import Load

WORDS = 60
VOCABULARY = 20_000
PLAIN_RATE = 10.0
Reports: TypeAlias = "Queue[dict[str, list[float]]]"
"""Where processes put how many milliseconds each of their acts took."""


class Texts:
    """Random texts of a fixed vocabulary, Zipf-distributed; each is another one."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        # The same words in all processes, so that the dictionary does not grow for ever.
        self._words = vocabulary(np.random.default_rng(1), VOCABULARY)
        weights = 1.0 / np.arange(1, VOCABULARY + 1)
        self._cumulative = np.cumsum(weights / weights.sum())

    def draw(self) -> str:
        places = np.searchsorted(self._cumulative, self._rng.random(WORDS))
        return " ".join(self._words[np.minimum(places, VOCABULARY - 1)])

    def edit(self, text: str) -> str:
        """Return a text with a tenth of the words replaced."""
        words = text.split()
        for place in self._rng.integers(0, len(words), WORDS // 10):
            words[place] = self.draw().split(" ", 1)[0]
        return " ".join(words)


def steadily(
    rate: float,
    interval: float,
    acts: dict[str, Callable[[], None]],
    reports: Reports,
    stop: multiprocessing.synchronize.Event,
) -> None:
    """Act at a steady rate, and tell the milliseconds of each time at the end of each interval."""
    taken: dict[str, list[float]] = {name: [] for name in acts}
    due = reported_at = time.monotonic()
    while not stop.is_set():
        time.sleep(max(0.0, due - time.monotonic()))
        # What is late is made up for, but for what another second's load would have to wait.
        due = max(due + 1 / rate, time.monotonic() - 1)
        for name, act in acts.items():
            start = time.perf_counter()
            act()
            taken[name].append((time.perf_counter() - start) * 1000)
        if time.monotonic() - reported_at >= interval:
            reports.put(taken)
            taken, reported_at = {name: [] for name in acts}, time.monotonic()


def write(
    url: str,
    load: Load,
    interval: float,
    seed: int,
    reports: Reports,
    stop: multiprocessing.synchronize.Event,
) -> None:
    """Insert, update and delete rows, as many of the one as of the other."""
    rng, texts = random.Random(seed), Texts(seed)
    with psycopg.connect(url, autocommit=True, application_name="soak-writer") as connection:
        rows: dict[int, str] = dict(connection.execute("SELECT id, body FROM t").fetchall())
        keys = list(rows)
        highest = max(keys)

        def act() -> None:
            nonlocal highest
            place = rng.randrange(len(keys))
            key = keys[place]
            kind = rng.random()
            # Deleted more often where there are too many, so that the number stays.
            if kind < 1 / 3:
                rows[key] = texts.edit(rows[key])
                connection.execute("UPDATE t SET body = %s WHERE id = %s", [rows[key], key])
            elif len(keys) > load.documents:
                keys[place] = keys[-1]
                keys.pop()
                del rows[key]
                connection.execute("DELETE FROM t WHERE id = %s", [key])
            else:
                highest += 1
                keys.append(highest)
                rows[highest] = texts.draw()
                connection.execute("INSERT INTO t VALUES (%s, %s)", [highest, rows[highest]])

        steadily(load.writes, interval, {"write": act}, reports, stop)


def query(
    url: str,
    load: Load,
    interval: float,
    seed: int,
    reports: Reports,
    stop: multiprocessing.synchronize.Event,
) -> None:
    """Look for texts that are near some that there were."""
    texts = Texts(seed)
    with ts.connect(f"{url}&application_name=soak-reader") as db:
        corpus = db.corpus("c")
        with psycopg.connect(url) as connection:
            texts_of_table = [row[0] for row in connection.execute("SELECT body FROM t LIMIT 1000")]
        rng = random.Random(seed)

        def act() -> None:
            corpus.query(texts.edit(rng.choice(texts_of_table)))

        steadily(load.queries, interval, {"query": act}, reports, stop)


def plain(
    url: str,
    load: Load,
    interval: float,
    seed: int,
    reports: Reports,
    stop: multiprocessing.synchronize.Event,
) -> None:
    """Write and read a table that is not attached: what that takes is up to the machine."""
    rng, texts = random.Random(seed), Texts(seed)
    with psycopg.connect(url, autocommit=True, application_name="soak-plain") as connection:
        connection.execute("CREATE TABLE plain (id bigint PRIMARY KEY, body text NOT NULL)")
        connection.execute("INSERT INTO plain SELECT i, '' FROM generate_series(0, 999) i")

        def write_one() -> None:
            connection.execute(
                "UPDATE plain SET body = %s WHERE id = %s", [texts.draw(), rng.randrange(1000)]
            )

        def read_some() -> None:
            first = rng.randrange(900)
            connection.execute(
                "SELECT body FROM plain WHERE id BETWEEN %s AND %s", [first, first + 100]
            ).fetchall()

        acts = {"plain_write": write_one, "plain_query": read_some}
        steadily(PLAIN_RATE, interval, acts, reports, stop)
