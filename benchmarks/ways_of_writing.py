"""The disk, the log and the memory of each way in which documents are written.

    python -m benchmarks.ways_of_writing [--documents 10000] [--record]

Each way writes the same texts of 200 words into a corpus of its own, after a checkpoint. The dictionary
knows all words. Of an attached table, the log of the same rows in a table that is not attached is
subtracted. The server must have no other clients. The figures:

- stored bytes of a document: tables of the corpus with their indexes
- log bytes of a document: what the server wrote to its write-ahead log meanwhile
- client MB: the peak memory of the process that writes, or of the worker; SQL alone needs neither
- session MB: the most memory that a session of the server held, without shared buffers
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

import textsim_db as ts
from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    forget_peak,
    fresh_database,
    in_own_process,
    open_bench,
    options,
    peak_mb,
    publish,
    shown,
)

WORDS = 200
SAMPLE_SECONDS = 0.05
IN_TRANSACTION = 100
"""The rows or documents of a transaction of a user."""
SESSIONS = """
SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()
"""
LABELS = {
    "stored": "stored bytes of a document",
    "log": "log bytes of a document",
    "client": "client MB",
    "session": "session MB",
}


def anonymous_mb(process: int) -> float:
    """Return the memory of a process that it shares with no other one, in MB; 0 if it has ended."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    found = re.search(r"^Anonymous: +(\d+) kB", text, re.M)
    return int(found[1]) / 1024 if found else 0.0


class Sessions:
    """Watches the memory of the sessions of the server."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ended = threading.Event()
        self.peak = 0.0
        """The most memory of one session so far, in MB."""

    @contextmanager
    def watched(self) -> Iterator[Sessions]:
        """Watch until the block ends."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._ended.wait(SAMPLE_SECONDS):
                for (process,) in connection.execute(SESSIONS).fetchall():
                    self.peak = max(self.peak, anonymous_mb(process))


# The ways. Each writes into the corpus "c" with its table "post", and is called with the texts.

Texts = list[tuple[str, str]]


def load(db: ts.Database, texts: Texts) -> None:
    """Load all texts at once."""
    db.create_corpus("c").add_many(texts)


def load_exact(db: ts.Database, texts: Texts) -> None:
    """Load all texts at once into an exact corpus."""
    db.create_corpus("c", recall=1).add_many(texts)


def add_one_by_one(db: ts.Database, texts: Texts) -> None:
    """Add each text in a transaction of its own."""
    corpus = db.create_corpus("c")
    for key, text in texts:
        corpus.add(key, text)


def add_in_sql(db: ts.Database, texts: Texts) -> None:
    """Add each text by SQL."""
    db.create_corpus("c")
    call_each(db.url, "SELECT textsim.add('c', %s, %s)", texts)


def add_in_sql_and_give_ids(db: ts.Database, texts: Texts) -> None:
    """Add each text by SQL, and give all words ids."""
    add_in_sql(db, texts)
    db.worker().run(until_idle=True)


def add_unique(db: ts.Database, texts: Texts) -> None:
    """Add each text by SQL to a unique corpus, also if it matches another one."""
    db.create_corpus("c", is_unique=True)
    call_each(db.url, "SELECT textsim.add('c', %s, %s, force => true)", texts)


def attach_queue(db: ts.Database, texts: Texts) -> None:
    """Insert rows of an attached table; a worker indexes them."""
    create_table(db.url)
    db.create_corpus("c").attach("post", "id", "body")
    insert_rows(db.url, texts)
    db.worker().run(until_idle=True)


def attach_inline(db: ts.Database, texts: Texts) -> None:
    """Insert rows of an attached table, which indexes them at once; a worker gives words ids."""
    create_table(db.url)
    db.create_corpus("c").attach("post", "id", "body", mode="inline")
    insert_rows(db.url, texts)
    db.worker().run(until_idle=True)


def load_tracked(db: ts.Database, texts: Texts) -> None:
    """Load all texts at once, and compute their clusters."""
    corpus = db.create_corpus("c")
    corpus.track()
    corpus.add_many(texts)
    corpus.update_clusters()


def write_plain_rows(db: ts.Database, texts: Texts) -> None:
    """Rows of a table that is not attached; no documents."""
    create_table(db.url)
    insert_rows(db.url, texts)
    db.create_corpus("c")


WAYS: dict[str, Callable[[ts.Database, Texts], None]] = {
    "`add_many`": load,
    "`add_many`, exact": load_exact,
    "`add`, one by one": add_one_by_one,
    "`textsim.add` in SQL": add_in_sql,
    "... and a worker": add_in_sql_and_give_ids,
    "`textsim.add`, unique": add_unique,
    "attached, queue": attach_queue,
    "attached, inline": attach_inline,
    "`add_many`, tracked": load_tracked,
}
IN_SQL = {"`textsim.add` in SQL", "`textsim.add`, unique"}
"""Ways whose client needs nothing of the package."""
ATTACHED = {"attached, queue", "attached, inline"}


def create_table(url: str) -> None:
    """Create the table of the texts."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE post (id text PRIMARY KEY, body text)")


def insert_rows(url: str, texts: Texts) -> None:
    """Insert a row for each text."""
    call_each(url, "INSERT INTO post VALUES (%s, %s)", texts)


def call_each(url: str, statement: str, texts: Texts) -> None:
    """Run a statement for each text, some in each transaction."""
    with psycopg.connect(url) as connection:
        for start in range(0, len(texts), IN_TRANSACTION):
            with connection.transaction():
                for values in texts[start : start + IN_TRANSACTION]:
                    connection.execute(statement.encode(), values)


def measure(url: str, way: str, count: int) -> Figures:
    """Write the texts in this way, and return what it took; way: empty for a plain table."""
    texts = list(documents(count, WORDS))
    with open_bench(url) as bench:
        bench.connection.execute("CHECKPOINT")
        before = bench.log_position()
        forget_peak()
        with Sessions(url).watched() as sessions:
            WAYS.get(way, write_plain_rows)(bench.db, texts)
        return {
            "stored": bench.stored_bytes("c") / count,
            "log": (bench.log_position() - before) / count,
            "client": peak_mb(),
            "session": sessions.peak,
        }


def learn_words(bench: Bench, count: int) -> None:
    """Put all words into the dictionary."""
    corpus = bench.db.create_corpus("words")
    corpus.add_many(documents(count, WORDS))
    corpus.drop()


def measure_each(count: int) -> dict[str, Figures]:
    """Return the figures of each way."""
    sides: dict[str, Figures] = {}
    for way in ["", *WAYS]:
        with fresh_database() as bench:
            learn_words(bench, count)
            sides[way] = in_own_process(measure, bench.db.url, way, count)
    plain = sides.pop("")
    for way in IN_SQL:
        del sides[way]["client"]
    for way in ATTACHED:
        sides[way]["log"] -= plain["log"]
    return sides


def main() -> None:
    """Measure each way, and print the table."""
    given = options(__doc__, documents=10_000).parse_args()
    sides = measure_each(given.documents)
    rows = [["way of writing", *LABELS.values()]]
    rows += [
        [way, *(shown(round(side[name])) if name in side else "" for name in LABELS)]
        for way, side in sides.items()
    ]
    publish(
        given.record,
        "ways_of_writing",
        {"documents": given.documents} | sides,
        {"ways_of_writing": rows},
    )


if __name__ == "__main__":
    main()
