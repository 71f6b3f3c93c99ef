"""Tracked clusters: what they cost writers and workers, and how fast members follow.

python -m benchmarks.tracked [--documents 1000000] [--words 100] [--record]
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from functools import partial

from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    compare,
    milliseconds,
)

ADD = b"SELECT textsim.add(%s, %s, %s)"
UPDATE = b"CALL textsim.update_clusters(%s)"
CHANGES = 50_000
"""The rows of an attached table that a worker indexes."""
FOLLOWERS = 10_000
"""The documents that match a kept document, and not each other."""
SECONDS, RATE = 30, 2_000
"""How long documents are added, and how many a second."""
IS_BEHIND = "SELECT EXISTS (SELECT FROM textsim.pending)"
PLAIN, TRACKED = "not tracked", "tracked"
LABELS = {
    "load_s": "load, s",
    "worker_s": f"a worker indexes {CHANGES:,} rows, s",
    "add_ms": "one `add` in SQL, processor ms; tracked inline",
    "build_s": "first update, s",
    "new_ms": "an update for a new document without matches, processor ms",
    "near_ms": "&emsp;for a new document of a cluster of 10",
    "removed_ms": "&emsp;for one removed from it",
    "kept_ms": f"&emsp;for the kept document of a cluster of {FOLLOWERS:,}",
    "writes_per_s": f"documents added a second, for {SECONDS} s",
    "lag_s": "&emsp;members behind the last of them, s",
    "join_s": "`members` joined with a table of all keys, s",
}


class Tracked:
    """A plain corpus, and tracked ones with the same documents."""

    def __init__(self, bench: Bench, count: int, words: int) -> None:
        self.bench, self.count, self.words = bench, count, words
        self.sides: dict[str, Figures] = {PLAIN: {}, TRACKED: {}}
        self._new = (text for _, text in documents(1_000_000, words, planted=0, seed=3))

    def note(self, name: str, value: float, side: str = TRACKED) -> None:
        """Store a figure of a side, and print it."""
        self.sides[side][name] = value
        print(f"{name} {side}: {value:.3f}", flush=True)

    def load(self) -> None:
        """Load a plain corpus and a tracked one, and cluster the latter for the first time."""
        for name, side in (("plain", PLAIN), ("queue", TRACKED)):
            corpus = self.bench.db.create_corpus(name)
            if side == TRACKED:
                corpus.track()
            texts = documents(self.count, self.words)
            self.note("load_s", milliseconds(corpus.add_many, texts) / 1000, side)
        self.note("build_s", milliseconds(self.bench.db.corpus("queue").update_clusters) / 1000)
        self.bench.connection.execute("VACUUM ANALYZE")

    def work(self) -> None:
        """Let a worker index changes of an attached table."""
        run = self.bench.connection.execute
        rows = [(number, next(self._new)) for number in range(CHANGES)]
        for name, side in (("plain", PLAIN), ("queue", TRACKED)):
            run(f"CREATE TABLE row_{name} (id integer PRIMARY KEY, body text)".encode())
            run(b"SELECT textsim.attach(%s, %s::regclass, 'id', 'body')", [name, f"row_{name}"])
            statement = f"COPY row_{name} FROM STDIN".encode()
            with self.bench.connection.cursor() as cursor, cursor.copy(statement) as copy:
                for row in rows:
                    copy.write_row(row)
            worker = self.bench.db.worker()
            self.note("worker_s", milliseconds(worker.run, True) / 1000, side)

    def add(self) -> None:
        """Add single documents to a plain corpus, and to one that is tracked inline."""
        inline = self.bench.db.create_corpus("inline")
        inline.add_many(documents(min(self.count, 100_000), self.words))
        inline.track(mode="inline")
        inline.update_clusters()
        for name, side in (("plain", PLAIN), ("inline", TRACKED)):
            self.note("add_ms", self._each(partial(self._add, name)), side)

    def update(self) -> None:
        """Update the clusters of single documents."""
        corpus = self.bench.db.corpus("queue")
        base = next(self._new)
        corpus.add_many((f"ten {i}", f"{base} extra{i}") for i in range(10))
        self._update()

        def come(number: int) -> None:
            if number:
                corpus.remove([f"near {number - 1}"])
                self._update()
            corpus.add(f"near {number}", f"{base} other{number}")

        def go(number: int) -> None:
            corpus.add(f"gone {number}", f"{base} other{number}")
            self._update()
            corpus.remove([f"gone {number}"])

        steps: dict[str, Callable[[int], object]] = {
            "new_ms": lambda i: corpus.add(f"new {i}", next(self._new)),
            "near_ms": come,
            "removed_ms": go,
        }
        for name, change in steps.items():
            self.note(name, self._each(self._update, change))

    def remove_kept(self) -> None:
        """Remove a document that many documents follow, and that do not match each other."""
        corpus = self.bench.db.create_corpus("hub", shingle="word:1")
        hub = [f"hub{i}" for i in range(60)]
        rng = random.Random(1)
        corpus.add("hub", " ".join(hub))
        corpus.add_many(
            (f"{i}", " ".join(f"x{i}x{p}" if p in places else hub[p] for p in range(60)))
            for i in range(FOLLOWERS)
            for places in [set(rng.sample(range(60), 6))]
        )
        corpus.track()
        corpus.update_clusters()
        self.bench.connection.execute("VACUUM ANALYZE")
        (members,) = self.bench.connection.execute(
            "SELECT count(*) FROM textsim.members('hub') WHERE representative = 'hub'"
        ).fetchone() or (0,)
        assert members > FOLLOWERS * 0.9, members
        corpus.remove(["hub"])
        self.note("kept_ms", milliseconds(self._update, "hub"))

    def follow(self) -> None:
        """Write for a while beside a worker, and measure how far members are behind at the end."""
        corpus, worker = self.bench.db.corpus("queue"), self.bench.db.worker()
        working = threading.Thread(target=worker.run)
        working.start()
        start = time.monotonic()
        for number in range(SECONDS * 10):
            corpus.add_many((f"w{number} {i}", next(self._new)) for i in range(RATE // 10))
            time.sleep(max(0.0, start + (number + 1) / 10 - time.monotonic()))
        end = time.monotonic()
        self.note("writes_per_s", SECONDS * RATE / (end - start))
        while self.bench.number(IS_BEHIND):
            time.sleep(0.02)
        self.note("lag_s", time.monotonic() - end)
        worker.stop()
        working.join()

    def join(self) -> None:
        """Join the members with a table of the user."""
        run = self.bench.connection.execute
        table = self.bench.relation("document", "queue")
        run(f"CREATE TABLE article AS SELECT key AS id, 1 AS section FROM {table}".encode())
        run("ALTER TABLE article ADD PRIMARY KEY (id)")
        run("ANALYZE article")
        query = b"SELECT count(*) FROM article a JOIN textsim.members('queue') m ON m.key = a.id"
        self.note("join_s", milliseconds(run, query) / 1000)

    def _add(self, corpus: str, number: int) -> None:
        self.bench.connection.execute(ADD, [corpus, f"a{number}", next(self._new)])

    def _update(self, corpus: str | int = "queue") -> None:
        name = corpus if isinstance(corpus, str) else "queue"
        self.bench.connection.execute(UPDATE, [name])

    def _each(
        self, measured: Callable[[int], object], before: Callable[[int], object] | None = None
    ) -> float:
        """Return the processor milliseconds of the server for a call."""
        count, total = 200, 0.0
        for number in range(count):
            if before is not None:
                before(number)
            start = self.bench.server_seconds()
            measured(number)
            total += self.bench.server_seconds() - start
        return 1000 * total / count


def measure(bench: Bench, count: int, words: int) -> dict[str, Figures]:
    """Return the figures of a corpus that is not tracked, and of tracked ones."""
    corpora = Tracked(bench, count, words)
    for step in (
        *(corpora.load, corpora.work, corpora.add, corpora.update),
        *(corpora.remove_kept, corpora.follow, corpora.join),
    ):
        step()
    return corpora.sides


if __name__ == "__main__":
    corner = "{documents:,} documents of {words} words"
    compare("tracked", __doc__, measure, LABELS, corner, documents=1_000_000, words=100)
