"""The benchmarks share this: options, a fresh database, measured calls, turns, tables, recorded figures.

A benchmark says what it sets up, what it measures, and which figures come out. A figure is a number
with a name. A side is one of the things that a benchmark compares. Sides take turns, so that other work
of the machine delays all of them alike.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil
import psycopg
from sqlalchemy import make_url

import textsim_db as ts
from textsim_db.db import embedded_server
from textsim_db.results import AddReport

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "figures"

T = TypeVar("T")
Connection = psycopg.Connection[Any]
Figures = dict[str, Any]
Documents = Iterable[tuple[str, str]]
Table = Sequence[Sequence[str]]
"""The cells of a table; the first row is its header."""

STORED_BYTES = """
SELECT sum(pg_total_relation_size(r.oid))
FROM textsim.corpus c
JOIN pg_class r ON r.relname IN ('document_' || c.id, 'band_' || c.id, 'passage_' || c.id)
    AND r.relnamespace = 'textsim'::regnamespace
WHERE c.name = %s
"""
HELP = {
    "words": "words in a document",
    "rounds": "number of rounds; a figure is the median of them",
    "seed": "seed of random choices",
}


# Options


def options(description: str | None, **numbers: int) -> argparse.ArgumentParser:
    """Return a parser with options for these numbers, such as documents=20_000, and with --record."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n\n")[0])
    for name, default in numbers.items():
        text = f"{HELP.get(name, f'number of {name}')} (default: {default})"
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default, help=text)
    parser.add_argument(
        "--record",
        action="store_true",
        help="write the figures to benchmarks/figures, for the docs",
    )
    return parser


# A fresh database, and what a call costs


class Spent(NamedTuple):
    """The seconds of a call by the clock, and of the processor by client and server."""

    result: Any
    seconds: float
    client: float
    server: float
    peak_mb: float

    @property
    def processor(self) -> float:
        """Seconds of the processor, by client and server together."""
        return self.client + self.server


class Bench:
    """A fresh database, a connection to it, and the processes of its server on this machine."""

    def __init__(self, db: ts.Database, connection: Connection) -> None:
        self.db, self.connection = db, connection
        folder = Path(self.number("SHOW data_directory"))
        pid = (folder / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0]
        self._postmaster = psutil.Process(int(pid))

    def number(self, statement: str, *arguments: object) -> Any:
        """Return the only value of a statement."""
        row = self.connection.execute(statement.encode(), arguments or None).fetchone()
        assert row is not None
        return row[0]

    def relation(self, kind: str, corpus: str) -> str:
        """Return the name of a table of a corpus; kind: document or band."""
        corpus_id = self.number("SELECT id FROM textsim.corpus WHERE name = %s", corpus)
        return f"textsim.{kind}_{corpus_id}"

    def server_seconds(self) -> float:
        """Return the processor time of all processes of the server, including ended processes."""
        total = 0.0
        for process in (self._postmaster, *self._postmaster.children()):
            try:
                total += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:  # ended: the postmaster's time will include it
                continue
        return total

    def spend(self, function: Callable[[], object]) -> Spent:
        """Call a function, and return its seconds and its memory."""
        forget_peak()
        before, client, start = self.server_seconds(), time.process_time(), time.perf_counter()
        result = function()
        seconds, own = time.perf_counter() - start, time.process_time() - client
        return Spent(result, seconds, own, self.server_seconds() - before, peak_mb())

    def load(
        self,
        corpus: ts.Corpus,
        documents: Iterable[Any],
        note: Callable[[AddReport], None] | None = None,
    ) -> Figures:
        """Load documents into an empty corpus, and return what a document took."""
        spent = self.spend(lambda: corpus.add_many(documents, note))
        count = spent.result.added
        assert count == len(corpus)
        return {
            "documents": count,
            "rate": count / spent.seconds,
            "load_s": spent.seconds,
            "processor_us": spent.processor * 1e6 / count,
            "client_us": spent.client * 1e6 / count,
            "server_us": spent.server * 1e6 / count,
            "peak_mb": spent.peak_mb,
            "bytes": self.stored_bytes(corpus.name) / count,
        }

    def stored_bytes(self, corpus: str) -> int:
        """Return the bytes of the tables and indexes of a corpus."""
        return int(self.number(STORED_BYTES, corpus))

    def log_position(self) -> int:
        """Return the bytes of write-ahead log since the beginning."""
        return int(self.number("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"))


@contextmanager
def fresh_database(server_url: str | None = None) -> Iterator[Bench]:
    """Create a database on a server, or on that of connect() by default, lend it, and drop it."""
    chosen = server_url or os.environ.get("TEXTSIM_DATABASE_URL") or embedded_server.start()
    address = make_url(chosen)
    name = f"benchmark_{os.getpid()}"
    url = address.set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(address.render_as_string(hide_password=False), autocommit=True) as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        server.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        try:
            ts.install(url)
            with open_bench(url) as bench:
                yield bench
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def open_bench(url: str) -> Iterator[Bench]:
    """Lend a database that exists, with its kernels compiled."""
    with ts.connect(url) as db, psycopg.connect(db.url, autocommit=True) as connection:
        warm_up(db)
        yield Bench(db, connection)


