"""The space of short texts: settings of an exact corpus, and other layouts of its band rows.

    python -m benchmarks.short_rows FILE... [--strings 100000] [--queries 50] [--record]

The strings and the queries are those of short_texts. A layout is made of the band rows of a corpus, and
finds the candidates of a query by one statement. All layouts of a corpus answer each query in turns.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import LiteralString, NamedTuple
from zlib import crc32

from benchmarks.exact import nanoseconds
from benchmarks.harness import (
    Bench,
    Figures,
    fresh_database,
    identifier,
    in_turns,
    options,
    publish,
    table_of,
)
from benchmarks.short_texts import GROUPS, INSERTS, Strings, make_queries, read_strings
from textsim_db.text.shingles import shingles

SETTINGS = (
    *(f"char:5 at {threshold}" for threshold in (0.5, 0.6, 0.7, 0.8, 0.9)),
    *(f"{shingle} at 0.7" for shingle in ("char:3", "char:4")),
    *(f"word:1 at {threshold}" for threshold in (0.5, 0.6, 0.7, 0.8)),
)
REARRANGED = ("char:4 at 0.5", "char:5 at 0.7")
"""The corpora whose rows are stored in other layouts."""
SETTING_LABELS = {
    "rows": "band rows a string",
    "bytes": "bytes a string",
    "processor_ms": "look-up, processor ms",
    "one_edit_found": "one edit, found",
    "two_edits_found": "two edits, found",
    "short_found": "11 characters, found",
}
LAYOUT_LABELS = {
    "bytes": "bytes a string",
    "processor_ms": "look-up, processor ms",
    "candidates": "candidates",
    "recall": "recall",
    "insert_processor_ms": "INSERT, processor ms",
    "delete_processor_ms": "DELETE, processor ms",
}
TOTAL_BYTES = "SELECT pg_total_relation_size(%s)"
SKETCH = """
SELECT textsim._stored_buckets(c, textsim._signature(c, v.shingle_values), NULL),
    cardinality(v.shingle_values)
FROM textsim.corpus c
CROSS JOIN LATERAL (
    SELECT textsim._query_values(c, textsim._form(c, %s, NULL)) AS shingle_values OFFSET 0
) v
WHERE c.name = %s
"""
# A prefix of {shared} more shingles than two similar texts may differ in, so that they share as many.
PREFIX: LiteralString = "least({n}, {n} + {shared} - textsim._overlap({n}, {threshold}))"
COUNTED = """
SELECT d.key
FROM (
    SELECT b.document_id, count(*) AS shared
    FROM unnest((%(buckets)s::integer[])[:{own_prefix}]) q (bucket)
    CROSS JOIN LATERAL ({rows} OFFSET 0) b
    GROUP BY b.document_id
    HAVING count(*) >= least({shared}, textsim._least_needed_rows(%(n)s, {threshold}))
) m
JOIN {document} d ON d.id = m.document_id
CROSS JOIN LATERAL greatest(d.shingle_count, %(n)s) g (n)
WHERE textsim._ratio(
    least(d.shingle_count, %(n)s, m.shared + g.n - {greater_prefix}), d.shingle_count, %(n)s
) >= {threshold}
"""
# A shingle whose bit a document lacks is not in it. So the bits bound how many are shared.
BOUNDED = """
SELECT d.key
FROM {table} r JOIN {document} d ON d.id = r.document_id
WHERE r.buckets && %(buckets)s::integer[]
    AND r.shingle_count BETWEEN
        ceil({threshold} * %(n)s)::integer AND floor(%(n)s / {threshold})::integer
    AND (%(n)s - bit_count(%(bits)s::bit(256) & ~r.bits)) * (1 + {threshold})
        >= {threshold} * (%(n)s + r.shingle_count) - 1e-6::double precision
