"""Change tracked corpora at random for a long time; their clusters must equal a batch computation.

    python -m tests.soak.clusters --steps 100000 --writers 8

Writers add, replace, remove and judge documents, some documents expire, and the corpus is rebuilt. A
worker and other sessions update the clusters meanwhile, and are killed. After each thousand steps the
writers pause: matches, members and clusters must equal those of Corpus.pairs() and clusters(), and those
of networkx. All events are replayed: they give the same members, and no id is used twice. check must
find no problem. A life has one kind of corpus and mode, and then the next life begins.
"""

from __future__ import annotations

import argparse
import itertools
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import psycopg
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, tables_of
from tests.support.embedded import arguments_of, served, start_worker
from tests.support.tracked import CORPORA, RandomWriter, compare, compare_with_networkx
from textsim_db.errors import CorpusBusy, CorpusChanged
from textsim_db.settings.named_values import Mode, ModeName

BETWEEN_COMPARISONS = 1000
LIFE = 5000
KEYS = 120
NAME = "c"
# The rare steps, by their chance.
EXPIRE, REBUILD, KILL_WORKER, KILL_SESSIONS = 0.005, 0.0005, 0.001, 0.01
KILL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND query LIKE '%update_clusters%' AND query NOT LIKE '%terminate%'
"""
GONE = (pg.UndefinedTable, pg.UndefinedFunction)
REBUILT = (CorpusChanged, pg.ObjectNotInPrerequisiteState, *GONE)
"""Errors of a writer that began before the end of a rebuild."""
LIVES = list(itertools.product(CORPORA, Mode))


class Worker:
    """A worker process that is killed and started again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the process, if none runs; several writers may ask for it at once."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = start_worker(self._url, "--poll", "0.01")

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the process."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)


@dataclass
class Life:
    """A tracked corpus and its writers; `happened` counts what they did."""

    db: ts.Database
    url: str
    seed: str
    kind: str
    mode: ModeName
    writers: int
    happened: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._corpus = self.db.create_corpus(NAME, **CORPORA[self.kind], keep_for="1 day")
        self._threshold = self._corpus.config.threshold
        self._worker = Worker(self.url)

    def live(self, steps: int) -> None:
        """Make the steps, and compare after each thousand; raise AssertionError for a difference."""
        self._corpus.track(mode=self.mode, keep_events=None)
        with ExitStack() as stack:
            stack.callback(self._worker.kill)
            opened = (psycopg.connect(self.url, autocommit=True) for _ in range(self.writers))
            connections = [*map(stack.enter_context, opened)]
            threads = stack.enter_context(ThreadPoolExecutor(self.writers))
            rngs = [random.Random(f"{self.seed} {number}") for number in range(self.writers)]
            for start in range(0, steps, BETWEEN_COMPARISONS):
                share = min(BETWEEN_COMPARISONS, steps - start) // self.writers
                list(threads.map(self._write, connections, rngs, [share] * self.writers))
                self._compare(connections[0])
        self.db.drop_corpus(NAME)

    def _write(self, connection: Connection, rng: random.Random, steps: int) -> None:
        writer = RandomWriter(connection, self._corpus, rng, judges=True, keys=KEYS)
        for _ in range(steps):
            try:
                self._step(connection, writer, rng)
            except REBUILT:
                self.happened["refused, because the corpus was rebuilt"] += 1
            except ts.JudgementExists:
                self.happened["judged by another writer"] += 1

    def _step(self, connection: Connection, writer: RandomWriter, rng: random.Random) -> None:
        chance = rng.random()
        rare = {
            "rebuild": (REBUILD, self._rebuild),
            "worker killed": (KILL_WORKER, self._kill_worker),
            "expired": (EXPIRE, self._expire),
            "sessions killed": (KILL_SESSIONS, self._kill_sessions),
        }
        for name, (part, step) in rare.items():
            if chance < part:
                self.happened[name] += 1
                step(connection, rng)
                return
            chance -= part
        if self.mode == "queue" and rng.random() < 0.02:
            with suppress(ts.DatabaseError):
                self._corpus.update_clusters()
        self.happened["changed"] += 1
        writer.change()

    def _rebuild(self, connection: Connection, rng: random.Random) -> None:
        with suppress(CorpusBusy, CorpusChanged):
            self._corpus.rebuild(seed=rng.randrange(2**31))

    def _kill_worker(self, connection: Connection, rng: random.Random) -> None:
        self._worker.kill()
        self._worker.start()

    def _kill_sessions(self, connection: Connection, rng: random.Random) -> None:
        connection.execute(KILL)

    def _expire(self, connection: Connection, rng: random.Random) -> None:
        documents, _ = tables_of(connection, NAME)
        keys = [f"k{number}" for number in rng.sample(range(KEYS), 5)]
        expire = f"UPDATE {documents} SET expires_at = now() WHERE key = ANY (%s)"
        with suppress(pg.DeadlockDetected):  # two writers update the same documents
            connection.execute(expire.encode(), [keys])
        connection.execute("CALL textsim.expire(%s)", [NAME])

    def _compare(self, connection: Connection) -> None:
        connection.execute("CALL textsim.expire(%s)", [NAME])
        self._corpus.update_clusters()
        compare(connection, self._corpus, self._threshold)
        compare_with_networkx(connection, self._corpus, self._threshold)
        assert self._corpus.check() == []


def run(steps: int, writers: int, seed: int) -> Counter[str]:
    """Live one life after another; return what happened."""
    happened: Counter[str] = Counter()
    rng = random.Random(seed)
    with served() as url, ts.connect(url) as db:
        for number, first in enumerate(range(0, steps, LIFE)):
            if number % len(LIVES) == 0:
                lives = rng.sample(LIVES, len(LIVES))
            kind, mode = lives[number % len(LIVES)]
            start = time.monotonic()
            life = Life(db, url, f"{seed} {number}", kind, mode, writers)
            life.live(min(LIFE, steps - first))
            happened += life.happened
            print(
                f"{number + 1:3d}. {kind}, {mode}: {life.happened.total():,} steps, "
                f"no difference ({time.monotonic() - start:.0f} s)",
                flush=True,
            )
    return happened


def main() -> None:
    """Run the lives, and print what happened."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.clusters")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--writers", type=int, default=1)
    arguments = arguments_of(parser)
    for name, number in run(arguments.steps, arguments.writers, arguments.seed).items():
        print(f"{name}: {number:,}")


if __name__ == "__main__":
    main()