def warm_up(db: ts.Database) -> None:
    """Load the kernels, or compile them."""
    with suppress(ModuleNotFoundError):  # an older checkout always compiles
        from textsim_db.base.interpreter import interpreter

        interpreter.seconds = 0.0
    texts = ["some words to compile the kernels", "other words to compile the kernels"]
    corpus = db.create_corpus("warm-up")
    corpus.add_many([(f"{number}", text) for number, text in enumerate(texts * 2)])
    corpus.query_many(texts)
    corpus.query(texts[0])
    assert list(corpus.pairs())
    assert list(corpus.clusters())
    db.drop_corpus(corpus.name)


def forget_peak() -> None:
    """Let the peak memory of this process begin anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_mb() -> float:
    """Return the peak resident memory of this process in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def in_own_process(function: Callable[..., T], *arguments: object) -> T:
    """Call a function in a new process, whose memory is that of the function alone."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


# Times and turns


def milliseconds(function: Callable[..., object], *arguments: object) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    function(*arguments)
    return (time.perf_counter() - start) * 1000


def median_and_p99(values: Iterable[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile."""
    ordered = sorted(values)
    return statistics.median(ordered), ordered[int(len(ordered) * 0.99)]


def times_in_turns(calls: Mapping[str, Callable[[int], object]], count: int) -> dict[str, Figures]:
    """Return the times of calls that take turns; each gets the numbers from 0 on. Ten warm it up."""
    timed = {name: partial(milliseconds, call) for name, call in calls.items()}
    measured = {name: median_and_p99(times[10:]) for name, times in in_turns(timed, count).items()}
    return {name: {"ms": median, "p99_ms": p99} for name, (median, p99) in measured.items()}


def in_turns(
    sides: Mapping[str, Callable[[int], T]], rounds: int, first: int = 0
) -> dict[str, list[T]]:
    """Call each side with the number of each round, and return the results of each side.

    The order is reversed from round to round, so that no side always has the warmer machine.
    """
    results: dict[str, list[T]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides)[:: -1 if (first + number) % 2 else 1]:
            results[name].append(sides[name](number))
    return results


def medians(rounds: Sequence[Figures]) -> Figures:
    """Return the medians of the figures of several rounds."""
    return {
        name: None if value is None else statistics.median(figures[name] for figures in rounds)
        for name, value in rounds[0].items()
    }


def read_corpora(paths: Iterable[Path], most: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the name of each file of gzip'ed JSON lines with its first documents."""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            name = path.name.removesuffix(".jsonl.gz")
            yield name, [json.loads(line) for line in islice(file, most)]


# Tables and files


def shown(value: float | None) -> str:
    """Return a figure with three digits or more; nothing for a figure that is missing."""
    if value is None:
        return ""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def table_of(
    sides: Mapping[str, Figures], labels: Mapping[str, str], corner: str = ""
) -> list[list[str]]:
    """Return a table with a column for each side, and a row for each label that has a figure."""
    rows = [[corner, *sides]]
    for name, label in labels.items():
        values = [figures.get(name) for figures in sides.values()]
        if any(value is not None for value in values):
            rows.append([label, *map(shown, values)])
    return rows


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    header, *rows = table
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def identifier(label: str) -> str:
    """Return the name of a figure: "one query, cold, median ms" is one_query_cold_median_ms."""
    return re.sub(r"\W+", "_", label).strip("_")


def publish(is_recorded: bool, name: str, figures: Figures, tables: Mapping[str, Table]) -> None:
    """Print tables; if asked, write them with their figures to benchmarks/figures/NAME.json.

    Pages name a figure by its path (`{scale.d1000000.load_s:.0f}`) and a table by its name, which no
    other file has.
    """
    for table in tables.values():
        print(markdown(table).replace("&emsp;", "  "), flush=True)
    if not is_recorded:
        return
    contents = {"measured": conditions(), "figures": figures, "tables": tables}
    text = json.dumps(contents, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\n[^\[\]{}]*\]", lambda row: " ".join(row[0].split()), text)  # a row, a line
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"recorded in benchmarks/figures/{name}.json; now: make figures", file=sys.stderr)


def compare(
    name: str,
    description: str | None,
    measure: Callable[..., Mapping[str, Figures]],
    labels: Mapping[str, str],
    corner: str,
    **numbers: int,
) -> None:
    """Measure sides in a fresh database, and print them as columns of a table with these labels.

    The numbers are options with their defaults. `measure` gets the database and the numbers in their
    order, and returns the figures of each side. The corner of the table may name the numbers in braces.
    """
    given = vars(options(description, **numbers).parse_args())
    chosen = {number: given[number] for number in numbers}
    with fresh_database() as bench:
        sides = measure(bench, *chosen.values())
    named = {identifier(side): figures for side, figures in sides.items()}
    table = table_of(sides, labels, corner.format(**chosen))
    publish(given["record"], name, chosen | named, {name: table})


def recorded(name: str) -> Figures:
    """Return the figures that an earlier run recorded, which a run of other sizes adds to."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["figures"] if path.exists() else {}


def conditions() -> dict[str, str]:
    """Return what was run, on which commit, when, and on which machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    arguments = [_without_place(argument) for argument in sys.argv[1:] if argument != "--record"]
    return {
        "command": " ".join(["python -m", f"benchmarks.{Path(sys.argv[0]).stem}", *arguments]),
        "commit": commit(ROOT),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GB of memory, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def _without_place(argument: str) -> str:
    """Return an argument without what only this machine has: the address of a server, a whole path."""
    if "://" in argument:
        return "ADDRESS"
    return os.path.relpath(argument) if os.path.isabs(argument) else argument


def commit(checkout: Path) -> str:
    """Return the commit of a checkout, and whether files of it differ."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
