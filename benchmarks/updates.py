"""The disk that updates of all rows of an attached table take, and ways to get it back.

    python -m benchmarks.updates [--documents 100000] [--rounds 5] [--record]

Each round changes the text of every row in one statement, and a worker indexes the changes. Autovacuum
has the settings of the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.generate import documents
from benchmarks.harness import Bench, Figures, fresh_database, options, publish

CHANGE_ALL = """
UPDATE post p SET body = q.body
FROM post q WHERE q.id = (p.id + 1) % (SELECT count(*) FROM post)
"""
"""Each row gets the text of the next row, so that all its shingles change."""


def fill(bench: Bench, count: int) -> None:
    """Create a table with texts of 200 words, and index it."""
    bench.connection.execute("CREATE TABLE post (id bigint PRIMARY KEY, body text)")
    with bench.connection.cursor().copy("COPY post FROM STDIN") as copy:
        for number, (_, text) in enumerate(documents(count, 200)):
            copy.write_row((number, text))
    bench.db.create_corpus("posts").attach("post", "id", "body")
    bench.db.worker().run(until_idle=True)


def change_all(bench: Bench) -> None:
    """Change all texts, and index them."""
    bench.connection.execute(CHANGE_ALL)
    bench.db.worker().run(until_idle=True)


def vacuum(bench: Bench, options: str = "") -> None:
    """Run VACUUM with these options."""
    document, band = tables_of(bench)
    bench.connection.execute(f"VACUUM {options} {document}, {band}".encode())


def reindex(bench: Bench) -> None:
    """Build the index of the band rows anew."""
    _, band = tables_of(bench)
    bench.connection.execute(f"REINDEX INDEX CONCURRENTLY {band}_bucket".encode())


def tables_of(bench: Bench) -> tuple[str, str]:
    """Return the tables of the documents and of the band rows; a rebuild makes new tables."""
    return bench.relation("document", "posts"), bench.relation("band", "posts")


def sizes(bench: Bench) -> Figures:
    """Return the megabytes of the documents, the band rows and the log, with their indexes."""
    tables = (*tables_of(bench), "textsim.pending")
    return {
        label: round(bench.number("SELECT pg_total_relation_size(%s::regclass)", table) / 1e6, 1)
        for label, table in zip(("documents", "bands", "log"), tables, strict=True)
    }


def measure(bench: Bench, count: int, rounds: int) -> Figures:
    """Return the sizes and the seconds of each step."""
    steps: list[tuple[str, Callable[[], object]]] = [
        ("loaded", lambda: fill(bench, count)),
        *[(f"updated_{number}", lambda: change_all(bench)) for number in range(1, rounds + 1)],
        ("vacuumed", lambda: vacuum(bench)),
        ("updated_after_vacuum", lambda: change_all(bench)),
        ("reindexed", lambda: reindex(bench)),
        ("rebuilt", lambda: bench.db.corpus("posts").rebuild()),
        ("updated_after_rebuild", lambda: change_all(bench)),
        ("vacuumed_full", lambda: vacuum(bench, "(FULL)")),
    ]
    figures: Figures = {}
    for name, step in steps:
        start = time.perf_counter()
        step()
        figures[name] = sizes(bench) | {"seconds": round(time.perf_counter() - start, 1)}
        print(name, figures[name], flush=True)
    return figures


def main() -> None:
    """Measure, print, and record with --record."""
    arguments = options(__doc__, documents=100_000, rounds=5).parse_args()
    with fresh_database() as bench:
        figures = measure(bench, arguments.documents, arguments.rounds)
    publish(arguments.record, "updates", figures, {})


if __name__ == "__main__":
    main()
