"""Sixteen clients at once, compared with a model in memory: no document is lost, torn or doubled.

Each write changes two keys together, to one text. The model knows when each write began and ended. A
text that is read must come from a write that no later write had certainly replaced by then.
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
from textsim_db.settings.named_values import Mode

SECONDS = float(os.environ.get("TEXTSIM_TEST_SECONDS", "3"))
KEY_PAIRS = 40
ROWS = 40
KEPT = 500
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
WORDS_OF_TEXT = 11
CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
SNAPSHOT = """
SELECT key, textsim._stored_form(1, word_ids, normal_form) FROM textsim.document_1
WHERE key = ANY (%s)
"""
KINDS = ("python", "sql", "t", "u", "reads")
ENOUGH = 10  # steps of each kind of client that a run needs at least


@dataclass(slots=True)
class Write:
    """A text, or None for a removal, that was committed at some time between start and end."""

    text: str | None
    start: float
    end: float = inf


class Model:
    """The writes of each key."""

    def __init__(self) -> None:
        self._writes: defaultdict[str, list[Write]] = defaultdict(lambda: [Write(None, -inf, -inf)])

    @contextmanager
    def writing(
        self, changes: dict[str, str | None], since: dict[str, float] | None = None
    ) -> Iterator[None]:
        """Record writes that are committed within the context; if it raises, they were not committed.

        since: when a write began that changed nothing; it depends on the rows of that time.
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
        """Return whether a reader may see this text of a key between since and until."""
        writes = list(self._writes[key])
        return any(
            not any(later.start > write.end and later.end < since for later in writes)
            for write in writes
            if write.text == text and write.start <= until
        )


