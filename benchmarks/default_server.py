"""SQL on a server with the settings of initdb, beside the same server with its JIT compiler off.

    python -m benchmarks.default_server [--documents 20000] [--calls 200] [--record]

The server compiles a statement whose estimated cost is high, which takes half a second. The benchmark
fills exact corpora and one with bands, in sizes from 1 document on. Two sessions ask each statement in
turns. The figures are processor times of the server, which other work of the machine changes little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import psutil
import psycopg

from benchmarks.generate import documents
from benchmarks.harness import Bench, Connection, Figures, fresh_database, options, publish

KINDS: dict[str, dict[str, Any]] = {
    "exact": {"recall": 1.0, "threshold": 0.6, "shingle": "word:2", "passages": 13},
    "char:4": {"recall": 1.0, "threshold": 0.6, "shingle": "char:4"},
    "bands": {"threshold": 0.7, "passages": 13},
}
STATEMENTS = {
    "matches, with a match": "SELECT count(*) FROM textsim.matches({name}, %(hit)s)",
    "matches, without": "SELECT count(*) FROM textsim.matches({name}, %(other)s)",
    "neighbours": "SELECT count(*) FROM textsim.neighbours({name}, %(first)s)",
    "nearest": "SELECT count(*) FROM textsim.nearest({name}, %(hit)s, 1)",
    "distinct_of, 60 keys": "SELECT count(*) "
    "FROM textsim.distinct_of({name}, %(keys)s, missing => 'keep')",
    "distinct_of, 10 keys": "SELECT count(*) "
    "FROM textsim.distinct_of({name}, (%(keys)s::text[])[:10], missing => 'keep')",
    "passages": "SELECT count(*) FROM textsim.passages({name}, %(hit)s)",
    "quote, altered": "SELECT count(*) FROM textsim.quote({name}, %(altered)s, %(first)s)",
    "add_unique, a twin": "SELECT textsim.add_unique({name}, %(key)s, %(hit)s)",
    "add_unique, no twin": "SELECT textsim.add_unique({name}, %(key)s, %(other)s)",
    "pairs": "SELECT count(*) FROM textsim.pairs({name}, 0.9)",
    "insert inline, no twin": "INSERT INTO {table} VALUES (%(key)s, %(other)s)",
}
SIZES = (1, 1000, 20_000, 200_000, 1_000_000)
WORDS = 60
SLOW = {1000: 5, 20_000: 5, 200_000: 1, 1_000_000: 1}
"""How often pairs() is asked, by the documents: it compares the whole corpus."""
MOST_OF_PAIRS = 1000
"""The documents up to which all pairs of characters are listed, and bands find far documents."""
MOST_OF_CHARACTERS = 20_000
"""The documents of the largest corpus of characters, whose texts share many shingles."""


def fill(bench: Bench, kind: str, size: int) -> tuple[str, str]:
    """Create a unique corpus with passages of a size, with an attached table; return both names."""
    name = f"{kind} {size}".replace(":", "")
    table = name.replace(" ", "_")
    corpus = bench.db.create_corpus(name, is_unique=True, **KINDS[kind])
    corpus.add_many(documents(size, WORDS, planted=0.0))
    bench.connection.execute(f"CREATE TABLE {table} (id text PRIMARY KEY, body text)".encode())
    corpus.attach(table, "id", "body", "inline")
    bench.connection.execute("ANALYZE")
    return name, table


def ask(connection: Connection, statement: str, values: Mapping[str, Any]) -> None:
    """Ask a statement once; its transaction is rolled back, so both sides find the same rows."""
    with connection.transaction(force_rollback=True):
        connection.execute(statement.encode(), values)


def seconds(connection: Connection) -> float:
    """Return the processor time of the process that serves a connection."""
    return sum(psutil.Process(connection.info.backend_pid).cpu_times()[:2])


def can_ask(kind: str, size: int, label: str) -> bool:
    """Return whether a corpus answers a statement, and in less than a minute."""
    if kind == "char:4":
        return label != "passages" and (label != "pairs" or size <= MOST_OF_PAIRS)
    return kind != "bands" or label != "nearest" or size <= MOST_OF_PAIRS


def measure(bench: Bench, kind: str, size: int, calls: int) -> Iterator[tuple[str, Figures]]:
    """Yield each statement with its processor time by default and without JIT, in ms, and the ratio."""
    name, table = fill(bench, kind, size)
    (first, text), *_ = ranked = [*documents(60, WORDS, planted=0.0)]
    keys = [key for key, _ in ranked]
    warm, *others = [each for _, each in documents(calls + 1, WORDS, planted=0.0, seed=99)]
    with psycopg.connect(bench.db.url) as default, psycopg.connect(bench.db.url) as without:
        without.execute("SET jit = off")
        without.commit()
        for label, statement in STATEMENTS.items():
            if not can_ask(kind, size, label):
                continue
            filled = statement.format(name=f"'{name}'", table=table)
            values = {"first": first, "keys": keys, "hit": f"{text} and now", "key": "new"}
            values["altered"] = " ".join(("new", *text.split()[1:-1], "new"))
            sides = (default, without)
            for side in sides:
                ask(side, filled, values | {"other": warm})
            before = [seconds(side) for side in sides]
            asked = others[: SLOW.get(size)] if label == "pairs" else others
            for number, other in enumerate(asked):
                for side in sides[:: -1 if number % 2 else 1]:
                    ask(side, filled, values | {"other": other})
            on, off = (
                (seconds(side) - start) * 1e3 / len(asked)
                for side, start in zip(sides, before, strict=True)
            )
            yield label, {"default": on, "off": off, "ratio": on / off}


def table_of(figures: Figures) -> list[list[str]]:
    """Return a row for each statement, with the largest corpus of each kind: default / JIT off."""
    kinds = {
        kind: max(each["documents"] for each in figures.values() if each["kind"] == kind)
        for kind in KINDS
    }
    cells = {
        (each["kind"], each["documents"], each["statement"]): each for each in figures.values()
    }
    rows = [["ms of processor, default / JIT off"]]
    rows[0] += [f"{kind}, {documents:,} documents" for kind, documents in kinds.items()]
    for label in STATEMENTS:
        row = [cells.get((*kind, label)) for kind in kinds.items()]
        rows.append(
            [
                label,
                *(
                    "" if each is None else f"{each['default']:.1f} / {each['off']:.1f}"
                    for each in row
                ),
            ]
        )
    return rows


def main() -> None:
    """Print each statement as soon as it is measured, and a table at the end."""
    parser = options(__doc__, documents=20_000, calls=200)
    arguments = parser.parse_args()
    figures: Figures = {}
    with fresh_database() as bench:
        for kind in KINDS:
            most = MOST_OF_CHARACTERS if kind == "char:4" else arguments.documents
            for size in (size for size in SIZES if size <= min(most, arguments.documents)):
                for label, each in measure(bench, kind, size, arguments.calls):
                    names = {"kind": kind, "documents": size, "statement": label}
                    figures[f"{kind} {size} {label}"] = names | each
                    print(
                        *names.values(), *(f"{v:.2f}" for v in each.values()), sep=" | ", flush=True
                    )
    publish(arguments.record, "default_server", figures, {"default_server": table_of(figures)})


if __name__ == "__main__":
    main()
