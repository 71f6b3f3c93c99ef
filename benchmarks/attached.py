"""The cost of an attached table for writers, and the delay until its rows are found; embedded server.

    python -m benchmarks.attached [--documents 100000]

Each statement also runs on a table that is not attached, in alternating rounds. Figures are medians.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import sql

import textsim_db as ts
from benchmarks.generate import documents
from benchmarks.record import add_option, identifier, record, shown

Connection = psycopg.Connection[Any]
Figures = dict[str, float]
TABLES = ("plain", "queue", "inline")


def milliseconds(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1000


def make_tables(db: ts.Database, connection: Connection) -> None:
    """Create the same table three times, and attach two of them."""
    connection.execute("DROP SCHEMA IF EXISTS bench CASCADE")
    for name in {*TABLES, "bulk", "sql"} & set(db.corpora()):
        db.drop_corpus(name)
    connection.execute("CREATE SCHEMA bench")
    for name in TABLES:
        create_table(connection, name)
        if name != "plain":
            db.create_corpus(name).attach(f"bench.{name}", "id", "body", name)


def create_table(connection: Connection, name: str) -> None:
    """Create a table of texts."""
    statement = sql.SQL("CREATE TABLE bench.{} (id bigint PRIMARY KEY, body text, other int)")
    connection.execute(statement.format(sql.Identifier(name)))


def insert_one(connection: Connection, table: str, number: int, text: str) -> float:
    """Insert a row in its own transaction and return the milliseconds."""
    statement = f"INSERT INTO bench.{table} VALUES (%s, %s)".encode()
    return milliseconds(lambda: connection.execute(statement, [number, text], prepare=True))


def insert_many(connection: Connection, table: str, first: int, texts: list[str]) -> float:
    """Insert rows in one statement and return the milliseconds."""
    statement = f"INSERT INTO bench.{table} SELECT * FROM unnest(%s::bigint[], %s::text[])"
    numbers = list(range(first, first + len(texts)))
    return milliseconds(lambda: connection.execute(statement.encode(), [numbers, texts]))


def singles(connection: Connection, words: int, count: int) -> Figures:
    """Return the cost of single inserts."""
    texts = [text for _, text in documents(count, words, seed=words)]
    found: dict[str, list[float]] = {name: [] for name in TABLES}
    for number, text in enumerate(texts):
        for name in TABLES:
            key = words * 10**9 + number
            found[name].append(insert_one(connection, name, key, text))
    plain = statistics.median(found["plain"])
    return {f"one row of {words} words, plain table, ms": plain} | {
        f"one row of {words} words, {name}, ms on top": statistics.median(found[name]) - plain
        for name in TABLES[1:]
    }


def multi_rows(connection: Connection) -> Figures:
    """Return the cost of inserts and updates of 10,000 rows."""
    figures = {}
    texts = [text for _, text in documents(10_000, 200, seed=7)]
    ratios = []
    for number in range(7):
        first = 2 * 10**12 + number * 10**6
        plain = insert_many(connection, "plain", first, texts)
        queue = insert_many(connection, "queue", first, texts)
        ratios.append(queue / plain)
        if not number:
            inline = insert_many(connection, "inline", first, texts)
            figures["10,000 rows, inline, ms a row on top"] = (inline - plain) / 10_000
    figures["10,000 rows in one insert, queue, % on top"] = statistics.median(ratios) * 100 - 100
    ratios = []
    for _ in range(7):
        update = "UPDATE bench.{} SET other = coalesce(other, 0) + 1 WHERE id < 2000000100000"
        plain, queue = (
            milliseconds(partial(connection.execute, update.format(name).encode()))
            for name in ("plain", "queue")
        )
        ratios.append(queue / plain)
    figures["update of another column, queue, % on top"] = statistics.median(ratios) * 100 - 100
    return figures


@contextmanager
def working(db: ts.Database, **options: Any) -> Iterator[None]:
    """Run a worker in a thread."""
    worker = db.worker(**options)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join()


def latency(db: ts.Database, connection: Connection, count: int) -> Figures:
    """Return the delay from the commit of a row until a query finds it, one row at a time."""
    figures = {}
    corpus = db.corpus("queue")
    texts = [text for _, text in documents(count, 200, seed=99, planted=0)]
    ways: tuple[dict[str, Any], ...] = ({}, {"listen": True, "poll": 1.0})
    for options in ways:
        delays = []
        with working(db, **options):
            connection.execute("SELECT set_config('textsim.notify', %s, false)", ["on"])
            for number, text in enumerate(texts):
                key = (5 if options else 6) * 10**12 + number
                insert_one(connection, "queue", key, text)
                start = time.perf_counter()
                while str(key) not in [match.key for match in corpus.query(text, 1.0)]:
                    time.sleep(0.001)
                delays.append((time.perf_counter() - start) * 1000)
            connection.execute("SELECT set_config('textsim.notify', 'off', false)")
        how = "listening" if options else "polling"
        name = f"from commit to findable, {how}"
        figures[f"{name}, median ms"] = statistics.median(delays)
        figures[f"{name}, p99 ms"] = sorted(delays)[int(len(delays) * 0.99)]
    return figures


def throughput(db: ts.Database, connection: Connection, count: int) -> Figures:
    """Return how fast workers index, and how fast reconcile compares."""
    create_table(connection, "bulk")
    corpus = db.create_corpus("bulk")
    corpus.attach("bench.bulk", "id", "body")
    for first in range(0, count, 10_000):
        texts = [text for _, text in documents(10_000, 200, seed=first)]
        insert_many(connection, "bulk", first, texts)
    start = time.perf_counter()
    workers = [db.worker() for _ in range(2)]
    threads = [threading.Thread(target=worker.run, args=[True]) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    indexed = time.perf_counter() - start
    assert len(corpus) == count
    compared = milliseconds(lambda: corpus.reconcile()) / 1000
    return {
        "workers (two threads), documents/s": count / indexed,
        "reconcile, nothing to mend, rows/s": count / compared,
    }


def index_pending(db: ts.Database, connection: Connection, count: int) -> Figures:
    """Return how fast SQL alone indexes a table that was filled before."""
    create_table(connection, "sql")
    texts = [text for _, text in documents(count, 200, seed=11)]
    insert_many(connection, "sql", 0, texts)
    corpus = db.create_corpus("sql")
    connection.execute("SELECT textsim.attach('sql', 'bench.sql', 'id', 'body')")
    seconds = milliseconds(lambda: connection.execute("CALL textsim.index_pending('sql')")) / 1000
    assert len(corpus) == count
    return {"index_pending, documents/s": count / seconds}


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--database-url")
    add_option(parser)
    arguments = parser.parse_args()
    with (
        ts.connect(arguments.database_url) as db,
        psycopg.connect(db.url, autocommit=True) as connection,
    ):
        figures: Figures = {}
        for measured in measure(db, connection, arguments.documents):
            for name, value in measured.items():
                print(f"{name}: {shown(value)}", flush=True)
            figures |= measured
    if arguments.record:
        rows = [[name, shown(value)] for name, value in figures.items()]
        named = {identifier(name): value for name, value in figures.items()}
        record("attached", named, {"attached": [["", "median"], *rows]})


def measure(db: ts.Database, connection: Connection, count: int) -> Iterator[Figures]:
    """Yield the figures of each part; count: the rows that workers index."""
    make_tables(db, connection)
    for words, rows in ((50, 300), (200, 300), (1000, 100)):
        yield singles(connection, words, rows)
    yield multi_rows(connection)
    connection.execute("TRUNCATE bench.queue, bench.inline, bench.plain")
    db.worker().run(until_idle=True)
    yield latency(db, connection, 200)
    yield throughput(db, connection, count)
    yield index_pending(db, connection, 5_000)


if __name__ == "__main__":
    main()