class Clients:
    """Threads that run steps until the time is up, and their counts."""

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

    def _has_time(self) -> bool:
        """Return whether there is time left, or a kind of client has done too few steps."""
        now = time.monotonic()
        idle = any(self.counts[kind] <= ENOUGH for kind in KINDS)
        return now < self._end + (PATIENCE_SECONDS if idle else 0)

    def _run(self, rng: random.Random, step: Callable[[Client], None]) -> None:
        try:
            with psycopg.connect(self._url) as connection, ts.connect(self._url) as db:
                client = Client(rng, connection, db.corpus("c"), self.model, self.counts)
                while self._has_time() and not self.failures:
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

    def key_pairs(self) -> list[tuple[str, str]]:
        return [
            (f"p{i}a", f"p{i}b") for i in self.rng.sample(range(KEY_PAIRS), self.rng.randint(1, 3))
        ]

    def text(self) -> str:
        return " ".join(
            [*self.rng.choices(WORDS, k=WORDS_OF_TEXT - 1), str(self.rng.randrange(10**9))]
        )

    def write_by_python(self) -> None:
        key_pairs = self.key_pairs()
        changes = {
            key: text for key_pair in key_pairs for text in [self.text()] for key in key_pair
        }
        if self.rng.random() < 0.2:
            with self.model.writing(dict.fromkeys(changes)):
                self.corpus.remove(changes)
        else:
            with self.model.writing(dict(changes)):
                report = self.corpus.add_many(changes.items())
            assert report.stored == len(changes)
        self.counts["python"] += 1

    def write_by_sql(self) -> None:
        """Add or remove documents in one transaction, which is sometimes rolled back."""
        key_pairs = self.key_pairs()
        removes = self.rng.random() < 0.2
        # A removal goes key by key. Without a snapshot it may remove one key of a pair that was
        # just added.
        level = psycopg.IsolationLevel.REPEATABLE_READ
        if not removes and self.rng.random() < 0.5:
            level = psycopg.IsolationLevel.READ_COMMITTED
        if self.rng.random() < 0.9:  # else any order, which may cause deadlocks
            key_pairs.sort()
        changes = {
            key: text
            for key_pair in key_pairs
            for text in [None if removes else self.text()]
            for key in key_pair
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

    def write_table(self, table: str) -> None:
        keys = sorted(self.rng.sample(range(ROWS), self.rng.randint(1, 4)))
        changes = {
            f"{table}{key}": None if self.rng.random() < 0.3 else self.text() for key in keys
        }
        self.connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        if self.rng.random() < 0.1:  # a row moves to a key that no other client uses
            moved = f"{table} moved {self.rng.randrange(10**12)}"
            statement = f"UPDATE {table} SET id = %s WHERE id = %s"
            self.connection.execute(statement.encode(), [moved, f"{table}{keys[0]}"])
        for key, text in changes.items():
            self.connection.execute(f"DELETE FROM {table} WHERE id = %s".encode(), [key])
            if text is not None:
                self.connection.execute(
                    f"INSERT INTO {table} VALUES (%s, %s) "
                    "ON CONFLICT (id) DO UPDATE SET body = excluded.body".encode(),
                    [key, text],
                )
        # Another client may insert the row again after the DELETE, so the model does not follow tables.
        self.counts[table] += self._finish({}, {})

    def _finish(self, changes: dict[str, str | None], idle: dict[str, float]) -> bool:
        """Commit, or sometimes roll back; return whether the transaction was committed."""
        if self.rng.random() < 0.1:
            self.connection.rollback()
            self.counts["rolled back"] += 1
            return False
        with self.model.writing(changes, idle):
            self.connection.commit()
        return True

    def run_step(self, step: Callable[[], None]) -> None:
        """Run a step; a conflict with another transaction is no failure."""
        try:
            step()
        except CONFLICTS:
            self.connection.rollback()
            self.counts["conflicts"] += 1

    def reads(self) -> None:
        """Read pairs of keys in one snapshot, and search for their texts."""
        key_pairs = self.key_pairs()
        self.connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        since = time.monotonic()
        rows = self.connection.execute(SNAPSHOT, [[k for c in key_pairs for k in c]]).fetchall()
        until = time.monotonic()
        self.connection.rollback()
        texts: dict[str, str] = dict(rows)
        self.counts["doubled"] += len(rows) - len(texts)
        for first, second in key_pairs:
            self.counts["torn"] += texts.get(first) != texts.get(second)
            self.counts["lost"] += not self.model.allows(first, texts.get(first), since, until)
            if first in texts:
                matches = self.corpus.query(texts[first])
                keys = [match.key for match in matches]
                self.counts["doubled"] += len(keys) - len(set(keys))
                self.counts["torn"] += (first in keys) != (second in keys)
                self._read_passages(texts[first], {first, second})
        self.counts["reads"] += 1

    def _read_passages(self, text: str, key_pair: set[str]) -> None:
        """Search for a whole text as a passage."""
        in_sql = "SELECT key FROM textsim.passages('c', %s, %s)"
        rows = self.connection.execute(in_sql, [text, WORDS_OF_TEXT]).fetchall()
        self.connection.rollback()
        in_python = [passage.key for passage in self.corpus.passages(text, WORDS_OF_TEXT)]
        for found in ([key for (key,) in rows], in_python):
            self.counts["torn"] += key_pair.intersection(found) not in (set(), key_pair)


@pytest.mark.more
def test_sixteen_clients_lose_tear_and_double_nothing(
    db: ts.Database, rng: random.Random, seed: int, database_url: str
) -> None:
    corpus = db.create_corpus("c", shingle="word:2", threshold=0.7, num_hashes=64, passages=4)
    with psycopg.connect(database_url, autocommit=True) as connection:
        for table, mode in (("t", Mode.QUEUE), ("u", Mode.INLINE)):
            connection.execute(f"CREATE TABLE {table} (id text PRIMARY KEY, body text)".encode())
            corpus.attach(table, "id", "body", mode)
        clients = Clients(db.url, rng)
        with running_worker(db), ts.connect(db.url) as other, running_worker(other):
            clients.start(4, Client.write_by_python)
            clients.start(5, lambda client: client.run_step(client.write_by_sql))
            clients.start(2, lambda client: client.run_step(lambda: client.write_table("t")))
            clients.start(2, lambda client: client.run_step(lambda: client.write_table("u")))
            clients.start(3, Client.reads)
            clients.join()
        counts, now = clients.counts, time.monotonic()
        wait_for_postponed(connection)
        index_all_pending(db, corpus)
        forms = stored_forms(connection)
        key_pairs = [f"p{i}{side}" for i in range(KEY_PAIRS) for side in "ab"]
        counts["lost"] += sum(
            not clients.model.allows(key, forms.get(key), now, now) for key in key_pairs
        )
        counts["torn"] += sum(forms.get(f"p{i}a") != forms.get(f"p{i}b") for i in range(KEY_PAIRS))
        by_table = {key: text for key, text in forms.items() if not key.startswith("p")}
        table_forms = expected_forms(connection, "t") | expected_forms(connection, "u")
        counts["lost"] += sum(by_table.get(key) != text for key, text in table_forms.items())
        counts["surplus"] = len(by_table.keys() - table_forms.keys())
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
    faults = ("lost", "torn", "doubled", "surplus", "broken")
    assert [counts[kind] for kind in faults] == [0] * len(faults)
