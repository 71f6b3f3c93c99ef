"""The steady load of the soak test: processes that write, query, and use an unattached table."""

from __future__ import annotations

import multiprocessing
import multiprocessing.synchronize
import random
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from typing import NamedTuple, TypeAlias

import numpy as np
import psycopg

import textsim_db as ts
from benchmarks.generate import vocabulary
from tests.soak.samples import Load

WORDS = 60
VOCABULARY = 20_000
PLAIN_RATE = 10.0
Reports: TypeAlias = "Queue[dict[str, list[float]]]"
"""Queue in which each process puts the durations of its calls, in milliseconds by name."""


class Texts:
    """Different random texts of a fixed vocabulary, whose words are Zipf-distributed."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        # All processes use the same words, so that the dictionary stops growing.
        self._words = vocabulary(VOCABULARY)
        weights = 1.0 / np.arange(1, VOCABULARY + 1)
        self._cumulative = np.cumsum(weights / weights.sum())

    def draw(self) -> str:
        positions = np.searchsorted(self._cumulative, self._rng.random(WORDS))
        return " ".join(self._words[np.minimum(positions, VOCABULARY - 1)])

    def edit(self, text: str) -> str:
        """Return the text with a tenth of its words replaced."""
        words = text.split()
        for position in self._rng.integers(0, len(words), WORDS // 10):
            words[position] = self.draw().split(" ", 1)[0]
        return " ".join(words)


class Client(NamedTuple):
    """The arguments of a process of the load."""

    url: str
    load: Load
    interval: float
    """The seconds between two reports."""
    seed: int
    reports: Reports
    stop: multiprocessing.synchronize.Event


def call_steadily(client: Client, rate: float, functions: dict[str, Callable[[], None]]) -> None:
    """Call functions at a steady rate, and report their durations at the end of each interval."""
    durations: dict[str, list[float]] = {name: [] for name in functions}
    due = reported_at = time.monotonic()
    while not client.stop.is_set():
        time.sleep(max(0.0, due - time.monotonic()))
        # A delay of up to a second is made up for; the calls of a longer delay are dropped.
        due = max(due + 1 / rate, time.monotonic() - 1)
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            durations[name].append((time.perf_counter() - start) * 1000)
        if time.monotonic() - reported_at >= client.interval:
            client.reports.put(durations)
            durations, reported_at = {name: [] for name in functions}, time.monotonic()


def write(client: Client) -> None:
    """Insert, update and delete rows, each equally often."""
    rng, texts = random.Random(client.seed), Texts(client.seed)
    with psycopg.connect(client.url, autocommit=True, application_name="soak-writer") as connection:
        rows: dict[int, str] = dict(connection.execute("SELECT id, body FROM t").fetchall())
        keys = list(rows)
        highest = max(keys)

        def change_row() -> None:
            nonlocal highest
            position = rng.randrange(len(keys))
            key = keys[position]
            kind = rng.random()
            # A row is deleted if the table has too many rows, else inserted, so their number stays.
            if kind < 1 / 3:
                rows[key] = texts.edit(rows[key])
                connection.execute("UPDATE t SET body = %s WHERE id = %s", [rows[key], key])
            elif len(keys) > client.load.documents:
                keys[position] = keys[-1]
                keys.pop()
                del rows[key]
                connection.execute("DELETE FROM t WHERE id = %s", [key])
            else:
                highest += 1
                keys.append(highest)
                rows[highest] = texts.draw()
                connection.execute("INSERT INTO t VALUES (%s, %s)", [highest, rows[highest]])

        call_steadily(client, client.load.writes, {"write": change_row})


def query(client: Client) -> None:
    """Search for edited texts of the table."""
    texts = Texts(client.seed)
    with ts.connect(f"{client.url}&application_name=soak-reader") as db:
        corpus = db.corpus("c")
        with psycopg.connect(client.url) as connection:
            texts_of_table = [row[0] for row in connection.execute("SELECT body FROM t LIMIT 1000")]
        rng = random.Random(client.seed)

        def search() -> None:
            corpus.query(texts.edit(rng.choice(texts_of_table)))

        call_steadily(client, client.load.queries, {"query": search})


def plain(client: Client) -> None:
    """Write and read an unattached table, to measure how fast the machine is."""
    rng, texts = random.Random(client.seed), Texts(client.seed)
    with psycopg.connect(client.url, autocommit=True, application_name="soak-plain") as connection:
        connection.execute("CREATE TABLE plain (id bigint PRIMARY KEY, body text NOT NULL)")
        connection.execute("INSERT INTO plain SELECT i, '' FROM generate_series(0, 999) i")

        def write_row() -> None:
            connection.execute(
                "UPDATE plain SET body = %s WHERE id = %s", [texts.draw(), rng.randrange(1000)]
            )

        def read_rows() -> None:
            first = rng.randrange(900)
            connection.execute(
                "SELECT body FROM plain WHERE id BETWEEN %s AND %s", [first, first + 100]
            ).fetchall()

        functions = {"plain_write": write_row, "plain_query": read_rows}
        call_steadily(client, PLAIN_RATE, functions)