"""
ROWS = """
CREATE TABLE {table} AS
SELECT s.bucket, d.id AS document_id
FROM {document} d CROSS JOIN LATERAL unnest(d.signature[:{stored_prefix}]) s (bucket)
ORDER BY 1, 2;
CREATE INDEX ON {table} ({columns}) WITH (deduplicate_items = {folds});
"""
LISTS = """
CREATE TABLE {table}_list AS
SELECT bucket, array_agg(document_id ORDER BY document_id) AS document_ids
FROM {table} GROUP BY bucket HAVING count(*) >= 10;
CREATE INDEX ON {table}_list (bucket);
DELETE FROM {table} b USING {table}_list l WHERE l.bucket = b.bucket;
VACUUM FULL {table};
"""
ARRAYS = """
CREATE TABLE {table} AS
SELECT d.id AS document_id, d.shingle_count, d.signature AS buckets, b.bits
FROM {document} d JOIN bits b ON b.key = d.key ORDER BY d.id;
CREATE INDEX ON {table} (document_id);
CREATE INDEX ON {table} USING gin (buckets) WITH (fastupdate = off);
"""
INSERT_ROWS = "INSERT INTO {table} SELECT unnest((%(buckets)s::integer[])[:{own_prefix}]), %(id)s"
DELETE_ROWS = (
    "DELETE FROM {table} WHERE bucket = ANY (%(buckets)s::integer[]) AND document_id = %(id)s"
)
OF_BUCKET = "SELECT r.document_id FROM {table} r WHERE r.bucket = q.bucket"
OF_LIST = " UNION ALL SELECT unnest(r.document_ids) FROM {table}_list r WHERE r.bucket = q.bucket"


class Layout(NamedTuple):
    """How a document leads from its buckets to itself: the statements, with names in braces."""

    create: str = ROWS
    look_up: str = COUNTED
    insert: str = INSERT_ROWS
    delete: str = DELETE_ROWS
    rows: str = OF_BUCKET
    shared: int = 3
    """The rows that two similar texts share at least."""
    columns: str = "bucket, document_id"
    folds: str = "off"
    """Whether the index stores a bucket of several documents once."""


LAYOUTS = {
    "rows, as stored": Layout(),
    "rows, the index on buckets alone": Layout(columns="bucket", folds="on"),
    "one row less a string": Layout(shared=2),
    "two rows less a string": Layout(shared=1),
    "lists from ten documents on": Layout(ROWS + LISTS, rows=OF_BUCKET + OF_LIST),
    "an array a string, GIN, 256 bits": Layout(
        ARRAYS,
        BOUNDED,
        "INSERT INTO {table} VALUES (%(id)s, %(n)s, %(buckets)s::integer[], %(bits)s::bit(256))",
        "DELETE FROM {table} WHERE document_id = %(id)s",
    ),
}


class Side:
    """A layout of the band rows of a corpus in its own tables."""

    def __init__(self, bench: Bench, corpus: str, layout: Layout, number: int) -> None:
        threshold = f"{corpus.split()[-1]}::double precision"
        self.bench, self._backend = bench, [bench.connection.info.backend_pid]
        self.table = f"layout_{bench.relation('band', corpus).split('_')[-1]}_{number}"
        names = {
            "table": self.table,
            "document": bench.relation("document", corpus),
            "threshold": threshold,
            "shared": f"{layout.shared}",
            "columns": layout.columns,
            "folds": layout.folds,
        }
        for prefix, n in (("own", "%(n)s"), ("stored", "d.shingle_count"), ("greater", "g.n")):
            names[f"{prefix}_prefix"] = PREFIX.format(n=n, **names)
        names["rows"] = layout.rows.format(**names)
        for statement in layout.create.format(**names).split(";")[:-1]:
            bench.connection.execute(statement.encode())
        tables = bench.connection.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relname ^@ %s",
            [self.table],
        ).fetchall()
        self.bytes = 0
        for (table,) in tables:
            bench.connection.execute(f"VACUUM ANALYZE {table}".encode())
            self.bytes += bench.number(TOTAL_BYTES, table)
        self._statements = {
            kind: getattr(layout, kind).format(**names).encode()
            for kind in ("look_up", "insert", "delete")
        }

    def run(self, kind: str, arguments: Figures) -> tuple[float, set[str]]:
        """Run a statement; return its processor time in milliseconds, and its keys."""
        before = nanoseconds(self._backend)
        cursor = self.bench.connection.execute(self._statements[kind], arguments)
        keys = {key for (key,) in cursor} if cursor.description else set()
        return (nanoseconds(self._backend) - before) / 1e6, keys


def bits_of(text: str, shingle: str) -> str:
    """Return 256 bits, in which each shingle of a text sets one."""
    value = 0
    for each in shingles(text, shingle):
        value |= 1 << crc32(each.encode()) % 256
    return f"{value:0256b}"


def arguments_of(bench: Bench, corpus: str, texts: Sequence[str]) -> list[Figures]:
    """Return the arguments of the statements for each text."""
    rows = [bench.connection.execute(SKETCH, [text, corpus]).fetchone() for text in texts]
    return [
        {"id": -number, "buckets": row[0], "n": row[1], "bits": bits_of(text, corpus.split()[0])}
        for number, (text, row) in enumerate(zip(texts, rows, strict=True), 1)
        if row is not None
    ]


def matches_of(corpus: str, strings: Strings, texts: Iterable[str]) -> list[set[str]]:
    """Return for each text the keys of the similar strings, by brute force."""
    shingle, threshold = corpus.split(" at ")
    wanted = [set(shingles(text, shingle)) for text in texts]
    similar: list[set[str]] = [set() for _ in wanted]
    for key, text in strings:
        own = set(shingles(text, shingle))
        for query, keys in zip(wanted, similar, strict=True):
            shared = len(own & query)
            if shared and shared / (len(own) + len(query) - shared) >= float(threshold):
                keys.add(key)
    return similar


def measure_layouts(
    bench: Bench, corpus: str, strings: Strings, queries: Strings, new: Sequence[str]
) -> dict[str, Figures]:
    """Store the band rows of a corpus in each layout; look up, write and remove in turns."""
    bench.connection.execute("CREATE TABLE bits (key text, bits bit(256))")
    with bench.connection.cursor().copy("COPY bits FROM STDIN") as copy:
        for key, text in strings:
            copy.write_row((key, bits_of(text, corpus.split()[0])))
    for setting in ("enable_seqscan = off", "jit = off", "plan_cache_mode = force_generic_plan"):
        bench.connection.execute(f"SET {setting}".encode())
    sides = {
        name: Side(bench, corpus, layout, number)
        for number, (name, layout) in enumerate(LAYOUTS.items())
    }
    bench.connection.execute("DROP TABLE bits")
    figures: dict[str, Figures] = {
        name: {"bytes": side.bytes / len(strings)} for name, side in sides.items()
    }

    def run(kind: str, arguments: Sequence[Figures]) -> dict[str, list[tuple[float, set[str]]]]:
        calls = {
            name: lambda number, side=side: side.run(kind, arguments[number])
            for name, side in sides.items()
        }
        return in_turns(calls, len(arguments))

    texts = [text for _, text in queries]
    true = matches_of(corpus, strings, texts[:30])
    look_ups = arguments_of(bench, corpus, texts)
    run("look_up", look_ups[:10])  # statements are prepared
    for name, answers in run("look_up", look_ups).items():
        times, candidates = zip(*answers, strict=True)
        right = sum(len(a & b) for a, b in zip(candidates, true, strict=False))
        figures[name]["processor_ms"] = statistics.mean(times)
        figures[name]["candidates"] = statistics.mean(map(len, candidates))
        figures[name]["recall"] = right / sum(map(len, true))
    written = arguments_of(bench, corpus, new)
    for kind in ("insert", "delete"):
        for name, answers in run(kind, written).items():
            own = statistics.median(time for time, _ in answers)
            figures[name][f"{kind}_processor_ms"] = own
    return figures


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
    texts = read_strings(arguments.files, random.Random(1))
    new, strings = texts[:INSERTS], texts[INSERTS:][: arguments.strings]
    keyed = [(f"{number}", text) for number, text in enumerate(strings)]
    queries = make_queries(keyed, arguments.queries, random.Random(2))
    settings: dict[str, Figures] = {}
    layouts: dict[str, dict[str, Figures]] = {}
    with fresh_database() as bench:
        for name in dict.fromkeys((*SETTINGS, *REARRANGED)):
            settings[name] = measure_setting(bench, name, keyed, queries)
            if name in REARRANGED:
                layouts[name] = measure_layouts(bench, name, keyed, queries, new)
            bench.db.drop_corpus(name)
    tables = {
        f"short_layouts_{identifier(name)}": turned(figures, LAYOUT_LABELS)
        for name, figures in layouts.items()
    } | {"short_settings": turned({name: settings[name] for name in SETTINGS}, SETTING_LABELS)}
    named = {
        identifier(name): {identifier(side): own for side, own in figures.items()}
        for name, figures in (*layouts.items(), ("settings", settings))
    }
    publish(arguments.record, "short_rows", named | {"strings": len(strings)}, tables)


def turned(figures: dict[str, Figures], labels: dict[str, str]) -> list[list[str]]:
    """Return a table with a row for each side."""
    return [list(row) for row in zip(*table_of(figures, labels), strict=True)]


if __name__ == "__main__":
    main()
