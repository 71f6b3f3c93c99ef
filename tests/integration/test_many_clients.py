"""Sixteen clients at once against a model in memory: nothing lost, torn, doubled or broken.

Two keys are always written together and with one text. The model knows when each write began and
ended; what is read at any time must be of a write that nothing has surely replaced by then.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sources import expected_forms, index_all_pending, stored_forms
from tests.support.waiting import PATIENCE_SECONDS
from tests.support.workers import running_worker, wait_for_postponed

pytestmark = pytest.mark.one_server

SECONDS = float(os.environ.get("TEXTSIM_TEST_SECONDS", "5"))
COUPLES = 40
ROWS = 40
KEPT = 500
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
REPEATED = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
SNAPSHOT = """
SELECT key, coalesce(normal_form, textsim._normal_form_of(word_ids)) FROM textsim.document_1
WHERE key = ANY (%s)
"""
KINDS = ("python", "sql", "t", "u", "reads")
ENOUGH = 10  # of each kind of work, to show anything


@dataclass(slots=True)
class Write:
    """A text, or None for a removal, that came to be there at some time between start and end."""

    text: str | None
    start: float
    end: float = inf


class Model:
    """What was written under each key."""

    def __init__(self) -> None:
        self._writes: defaultdict[str, list[Write]] = defaultdict(lambda: [Write(None, -inf, -inf)])

    @contextmanager
    def writing(
        self, changes: dict[str, str | None], since: dict[str, float] | None = None
    ) -> Iterator[None]:
        """Take note of writes that are done within the context, or not at all if it fails.

        since: when those began that changed nothing, because of what they saw then.
        """
        now, since = time.monotonic(), since or {}
        writes = {key: Write(text, since.get(key, now)) for key, text in changes.items()}
        for key, write in writes.items():
            self._writes[key].append(write)
        try:
            yield
        except BaseException:
            for key, write in writes.items():
                self._writes[key].remove(write)
            raise
        for key, write in writes.items():
            write.end = time.monotonic()
            del self._writes[key][:-KEPT]

    def allows(self, key: str, text: str | None, since: float, until: float) -> bool:
        """Say whether a key may have been read with this text in a time."""
        writes = list(self._writes[key])
        return any(
            not any(later.start > write.end and later.end < since for later in writes)
            for write in writes
            if write.text == text and write.start <= until
        )


class Clients:
    """Threads that work until the time is up, and what they counted."""

    def __init__(self, url: str, rng: random.Random) -> None:
        self._url = url
        self._rng = rng
        self._end = time.monotonic() + SECONDS
        self._threads: list[threading.Thread] = []
        self.model = Model()
        self.counts: Counter[str] = Counter()
        self.failures: list[BaseException] = []

    def start(self, number: int, step: Callable[[Client], None]) -> None:
        for _ in range(number):
            rng = random.Random(self._rng.randrange(2**32))
            thread = threading.Thread(target=self._run, args=(rng, step))
            self._threads.append(thread)
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def _goes_on(self) -> bool:
        """Return whether the time is not up, or a kind of client has hardly done anything yet."""
        now = time.monotonic()
        idle = any(self.counts[kind] <= ENOUGH for kind in KINDS)
        return now < self._end + (PATIENCE_SECONDS if idle else 0)

    def _run(self, rng: random.Random, step: Callable[[Client], None]) -> None:
        try:
            with psycopg.connect(self._url) as connection, ts.connect(self._url) as db:
                client = Client(rng, connection, db.corpus("c"), self.model, self.counts)
                while self._goes_on() and not self.failures:
                    step(client)
        except BaseException as error:
            self.failures.append(error)


@dataclass
class Client:
    rng: random.Random
    connection: Connection
    corpus: ts.Corpus
    model: Model
    counts: Counter[str]

    def couples(self) -> list[tuple[str, str]]:
        return [
            (f"p{i}a", f"p{i}b") for i in self.rng.sample(range(COUPLES), self.rng.randint(1, 3))
        ]

    def text(self) -> str:
        return " ".join([*self.rng.choices(WORDS, k=10), str(self.rng.randrange(10**9))])

    def in_python(self) -> None:
        couples = self.couples()
        changes = {key: text for couple in couples for text in [self.text()] for key in couple}
        if self.rng.random() < 0.2:
            with self.model.writing(dict.fromkeys(changes)):
                self.corpus.remove(changes)
        else:
            with self.model.writing(dict(changes)):
                report = self.corpus.add_many(changes.items())
            assert report.stored == len(changes)
        self.counts["python"] += 1

    def in_sql(self) -> None:
        """Add or remove in one transaction, by chance in one that is rolled back."""
        couples = self.couples()
        removes = self.rng.random() < 0.2
        # Key by key, a removal must have one snapshot, or it may take one of a couple that was
        # just added.
        level = psycopg.IsolationLevel.REPEATABLE_READ
        if not removes and self.rng.random() < 0.5:
            level = psycopg.IsolationLevel.READ_COMMITTED
        if self.rng.random() < 0.9:  # else in any order, where deadlocks come from
            couples.sort()
        changes = {
            key: text
            for couple in couples
            for text in [None if removes else self.text()]
            for key in couple
        }
        self.connection.isolation_level = level
        began = time.monotonic()
        idle = {}
        for key, text in changes.items():
            if text is None:
                cursor = self.connection.execute("SELECT textsim.remove('c', %s)", [key])
            else:
                cursor = self.connection.execute("SELECT textsim.add('c', %s, %s)", [key, text])
            if cursor.fetchone() == (False,):
                idle[key] = began
        self.counts["sql"] += self._finish(changes, idle)

    def in_table(self, table: str) -> None:
        keys = sorted(self.rng.sample(range(ROWS), self.rng.randint(1, 4)))
        changes = {
            f"{table}{key}": None if self.rng.random() < 0.3 else self.text() for key in keys
        }
        self.connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        for key, text in changes.items():
            self.connection.execute(f"DELETE FROM {table} WHERE id = %s".encode(), [key])
            if text is not None:
                self.connection.execute(
                    f"INSERT INTO {table} VALUES (%s, %s) "
                    "ON CONFLICT (id) DO UPDATE SET body = excluded.body".encode(),
                    [key, text],
                )
        # A row that others insert again after the DELETE stays, so this is not of the model.
        self.counts[table] += self._finish({}, {})

    def _finish(self, changes: dict[str, str | None], idle: dict[str, float]) -> bool:
        """Commit, or roll back by chance; say whether it was committed."""
        if self.rng.random() < 0.1:
            self.connection.rollback()
            self.counts["rolled back"] += 1
            return False
        with self.model.writing(changes, idle):
            self.connection.commit()
        return True

    def repeating(self, step: Callable[[], None]) -> None:
        """Run a step; where another transaction was in its way, that is no failure."""
        try:
            step()
        except REPEATED:
            self.connection.rollback()
            self.counts["conflicts"] += 1

    def reads(self) -> None:
        """Read couples in one snapshot, and search."""
        couples = self.couples()
        self.connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        since = time.monotonic()
        rows = self.connection.execute(SNAPSHOT, [[k for c in couples for k in c]]).fetchall()
        until = time.monotonic()
        self.connection.rollback()
        texts: dict[str, str] = dict(rows)
        self.counts["doubled"] += len(rows) - len(texts)
        for one, other in couples:
            self.counts["torn"] += texts.get(one) != texts.get(other)
            self.counts["lost"] += not self.model.allows(one, texts.get(one), since, until)
            if one in texts:
                matches = self.corpus.query(texts[one])
                keys = [match.key for match in matches]
                self.counts["doubled"] += len(keys) - len(set(keys))
                self.counts["torn"] += (one in keys) != (other in keys)
        self.counts["reads"] += 1


def test_sixteen_clients(db: ts.Database, rng: random.Random, seed: int, database_url: str) -> None:
    corpus = db.create_corpus("c", "word:2", threshold=0.7, num_hashes=64)
    with psycopg.connect(database_url, autocommit=True) as connection:
        for table, mode in (("t", "queue"), ("u", "inline")):
            connection.execute(f"CREATE TABLE {table} (id text PRIMARY KEY, body text)".encode())
            corpus.attach(table, "id", "body", mode)
        clients = Clients(db.url, rng)
        with running_worker(db), ts.connect(db.url) as other, running_worker(other):
            clients.start(4, Client.in_python)
            clients.start(5, lambda client: client.repeating(client.in_sql))
            clients.start(2, lambda client: client.repeating(lambda: client.in_table("t")))
            clients.start(2, lambda client: client.repeating(lambda: client.in_table("u")))
            clients.start(3, Client.reads)
            clients.join()
        counts, now = clients.counts, time.monotonic()
        wait_for_postponed(connection)
        index_all_pending(db, corpus)
        contents = stored_forms(connection)
        couples = [f"p{i}{side}" for i in range(COUPLES) for side in "ab"]
        counts["lost"] += sum(
            not clients.model.allows(key, contents.get(key), now, now) for key in couples
        )
        counts["torn"] += sum(
            contents.get(f"p{i}a") != contents.get(f"p{i}b") for i in range(COUPLES)
        )
        by_table = {key: text for key, text in contents.items() if not key.startswith("p")}
        wanted = expected_forms(connection, "t") | expected_forms(connection, "u")
        counts["lost"] += sum(by_table.get(key) != text for key, text in wanted.items())
        counts["surplus"] = len(by_table.keys() - wanted.keys())
        counts["broken"] = len(corpus.check())
    committed = sum(counts[kind] for kind in ("python", "sql", "t", "u"))
    print(
        f"--seed {seed}: {committed} transactions committed ({counts['python']} of Python, "
        f"{counts['sql']} of SQL, {counts['t']} of a table in mode queue, {counts['u']} inline), "
        f"{counts['rolled back']} rolled back, {counts['conflicts']} given up for others, "
        f"{counts['reads']} reads; lost {counts['lost']}, torn {counts['torn']}, "
        f"doubled {counts['doubled']}, surplus {counts['surplus']}, "
        f"broken invariants {counts['broken']}"
    )
    assert all(counts[kind] > ENOUGH for kind in KINDS), counts
    wrong = ("lost", "torn", "doubled", "surplus", "broken")
    assert [counts[kind] for kind in wrong] == [0] * len(wrong)
