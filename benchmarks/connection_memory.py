"""The memory that a connection keeps for each corpus that it has used from SQL.

    python -m benchmarks.connection_memory [--corpora 50] [--record]

One connection calls add, matches, neighbours and remove in one corpus after another. The figure is the
growth of its memory on the server, divided by the number of corpora.
"""

from __future__ import annotations

from benchmarks.harness import Bench, Connection, fresh_database, options, publish

CALLS = (
    "SELECT textsim.add(%(corpus)s, 'key', 'one two three four five')",
    "SELECT * FROM textsim.matches(%(corpus)s, 'one two three four')",
    "SELECT * FROM textsim.neighbours(%(corpus)s, 'key')",
    "SELECT textsim.remove(%(corpus)s, 'key')",
)
SHARED = 10
"""The corpora that are used before: later corpora share the plans of all other functions."""
# Executors of this statement are no memory that the connection keeps.
KEPT_BYTES = """
SELECT sum(total_bytes) FROM pg_backend_memory_contexts
WHERE name NOT IN ('ExecutorState', 'ExprContext', 'tuplestore tuples')
"""


def use(connection: Connection, corpus: str) -> None:
    """Call each function once in a corpus."""
    for call in CALLS:
        connection.execute(call.encode(), {"corpus": corpus})


def measure(bench: Bench, count: int, is_unique: bool) -> float:
    """Return the kB that the connection keeps for a corpus."""
    names = [f"{'unique' if is_unique else 'plain'} {number}" for number in range(SHARED + count)]
    for name in names:
        bench.db.create_corpus(name, is_unique=is_unique)
    for name in names[:SHARED]:
        use(bench.connection, name)
    before = bench.number(KEPT_BYTES)
    for name in names[SHARED:]:
        use(bench.connection, name)
    return float(bench.number(KEPT_BYTES) - before) / count / 1000


def main() -> None:
    """Measure corpora and unique corpora, and print the table."""
    parser = options(__doc__)
    parser.add_argument("--corpora", type=int, default=50, help="number of corpora (default: 50)")
    given = parser.parse_args()
    with fresh_database() as bench:
        plain, unique = (measure(bench, given.corpora, is_unique) for is_unique in (False, True))
    print(
        f"a connection keeps {plain:.0f} kB for a corpus, and {unique:.0f} kB for a unique corpus"
    )
    figures = {"plain_kB": plain, "unique_kB": unique}
    publish(given.record, "connection_memory", figures, {})


if __name__ == "__main__":
    main()
