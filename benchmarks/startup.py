"""How long commands take that compute nothing, and what a process pays before its first add.

Each figure is a median of processes that run in turns with the bare imports beside which it stands:
on a busy machine all of them take longer.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import textsim_db as ts
from textsim_db.db import embedded_server

ROOT = Path(__file__).resolve().parents[1]
CORPUS = "startup"
IMPORTS = "import typer, sqlalchemy, psycopg"
KERNEL_IMPORTS = f"{IMPORTS}, numpy, numba"
COMMANDS = ["corpus list", f"corpus show {CORPUS}", "status", "pending", "attach --help"]
ADD = f"""
import sys, time
start = time.perf_counter()
import textsim_db as ts
with ts.connect(sys.argv[1]) as db:
    connected = time.perf_counter()
    corpus = db.corpus({CORPUS!r})
    corpus.add("first", "a text that is added first, " + sys.argv[2])
    first = time.perf_counter()
    for i in range(5):
        later_start = time.perf_counter()
        corpus.add("later", f"a text that is added later, {{sys.argv[2]}} {{i}}")
    later = time.perf_counter()
print(connected - start, first - connected, later - later_start)
"""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="processes of each kind")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="ts-") as folder:
        Path(folder).chmod(0o755)
        address = embedded_server.start(Path(folder))
        try:
            measure(address, rounds)
        finally:
            embedded_server.stop(Path(folder))


def measure(address: str, rounds: int) -> None:
    """Run the processes in turns, and print the medians."""
    ts.install(address)
    with ts.connect(address) as db:
        db.create_corpus(CORPUS).add("key", "a text, so that kernels are compiled")
    seconds: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        figures = one_round(address, number)
        if number:  # the first round fills caches
            for name, value in figures.items():
                seconds.setdefault(name, []).append(value)
    for name, values in seconds.items():
        print(f"{name:<44}{statistics.median(values):>8.3f} s")


def one_round(address: str, number: int) -> dict[str, float]:
    """Return the seconds that each kind of process takes."""
    figures = {IMPORTS: seconds_of("-c", IMPORTS), KERNEL_IMPORTS: seconds_of("-c", KERNEL_IMPORTS)}
    for command in COMMANDS:
        program = ("-m", "textsim_db.cli", *command.split(), "--database-url", address)
        figures[f"textsim {command}"] = seconds_of(*program)
    done = run("-c", ADD, address, str(number))
    names = ("import and connect", "open a corpus and add first", "add later")
    return figures | dict(zip(names, map(float, done.split()), strict=True))


def seconds_of(*arguments: str) -> float:
    """Return the seconds that a process takes."""
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start


def run(*arguments: str) -> str:
    """Run Python in a process of its own, and return its standard output."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    main()
