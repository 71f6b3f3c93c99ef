"""The time of lists and look-ups of candidate pairs in SQL, in a database with many corpora.

    python -m benchmarks.candidate_pairs [--documents 60000] [--small 100] [--record]

There are two corpora of --documents each, and --small corpora of 100 documents. Each statement is
cancelled after --limit seconds. "expected" is the planner's estimate of the rows.
"""

from __future__ import annotations

import time

from psycopg import errors

from benchmarks.generate import documents
from benchmarks.harness import Bench, fresh_database, options, publish, shown

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
MINE = """
CREATE TABLE mine AS
SELECT a AS key FROM (SELECT DISTINCT a FROM textsim.pairs('one') ORDER BY a LIMIT 50) p
UNION SELECT key FROM (SELECT key FROM {documents} ORDER BY md5(key) LIMIT 50) q
"""


def make_corpora(bench: Bench, count: int, small: int) -> None:
    """Create the corpora, a view of pairs, and a table of 100 keys, half of them in pairs."""
    for seed, name in enumerate(("one", "two"), start=1):
        bench.db.create_corpus(name).add_many(documents(count, seed=seed))
    for number in range(small):
        corpus = bench.db.create_corpus(f"small {number}")
        corpus.add_many(documents(SMALL_DOCUMENTS, seed=100 + number))
    mine = MINE.format(documents=bench.relation("document", "one"))
    bench.connection.execute(mine.encode())
    bench.connection.execute("ANALYZE mine")
    bench.connection.execute("SELECT textsim.create_view('one', 'one_pairs')")


def measure(bench: Bench, statement: str) -> list[str]:
    """Run a statement three times; return the shortest time, the rows, and their estimate."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        try:
            rows = len(bench.connection.execute(statement.encode()).fetchall())
        except errors.QueryCanceled:
            return [f"cancelled after {1000 * (time.perf_counter() - start):,.0f}", "", ""]
        seconds.append(time.perf_counter() - start)
    plan = bench.number(f"EXPLAIN (FORMAT JSON) {statement}")[0]["Plan"]
    return [shown(1000 * min(seconds)), f"{rows:,}", f"{plan['Plan Rows']:,}"]


def main() -> None:
    """Measure each statement, and print a table."""
    given = options(__doc__, documents=60_000, small=100, limit=120).parse_args()
    with fresh_database() as bench:
        make_corpora(bench, given.documents, given.small)
        key = bench.number("SELECT min(a) FROM textsim.pairs('one')")
        bench.connection.execute(f"SET statement_timeout = '{given.limit}s'".encode())
        rows = [
            [name, *measure(bench, statement.format(key=key))]
            for name, statement in STATEMENTS.items()
        ]
    title = f"2 x {given.documents:,} documents, {given.small} corpora of 100"
    table = [[title, "ms", "rows", "rows expected"], *rows]
    publish(given.record, "candidate_pairs", {}, {"candidate_pairs": table})


if __name__ == "__main__":
    main()
