"""The disk that updates of all rows of an attached table take, and ways to get it back.

    python -m benchmarks.updates [--documents 100000] [--rounds 5] [--record]

Each round changes the text of every row in one statement, and a worker indexes the changes. Autovacuum
has the settings of the server.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import psycopg

import textsim_db as ts
from benchmarks.generate import documents
from benchmarks.record import add_option, record

Connection = psycopg.Connection[Any]
Sizes = dict[str, float]
NAME = "updates"
CHANGE_ALL = """
UPDATE bench_updates.post p SET body = q.body
FROM bench_updates.post q WHERE q.id = (p.id + 1) % (SELECT count(*) FROM bench_updates.post)
"""
"""Each row gets the text of the next row, so that all its shingles change."""


def fill(connection: Connection, count: int) -> None:
    """Create a table with texts of 200 words."""
    connection.execute("DROP SCHEMA IF EXISTS bench_updates CASCADE")
    connection.execute("CREATE SCHEMA bench_updates")
    connection.execute("CREATE TABLE bench_updates.post (id bigint PRIMARY KEY, body text)")
    with connection.cursor().copy("COPY bench_updates.post FROM STDIN") as copy:
        for number, (_, text) in enumerate(documents(count, 200)):
            copy.write_row((number, text))


def sizes(connection: Connection, corpus_id: int) -> Sizes:
    """Return the megabytes of the documents and of the band rows, with their indexes, and of the log."""
    tables = (f"document_{corpus_id}", f"band_{corpus_id}", "pending")
    found: Sizes = {}
    for label, table in zip(("documents", "bands", "log"), tables, strict=True):
        row = connection.execute(
            "SELECT pg_total_relation_size(%s::regclass)", [f"textsim.{table}"]
        ).fetchone()
        found[label] = round((row or [0])[0] / 1e6, 1)
    return found


def corpus_id_of(connection: Connection) -> int:
    """Return the id of the corpus, which a rebuild changes."""
    row = connection.execute("SELECT id FROM textsim.corpus WHERE name = %s", [NAME]).fetchone()
    assert row is not None
    return int(row[0])


def seconds(started: float) -> float:
    """Return the seconds since a start."""
    return round(time.perf_counter() - started, 1)


def drop(db: ts.Database) -> None:
    """Drop the corpus of an earlier run."""
    if NAME in db.corpora():
        corpus = db.corpus(NAME)
        for source in db.sources():
            if source.corpus == NAME:
                corpus.detach(source.table)
        db.drop_corpus(NAME)


def measure(db: ts.Database, count: int, rounds: int) -> dict[str, Sizes]:
    """Return the sizes after each step."""
    drop(db)
    steps: dict[str, Sizes] = {}

    def note(step: str, started: float) -> None:
        steps[step] = sizes(connection, corpus_id_of(connection)) | {"seconds": seconds(started)}
        print(step, steps[step], flush=True)

    with psycopg.connect(db.url, autocommit=True) as connection:
        fill(connection, count)
        started = time.perf_counter()
        corpus = db.create_corpus(NAME)
        corpus.attach("bench_updates.post", "id", "body")
        note("loaded", started)
        for number in range(1, rounds + 1):
            started = time.perf_counter()
            connection.execute(CHANGE_ALL)
            db.worker().run(until_idle=True)
            note(f"updated_{number}", started)
        number = corpus_id_of(connection)
        started = time.perf_counter()
        connection.execute(f"VACUUM textsim.document_{number}, textsim.band_{number}".encode())
        note("vacuumed", started)
        started = time.perf_counter()
        connection.execute(CHANGE_ALL)
        db.worker().run(until_idle=True)
        note("updated_after_vacuum", started)
        started = time.perf_counter()
        connection.execute(f"REINDEX INDEX CONCURRENTLY textsim.band_{number}_bucket".encode())
        note("reindexed", started)
        started = time.perf_counter()
        corpus.rebuild()
        note("rebuilt", started)
        number = corpus_id_of(connection)
        connection.execute(CHANGE_ALL)
        db.worker().run(until_idle=True)
        started = time.perf_counter()
        connection.execute(f"VACUUM FULL textsim.document_{number}".encode())
        connection.execute(f"VACUUM FULL textsim.band_{number}".encode())
        note("vacuumed_full", started)
    drop(db)
    return steps


def main() -> None:
    """Measure, print, and record with --record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    add_option(parser)
    arguments = parser.parse_args()
    with ts.connect() as db:
        steps = measure(db, arguments.documents, arguments.rounds)
    if arguments.record:
        record(NAME, steps, {})


if __name__ == "__main__":
    main()
