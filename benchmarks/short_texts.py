"""Short texts: exact corpora of characters beside pg_trgm, in one database.

    python -m benchmarks.short_texts FILE... [--strings 100000] [--queries 100] [--record]

Each FILE is gzip'ed JSON lines with `text`. A string is a line, a sentence or a clause of a text. The
queries are strings with random edits. TEXTSIM_DATABASE_URL names a server that has pg_trgm; without
--indexes, the embedded server will do.
"""

from __future__ import annotations

import os
import random
import re
import statistics
import time
from argparse import Namespace
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psycopg

from benchmarks.exact import nanoseconds
from benchmarks.generate import edited
from benchmarks.harness import (
    Bench,
    Connection,
    Figures,
    fresh_database,
    identifier,
    in_turns,
    median_and_p99,
    medians,
    options,
    publish,
    read_corpora,
    table_of,
)
from textsim_db.text.shingles import shingles

ENDS = re.compile(r"(?<=[.!?;:,])\s+|\n")
LENGTHS = range(10, 201)
SHORT = range(10, 13)
"""The characters of a string, and of a short one."""
THRESHOLDS = (0.5, 0.7, 0.9)
SHINGLES = ("char:4", "char:5")
TRIGRAMS = "pg_trgm"
GROUPS = ("one_edit", "two_edits", "short")
INSERTS = 200
WRITES = {
    "load_s": "load, s",
    "processor_us": "load, processor us a string",
    "bytes": "bytes a string",
    "log_bytes": "log, bytes a string",
    "insert_ms": "INSERT, median ms",
    "insert_processor_ms": "INSERT, processor ms",
    "insert_log_bytes": "INSERT, bytes of log",
}
READS = {
    "one_edit_ms": "one edit, median ms",
    "two_edits_ms": "two edits, median ms",
    "short_ms": "11 characters, median ms",
    "p99_ms": "p99 ms",
    "reads_processor_ms": "processor ms",
    "one_edit_found": "one edit, found",
    "two_edits_found": "two edits, found",
    "ours_recall": "recall by `char:N`",
    "ours_precision": "precision by `char:N`",
    "theirs_recall": "recall by trigrams",
    "theirs_precision": "precision by trigrams",
}

Strings = Sequence[tuple[str, str]]


class Answer(NamedTuple):
    """The times of a statement, and the keys that it returned."""

    ms: float
    processor_ms: float
    keys: set[str]


class Side:
    """A connection with a threshold, its table with one index, and its statement of a look-up."""

    def __init__(self, bench: Bench, table: str, threshold: float, corpus: str = "") -> None:
        self.table, self.threshold, self.is_index = table, threshold, not corpus
        self.connection: Connection = psycopg.connect(bench.db.url, autocommit=True)
        self.shingle = corpus.split()[0] if corpus else SHINGLES[-1]
        self.statement = f"SELECT key FROM textsim.matches('{corpus}', %s)"
        if not corpus:
            self.statement = f"SELECT id FROM {table} WHERE body %% %s"
            self.connection.execute(f"SET pg_trgm.similarity_threshold = {threshold}".encode())

    def run(self, statement: str, *arguments: str) -> Answer:
        """Run a statement."""
        processes = [self.connection.info.backend_pid]
        before, start = nanoseconds(processes), time.perf_counter()
        cursor = self.connection.execute(statement.encode(), arguments)
        keys = {key for (key,) in cursor} if cursor.description else set()
        ms = 1000 * (time.perf_counter() - start)
        return Answer(ms, (nanoseconds(processes) - before) / 1e6, keys)


def read_strings(files: Iterable[Path], rng: random.Random) -> list[str]:
    """Return different strings of the texts of all files, in random order."""
    parts = (
        part.strip()
        for _, documents in read_corpora(files, 1_000_000)
        for document in documents
        for part in ENDS.split(document["text"])
    )
    strings = list(dict.fromkeys(part for part in parts if len(part) in LENGTHS))
    rng.shuffle(strings)
    return strings


