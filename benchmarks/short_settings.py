"""The space of short texts: exact corpora of other shingles and thresholds, and what each of them finds.

    python -m benchmarks.short_settings FILE... [--strings 100000] [--queries 50] [--record]

The strings and the queries are those of short_texts.
"""

from __future__ import annotations

import random
import statistics
from functools import partial
from pathlib import Path

from benchmarks.exact import nanoseconds
from benchmarks.harness import (
    Bench,
    Figures,
    fresh_database,
    identifier,
    options,
    publish,
    table_of,
)
from benchmarks.short_texts import GROUPS, INSERTS, Strings, make_queries, read_strings

SETTINGS = (
    *(f"char:5 at {threshold}" for threshold in (0.5, 0.6, 0.7, 0.8, 0.9)),
    *(f"{shingle} at 0.7" for shingle in ("char:3", "char:4")),
    *(f"word:1 at {threshold}" for threshold in (0.5, 0.6, 0.7, 0.8)),
)
LABELS = {
    "rows": "band rows a string",
    "bytes": "bytes a string",
    "processor_ms": "look-up, processor ms",
    "one_edit_found": "one edit, found",
    "two_edits_found": "two edits, found",
    "short_found": "11 characters, found",
}
TOTAL_BYTES = "SELECT pg_total_relation_size(%s)"


def measure_setting(bench: Bench, name: str, strings: Strings, queries: Strings) -> Figures:
    """Load a corpus with the shingle and threshold of its name, and look the queries up."""
    shingle, threshold = name.split(" at ")
    corpus = bench.db.create_corpus(name, shingle=shingle, threshold=float(threshold), recall=1.0)
    figures = bench.load(corpus, strings)
    figures["bytes"] += bench.number(TOTAL_BYTES, bench.relation("word", name)) / len(strings)
    rows = bench.number(f"SELECT count(*) FROM {bench.relation('band', name)}")
    figures["rows"] = rows / len(strings)
    backend = [bench.connection.info.backend_pid]
    look_up = partial(bench.connection.execute, "SELECT key FROM textsim.matches(%s, %s)")
    for _, text in queries[:10]:
        look_up([name, text])
    before = nanoseconds(backend)
    is_found = [key in {each for (each,) in look_up([name, text])} for key, text in queries]
    figures["processor_ms"] = (nanoseconds(backend) - before) / 1e6 / len(queries)
    for first, group in enumerate(GROUPS):
        figures[f"{group}_found"] = statistics.mean(is_found[first :: len(GROUPS)])
    return figures


def main() -> None:
    """Measure the strings of all files."""
    parser = options(__doc__, strings=100_000, queries=50)
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    strings = read_strings(arguments.files, random.Random(1))[INSERTS:][: arguments.strings]
    keyed = [(f"{number}", text) for number, text in enumerate(strings)]
    queries = make_queries(keyed, arguments.queries, random.Random(2))
    settings: dict[str, Figures] = {}
    with fresh_database() as bench:
        for name in SETTINGS:
            settings[name] = measure_setting(bench, name, keyed, queries)
            bench.db.drop_corpus(name)
    table = [list(row) for row in zip(*table_of(settings, LABELS), strict=True)]
    figures = {identifier(name): own for name, own in settings.items()}
    publish(
        arguments.record,
        "short_settings",
        figures | {"strings": len(strings)},
        {"short_settings": table},
    )


if __name__ == "__main__":
    main()
