"""The disk that updates of all rows of an attached table take, and ways to get it back.

    python -m benchmarks.updates [--documents 100000] [--rounds 5] [--record]

Each round changes the text of every row in one statement, and a worker indexes the changes. Autovacuum
has the settings of the server.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    fresh_database,
    milliseconds,
    options,
    publish,
    table_of,
)

NAME = "updates"
CHANGE_ALL = """
UPDATE post p SET body = q.body FROM post q WHERE q.id = (p.id + 1) % (SELECT count(*) FROM post)
"""
"""Each row gets the text of the next row, so that all its shingles change."""
LABELS = {
    "documents": "documents, MB",
    "bands": "band rows, MB",
    "log": "log of changes, MB",
    "seconds": "s",
}


def fill(bench: Bench, count: int) -> None:
    """Create a table with texts of 200 words."""
    bench.connection.execute("CREATE TABLE post (id bigint PRIMARY KEY, body text)")
    with bench.connection.cursor().copy("COPY post FROM STDIN") as copy:
        for number, (_, text) in enumerate(documents(count, 200)):
            copy.write_row((number, text))


def sizes(bench: Bench) -> Figures:
    """Return the megabytes of the documents and of the band rows, with their indexes, and of the log."""
    tables = {
        "documents": bench.relation("document", NAME),
        "bands": bench.relation("band", NAME),
        "log": "textsim.pending",
    }
    return {
        label: round(bench.number("SELECT pg_total_relation_size(%s::regclass)", table) / 1e6, 1)
        for label, table in tables.items()
    }


def measure(bench: Bench, count: int, rounds: int) -> dict[str, Figures]:
    """Return the sizes after each step, and the seconds that it took."""
    fill(bench, count)
    corpus = bench.db.create_corpus(NAME)

    def run(statement: str, kind: str = "") -> None:
        relation = bench.relation(kind, NAME) if kind else ""
        bench.connection.execute(statement.format(relation).encode())

    def update() -> None:
        run(CHANGE_ALL)
        bench.db.worker().run(until_idle=True)

    def vacuum() -> None:
        run("VACUUM {}", "document")
        run("VACUUM {}", "band")

    def vacuum_full() -> None:
        run("VACUUM FULL {}", "document")
        run("VACUUM FULL {}", "band")

    steps: dict[str, Callable[[], object]] = {
        "loaded": lambda: corpus.attach("post", "id", "body"),
        **{f"updated_{number}": update for number in range(1, rounds + 1)},
        "vacuumed": vacuum,
        "updated_after_vacuum": update,
        "reindexed": lambda: run("REINDEX INDEX CONCURRENTLY {}_bucket", "band"),
        "rebuilt": corpus.rebuild,
        "updated_after_rebuild": update,
        "vacuumed_full": vacuum_full,
    }
    figures: dict[str, Figures] = {}
    for name, step in steps.items():
        seconds = milliseconds(step) / 1000
        figures[name] = sizes(bench) | {"seconds": round(seconds, 1)}
    return figures


def main() -> None:
    """Measure each step, and print a table."""
    given = options(__doc__, documents=100_000, rounds=5).parse_args()
    with fresh_database() as bench:
        figures = measure(bench, given.documents, given.rounds)
    rows = zip(*table_of(figures, LABELS), strict=True)
    publish(given.record, NAME, figures, {NAME: [list(row) for row in rows]})


if __name__ == "__main__":
    main()