def make_queries(strings: Strings, count: int, rng: random.Random) -> list[tuple[str, str]]:
    """Return the keys of random strings, each with its string after edits; the groups take turns."""
    short = [each for each in strings if len(each[1]) in SHORT]
    groups = ((strings, 1), (strings, 2), (short, 1))
    drawn = [(rng.choice(pool), edits) for _ in range(count) for pool, edits in groups]
    return [(key, edited(text, edits, rng)) for (key, text), edits in drawn]


def load_corpus(bench: Bench, name: str, strings: Strings) -> tuple[Side, Figures]:
    """Load an exact corpus with the shingle and threshold of its name, and attach an empty table."""
    shingle, threshold = name.split(" at ")
    before = bench.log_position()
    corpus = bench.db.create_corpus(name, shingle=shingle, threshold=float(threshold), recall=1.0)
    figures = bench.load(corpus, strings)
    figures["log_bytes"] = (bench.log_position() - before) / len(strings)
    table = identifier(name)
    bench.connection.execute(f"CREATE TABLE {table} (id text PRIMARY KEY, body text)".encode())
    corpus.attach(table, "id", "body", "inline")
    return Side(bench, table, float(threshold), name), figures


def load_index(bench: Bench, method: str, strings: Strings) -> Figures:
    """Make a table with an index of trigrams; the figures are of the index alone."""
    bench.connection.execute(f"CREATE TABLE {method} (id text PRIMARY KEY, body text)".encode())
    with bench.connection.cursor().copy(f"COPY {method} FROM STDIN".encode()) as copy:
        for row in strings:
            copy.write_row(row)
    bench.connection.execute(f"VACUUM ANALYZE {method}".encode())
    before = bench.log_position()
    index = f"CREATE INDEX i_{method} ON {method} USING {method} (body {method}_trgm_ops)".encode()
    spent = bench.spend(lambda: bench.connection.execute(index))
    return {
        "load_s": spent.seconds,
        "processor_us": 1e6 * spent.server / len(strings),
        "bytes": bench.number(f"SELECT pg_relation_size('i_{method}')") / len(strings),
        "log_bytes": (bench.log_position() - before) / len(strings),
        "table_bytes": bench.number(f"SELECT pg_relation_size('{method}')") / len(strings),
    }


def similarities(
    strings: Strings, texts: Sequence[str], sides: Sequence[Side]
) -> dict[str, list[Figures]]:
    """Compare texts with all strings: for each similarity, and each text, the similar strings."""
    scan = "SELECT id, similarity(body, %s) FROM {} WHERE similarity(body, %s) >= %s"
    found: dict[str, list[Figures]] = {}
    lowest = min(THRESHOLDS)
    for side in [each for each in sides if each.is_index][:1]:
        execute, statement = side.connection.execute, scan.format(side.table).encode()
        rows = [execute(statement, [text, text, lowest]).fetchall() for text in texts]
        found[TRIGRAMS] = [dict(each) for each in rows]
    for shingle in {each.shingle for each in sides}:
        wanted = [set(shingles(text, shingle)) for text in texts]
        found[shingle] = [{} for _ in texts]
        for key, text in strings:
            own = set(shingles(text, shingle))
            for query, similar in zip(wanted, found[shingle], strict=True):
                shared = len(own & query)
                value = shared / (len(own) + len(query) - shared)
                if value >= lowest:
                    similar[key] = value
    return found


def measure_reads(
    sides: dict[str, Side], queries: Strings, similar: dict[str, list[Figures]]
) -> dict[str, Figures]:
    """Let the sides answer each query in turns."""
    look_ups = {
        name: lambda number, side=side: side.run(side.statement, queries[number][1])
        for name, side in sides.items()
    }
    in_turns(look_ups, 10)  # statements are prepared, and libraries loaded
    figures: dict[str, Figures] = {}
    for name, answers in in_turns(look_ups, len(queries)).items():
        own: Figures = {"p99_ms": median_and_p99(answer.ms for answer in answers)[1]}
        own["reads_processor_ms"] = statistics.mean(answer.processor_ms for answer in answers)
        for first, group in enumerate(GROUPS):
            pairs = [*zip(queries, answers, strict=True)][first :: len(GROUPS)]
            own[f"{group}_ms"] = statistics.median(answer.ms for _, answer in pairs)
            own[f"{group}_found"] = statistics.mean(key in each.keys for (key, _), each in pairs)
        found = [answer.keys for answer in answers]
        side = sides[name]
        for label, by in (("ours", similar[side.shingle]), ("theirs", similar.get(TRIGRAMS))):
            if by is None:
                continue
            true = [{key for key in each if each[key] >= side.threshold} for each in by]
            right = sum(len(a & b) for a, b in zip(found, true, strict=False))
            own[f"{label}_recall"] = right / sum(map(len, true))
            own[f"{label}_precision"] = right / sum(map(len, found[: len(true)]))
        figures[name] = own
    return figures


