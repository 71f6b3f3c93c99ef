"""The time of commands that compute nothing, and of a process until its first add.

    python -m benchmarks.startup [--rounds 15]

Each figure is a median over processes. Processes with only the imports run in turns with them, for
comparison. On a busy machine all times grow; processor seconds change less.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import textsim_db as ts
from benchmarks.record import add_option, identifier, record
from textsim_db.db import embedded_server

ROOT = Path(__file__).resolve().parents[1]
CORPUS = "startup"
IMPORTS = "import typer, sqlalchemy, psycopg"
KERNEL_IMPORTS = f"{IMPORTS}, numpy, numba"
COMMANDS = ["corpus list", f"corpus show {CORPUS}", "status", "pending", "attach --help"]
ADD = f"""
import sys, time
def now():
    return time.perf_counter(), time.process_time()
times = [now()]
import textsim_db as ts
with ts.connect(sys.argv[1]) as db:
    times.append(now())
    corpus = db.corpus({CORPUS!r})
    corpus.add("first", "a text that is added first, " + sys.argv[2])
    times.append(now())
    corpus.add("later", "a text that is added later, " + sys.argv[2])
    times.append(now())
for before, after in zip(times, times[1:]):
    print(after[0] - before[0], after[1] - before[1])
"""

Seconds = tuple[float, float]
"""Seconds by the clock, and processor seconds."""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="processes of each kind")
    add_option(parser)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ts-") as folder:
        Path(folder).chmod(0o755)
        address = embedded_server.start(Path(folder))
        try:
            seconds = measure(address, given.rounds)
        finally:
            embedded_server.stop(Path(folder))
    if given.record:
        rows = [[name, *(f"{value:.3f}" for value in values)] for name, values in seconds.items()]
        table = [["", "seconds", "of them of the processor"], *rows]
        figures = {identifier(name): values[1] for name, values in seconds.items()}
        record("startup", figures, {"startup": table})


def measure(address: str, rounds: int) -> dict[str, Seconds]:
    """Run the processes in turns; print the medians and return them."""
    ts.install(address)
    with ts.connect(address) as db:
        db.create_corpus(CORPUS).add("key", "a text, so that kernels are compiled")
    seconds: dict[str, list[Seconds]] = {}
    for number in range(rounds + 1):
        figures = one_round(address, number)
        if number:  # the first round fills caches
            for name, value in figures.items():
                seconds.setdefault(name, []).append(value)
    print(f"{'median':<52}{'seconds':>10}{'processor':>12}")
    result = {}
    for name, values in seconds.items():
        by_clock, of_processor = (statistics.median(column) for column in zip(*values, strict=True))
        result[name] = by_clock, of_processor
        print(f"{name:<52}{by_clock:>10.3f}{of_processor:>12.3f}")
    return result


def one_round(address: str, number: int) -> dict[str, Seconds]:
    """Return the seconds that each kind of process takes."""
    figures = {IMPORTS: seconds_of("-c", IMPORTS), KERNEL_IMPORTS: seconds_of("-c", KERNEL_IMPORTS)}
    for command in COMMANDS:
        program = ("-m", "textsim_db.cli", *command.split(), "--database-url", address)
        figures[f"textsim {command}"] = seconds_of(*program)
    done = run("-c", ADD, address, str(number))
    names = ("import and connect", "open a corpus and add first", "add later")
    for name, line in zip(names, done.splitlines(), strict=True):
        by_clock, of_processor = map(float, line.split())
        figures[name] = by_clock, of_processor
    return figures


def seconds_of(*arguments: str) -> Seconds:
    """Return the seconds that a process takes."""
    start, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*arguments)
    end, used_now = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    of_processor = used_now.ru_utime + used_now.ru_stime - used.ru_utime - used.ru_stime
    return end - start, of_processor


def run(*arguments: str) -> str:
    """Run Python in a new process, and return its standard output."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    main()
