"""The time of lists and look-ups of candidate pairs in SQL, in a database with many corpora.

    python -m benchmarks.candidate_pairs [--database-url URL] [--documents 60000] [--small 100]

There are two corpora of --documents each, and --small corpora of 100 documents. Each statement is
cancelled after --limit seconds. "expected" is the planner's estimate of the rows.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import psycopg
from psycopg import errors as pg

import textsim_db as ts
from benchmarks.generate import documents

Connection = psycopg.Connection[Any]
SMALL_DOCUMENTS = 100

STATEMENTS = {
    "pairs: the verified list": "SELECT * FROM textsim.pairs('one')",
    "candidate_pairs: the list": "SELECT * FROM textsim.candidate_pairs('one')",
    "candidate_pairs: a condition on a": (
        "SELECT * FROM textsim.candidate_pairs('one') WHERE a = '{key}'"
    ),
    "candidate_pairs: one key": "SELECT * FROM textsim.candidate_pairs('one', '{key}')",
    "candidate_pairs: LATERAL join, 100 keys": (
        "SELECT m.key, p.* FROM mine m CROSS JOIN LATERAL textsim.candidate_pairs('one', m.key) p"
    ),
    "view: the list": "SELECT * FROM one_pairs",
    "view: a condition on a": "SELECT * FROM one_pairs WHERE a = '{key}'",
    "view: join, 100 keys": "SELECT * FROM mine m JOIN one_pairs p ON p.a = m.key",
}


def make_corpora(db: ts.Database, count: int, small: int) -> None:
    """Create the corpora with their documents, unless an earlier run has created them."""
    existing = set(db.corpora())
    for seed, name in enumerate(("one", "two"), start=1):
        if name not in existing:
            db.create_corpus(name).add_many(documents(count, seed=seed))
    for number in range(small):
        name = f"small {number}"
        if name not in existing:
            db.create_corpus(name).add_many(documents(SMALL_DOCUMENTS, seed=100 + number))


def make_table(connection: Connection) -> str:
    """Create a table of 100 keys, half of them in pairs, and return a key of a pair."""
    connection.execute("DROP TABLE IF EXISTS mine")
    connection.execute("CREATE TABLE mine (key text PRIMARY KEY)")
    connection.execute(
        "INSERT INTO mine SELECT a FROM ("
        "SELECT DISTINCT a FROM textsim.pairs('one') ORDER BY a LIMIT 50) p "
        "UNION SELECT key FROM ("
        "SELECT key FROM textsim.document_1 ORDER BY md5(key) LIMIT 50) q"
    )
    connection.execute("ANALYZE mine")
    row = connection.execute("SELECT min(a) FROM textsim.pairs('one')").fetchone()
    assert row is not None
    return str(row[0])


def make_view(connection: Connection) -> None:
    """Create the view over the first corpus."""
    connection.execute("DROP VIEW IF EXISTS one_pairs")
    connection.execute("SELECT textsim.create_view('one', 'one_pairs')")


def measure(connection: Connection, statement: str) -> str:
    """Run a statement three times and return the shortest time, its rows and their estimate."""
    seconds = []
    rows = 0
    for _ in range(3):
        start = time.perf_counter()
        try:
            rows = len(connection.execute(statement.encode()).fetchall())
        except pg.QueryCanceled:
            return f"cancelled after {time.perf_counter() - start:.0f} s"
        except (pg.UndefinedFunction, pg.UndefinedTable):
            return "does not exist"
        seconds.append(time.perf_counter() - start)
    return f"{min(seconds) * 1000:,.1f} ms, {rows:,} rows"


def estimate(connection: Connection, statement: str) -> str:
    """Return the number of rows that the planner expects."""
    try:
        row = connection.execute(f"EXPLAIN (FORMAT JSON) {statement}".encode()).fetchone()
    except (pg.UndefinedFunction, pg.UndefinedTable):
        return ""
    assert row is not None
    return f"; {row[0][0]['Plan']['Plan Rows']:,} expected"


def main() -> None:
    """Print a line for each statement."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--database-url", help="default: the embedded PostgreSQL")
    parser.add_argument("--documents", type=int, default=60_000, help="in each of two corpora")
    parser.add_argument(
        "--small", type=int, default=100, help="further corpora, 100 documents each"
    )
    parser.add_argument(
        "--limit", type=int, default=120, help="seconds until a statement is cancelled"
    )
    options = parser.parse_args()
    if options.database_url:
        ts.install(options.database_url)
    with ts.connect(options.database_url) as db:
        make_corpora(db, options.documents, options.small)
        with psycopg.connect(db.url, autocommit=True) as connection:
            print(f"PostgreSQL {connection.info.parameter_status('server_version')}", end=", ")
            print(f"2 x {options.documents:,} documents, {options.small} corpora of 100")
            key = make_table(connection)
            try:
                make_view(connection)
            except pg.UndefinedFunction:
                print("no view: textsim.create_view does not exist")
            connection.execute(f"SET statement_timeout = '{options.limit}s'".encode())
            for name, statement in STATEMENTS.items():
                filled = statement.format(key=key)
                result, expected = measure(connection, filled), estimate(connection, filled)
                print(f"{name}: {result}{expected}", flush=True)


if __name__ == "__main__":
    main()