def measure_inserts(bench: Bench, side: Side, texts: Sequence[str], number: int) -> Figures:
    """Insert a row."""
    before = bench.log_position()
    insert = f"INSERT INTO {side.table} VALUES (%s, %s)"
    answer = side.run(insert, f"new {number}", texts[number])
    return {
        "insert_ms": answer.ms,
        "insert_processor_ms": answer.processor_ms,
        "insert_log_bytes": bench.log_position() - before,
    }


def measure(bench: Bench, strings: Strings, new: Sequence[str], given: Namespace) -> Figures:
    """Load the sides, look the queries up, and insert the new strings."""
    sides, loads = {}, {}
    for name in given.corpora:
        sides[name], loads[name] = load_corpus(bench, name, strings)
    if given.indexes:
        bench.connection.execute("CREATE EXTENSION pg_trgm")
    for method in given.indexes:
        loads[method] = load_index(bench, method, strings)
        sides |= {f"{method} at {each}": Side(bench, method, each) for each in THRESHOLDS}
    queries = make_queries(strings, given.queries, random.Random(2))
    texts = [text for _, text in queries[: given.sample * len(GROUPS)]]
    similar = similarities(strings, texts, [*sides.values()])
    reads = measure_reads(sides, queries, similar)
    writers = {side.table: side for side in sides.values()}  # one threshold of each index
    steps = {name: partial(measure_inserts, bench, side, new) for name, side in writers.items()}
    inserts = {name: medians(rounds) for name, rounds in in_turns(steps, len(new)).items()}
    writes = {name: own | inserts[identifier(name)] for name, own in loads.items()}
    return {"reads": reads, "writes": writes}


def main() -> None:
    """Measure the strings of all files."""
    parser = options(__doc__, strings=100_000, queries=100)
    parser.add_argument("files", nargs="+", type=Path)
    text = "queries of a group that are compared with all strings (default: 10)"
    parser.add_argument("--sample", type=int, default=10, help=text)
    corpora = [f"{shingle} at {threshold}" for shingle in SHINGLES for threshold in THRESHOLDS]
    parser.add_argument("--corpora", nargs="*", choices=corpora, default=corpora)
    parser.add_argument("--indexes", nargs="*", choices=["gin", "gist"], default=["gin", "gist"])
    given = parser.parse_args()
    load_before = os.getloadavg()[0]
    texts = read_strings(given.files, random.Random(1))
    new, strings = texts[:INSERTS], texts[INSERTS:][: given.strings]
    with fresh_database() as bench:
        keyed = [(f"{number}", text) for number, text in enumerate(strings)]
        figures = measure(bench, keyed, new, given)
        figures["server"] = bench.number("SHOW server_version").split()[0]
    figures |= {
        "strings": len(strings),
        "different": len(texts),
        "characters": statistics.mean(map(len, strings)),
        "load_average_before": load_before,
        "load_average_after": os.getloadavg()[0],
    }
    suffix = f"{len(strings)}{'' if given.indexes else '_embedded'}"
    tables = {
        f"short_{kind}_{suffix}": [
            list(row) for row in zip(*table_of(figures[kind], labels), strict=True)
        ]
        for kind, labels in (("writes", WRITES), ("reads", READS))
    }
    named = {
        kind: {identifier(side): own for side, own in figures[kind].items()}
        for kind in ("reads", "writes")
    }
    publish(given.record, f"short_texts_{suffix}", figures | named, tables)


if __name__ == "__main__":
    main()
