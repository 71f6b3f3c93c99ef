"""The cost of an attached table for writers, and the delay until its rows are found.

    python -m benchmarks.attached [--documents 100000] [--rows 300] [--record]

Each statement also runs on a table that is not attached, in turns. Figures are medians.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    fresh_database,
    identifier,
    in_turns,
    median_and_p99,
    milliseconds,
    options,
    publish,
    shown,
)

TABLES = ("plain", "queue", "inline")
WORDS = (50, 200, 1000)
ROUNDS = 7


def create_table(bench: Bench, name: str) -> None:
    """Create a table of texts, named as its corpus will be."""
    statement = f"CREATE TABLE {name} (id bigint PRIMARY KEY, body text, other int)"
    bench.connection.execute(statement.encode())


def texts_of(count: int, words: int, seed: int) -> list[str]:
    """Return texts that are not similar to each other."""
    return [text for _, text in documents(count, words, planted=0, seed=seed)]


def insert(bench: Bench, table: str, texts: list[str], key: int) -> float:
    """Insert rows in one statement, and return the milliseconds; key: the first key."""
    statement = f"INSERT INTO {table} SELECT * FROM unnest(%s::bigint[], %s::text[])".encode()
    keys = list(range(key, key + len(texts)))
    return milliseconds(lambda: bench.connection.execute(statement, [keys, texts], prepare=True))


def single_rows(bench: Bench, rows: int) -> Figures:
    """Return the cost of inserts of one row."""
    figures = {}
    for words in WORDS:
        texts = texts_of(rows, words, seed=words)

        def add(table: str, number: int, texts: list[str] = texts, words: int = words) -> float:
            return insert(bench, table, [texts[number]], words * 10**9 + number)

        times = in_turns({table: partial(add, table) for table in TABLES}, rows)
        plain, *attached = (statistics.median(times[table]) for table in TABLES)
        figures[f"one row of {words} words, plain table, ms"] = plain
        for table, value in zip(TABLES[1:], attached, strict=True):
            figures[f"one row of {words} words, {table}, ms on top"] = value - plain
    return figures


def many_rows(bench: Bench, count: int) -> Figures:
    """Return the cost of inserts and updates of many rows."""
    texts = texts_of(count, 200, seed=7)
    first = 2 * 10**12

    def add(table: str, number: int) -> float:
        return insert(bench, table, texts, first + number * 10**6)

    def update(table: str, number: int) -> float:
        statement = f"UPDATE {table} SET other = {number} WHERE id BETWEEN %s AND %s".encode()
        return milliseconds(bench.connection.execute, statement, [first, first + count])

    inline = add("inline", 0)
    inserts = in_turns({table: partial(add, table) for table in TABLES[:2]}, ROUNDS)
    updates = in_turns({table: partial(update, table) for table in TABLES[:2]}, ROUNDS)
    return {
        f"{count:,} rows, inline, ms a row on top": (inline - inserts["plain"][0]) / count,
        f"{count:,} rows in one insert, queue, % on top": percent_on_top(inserts),
        f"{count:,} rows, update of another column, queue, % on top": percent_on_top(updates),
    }


def percent_on_top(times: dict[str, list[float]]) -> float:
    """Return by how many percent the attached table is slower than the plain table."""
    return 100 * statistics.median(times["queue"]) / statistics.median(times["plain"]) - 100


@contextmanager
def working(bench: Bench, workers: int = 1, until_idle: bool = False, **how: Any) -> Iterator[None]:
    """Run workers in threads; if they run until they are idle, wait for that."""
    running = [bench.db.worker(**how) for _ in range(workers)]
    threads = [threading.Thread(target=worker.run, args=[until_idle]) for worker in running]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for worker in running if not until_idle else []:
            worker.stop()
        for thread in threads:
            thread.join()


def delays(bench: Bench, rows: int) -> Figures:
    """Return the delay from the commit of a row until a query finds it, one row at a time."""
    figures = {}
    corpus, texts = bench.db.corpus("queue"), texts_of(rows, 200, seed=99)
    ways: dict[str, dict[str, Any]] = {
        "polling": {},
        "listening": {"listen": True, "poll": 1.0},
    }
    for place, (way, how) in enumerate(ways.items(), start=5):

        def delay(key: int, text: str) -> float:
            insert(bench, "queue", [text], key)
            start = time.perf_counter()
            while str(key) not in [match.key for match in corpus.query(text, 1.0)]:
                time.sleep(0.001)
            return (time.perf_counter() - start) * 1000

        with working(bench, **how):
            bench.connection.execute("SELECT set_config('textsim.notify', 'on', false)")
            keys = range(place * 10**12, place * 10**12 + rows)
            median, p99 = median_and_p99(map(delay, keys, texts))
            bench.connection.execute("SELECT set_config('textsim.notify', 'off', false)")
        figures[f"from commit to findable, {way}, median ms"] = median
        figures[f"from commit to findable, {way}, p99 ms"] = p99
        bench.connection.execute("TRUNCATE queue")
    return figures


def throughput(bench: Bench, count: int) -> Figures:
    """Return how fast workers index, and how fast reconcile compares."""
    create_table(bench, "bulk")
    corpus = bench.db.create_corpus("bulk")
    corpus.attach("bulk", "id", "body")
    for first in range(0, count, 10_000):
        insert(bench, "bulk", texts_of(min(10_000, count - first), 200, seed=first), first)
    start = time.perf_counter()
    with working(bench, workers=2, until_idle=True):
        pass
    seconds = time.perf_counter() - start
    assert len(corpus) == count
    return {
        "workers (two threads), documents/s": count / seconds,
        "reconcile, nothing to mend, rows/s": 1000 * count / milliseconds(corpus.reconcile),
    }


def index_pending(bench: Bench, count: int) -> Figures:
    """Return how fast SQL alone indexes a table that was filled before."""
    create_table(bench, "by_sql")
    insert(bench, "by_sql", texts_of(count, 200, seed=11), 0)
    corpus = bench.db.create_corpus("by_sql")
    bench.connection.execute("SELECT textsim.attach('by_sql', 'by_sql', 'id', 'body')")
    taken = milliseconds(bench.connection.execute, b"CALL textsim.index_pending('by_sql')")
    assert len(corpus) == count
    return {"index_pending, documents/s": 1000 * count / taken}


def measure(bench: Bench, count: int, rows: int) -> Iterator[Figures]:
    """Yield the figures of each part."""
    for name in TABLES:
        create_table(bench, name)
        if name != "plain":
            bench.db.create_corpus(name).attach(name, "id", "body", name)
    yield single_rows(bench, rows)
    yield many_rows(bench, min(10_000, count))
    bench.connection.execute("TRUNCATE plain, queue, inline")
    bench.db.worker().run(until_idle=True)
    yield delays(bench, rows)
    yield throughput(bench, count)
    yield index_pending(bench, min(5_000, count))


def main() -> None:
    """Measure each part, and print the figures."""
    given = options(__doc__, documents=100_000, rows=300).parse_args()
    figures: Figures = {}
    with fresh_database() as bench:
        for measured in measure(bench, given.documents, given.rows):
            figures |= measured
    rows = [["", "median"], *([name, shown(value)] for name, value in figures.items())]
    named = {identifier(name): value for name, value in figures.items()}
    publish(given.record, "attached", named, {"attached": rows})


if __name__ == "__main__":
    main()
