"""The time of commands that compute nothing, and of a process until its first add.

    python -m benchmarks.startup [--rounds 15] [--record]

Each figure is a median over processes, in seconds of the processor. Processes with only the imports run
in turns with them, for comparison.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial

from benchmarks.harness import ROOT, fresh_database, identifier, in_turns, options, publish, span

CORPUS = "startup"
IMPORTS = "import typer, sqlalchemy, psycopg"
KERNEL_IMPORTS = f"{IMPORTS}, numpy, numba"
HELP = "textsim attach --help"
COMMANDS = ["corpus list", f"corpus show {CORPUS}", "status", "pending"]
OPEN, LATER = "open a corpus and add first", "add later"
ADD = f"""
import sys, time
times = []
import textsim_db as ts
with ts.connect(sys.argv[1]) as db:
    times.append(time.process_time())
    corpus = db.corpus({CORPUS!r})
    corpus.add("first", "a text that is added first, " + sys.argv[2])
    times.append(time.process_time())
    corpus.add("later", "a text that is added later, " + sys.argv[2])
    times.append(time.process_time())
print(times[1] - times[0], times[2] - times[1])
"""


def run(*arguments: str) -> str:
    """Run Python in a new process, and return its standard output."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def seconds_of(arguments: tuple[str, ...], number: int) -> list[float]:
    """Return the seconds of the processor that a process takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return [after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime]


def adds(url: str, number: int) -> list[float]:
    """Return the seconds of the processor of the first add of a process, and of the second."""
    return [float(seconds) for seconds in run("-c", ADD, url, str(number)).split()]


def measure(url: str, rounds: int) -> dict[str, list[float]]:
    """Return the medians of each kind of process, which take turns."""
    sides: dict[str, Callable[[int], list[float]]] = {
        IMPORTS: partial(seconds_of, ("-c", IMPORTS)),
        KERNEL_IMPORTS: partial(seconds_of, ("-c", KERNEL_IMPORTS)),
        HELP: partial(seconds_of, ("-m", "textsim_db.cli", *HELP.split()[1:])),
        OPEN: partial(adds, url),
    }
    for command in COMMANDS:
        program = ("-m", "textsim_db.cli", *command.split(), "--database-url", url)
        sides[command] = partial(seconds_of, program)
    in_turns(sides, 1)  # fills caches
    results = in_turns(sides, rounds)
    return {
        name: [statistics.median(column) for column in zip(*values, strict=True)]
        for name, values in results.items()
    }


def main() -> None:
    """Measure, and print a table."""
    given = options(__doc__, rounds=15).parse_args()
    with fresh_database() as bench:
        bench.db.create_corpus(CORPUS).add("key", "a text, so that kernels are compiled")
        medians = measure(bench.db.url, given.rounds)
    opened, later = medians[OPEN]
    of_commands = [medians[command][0] for command in COMMANDS]
    rows = [["", "seconds of the processor"]]
    rows += [[name, f"{medians[name][0]:.2f}"] for name in (IMPORTS, HELP)]
    rows.append(["textsim corpus list, corpus show, status, pending", span(of_commands)])
    rows.append([KERNEL_IMPORTS, f"{medians[KERNEL_IMPORTS][0]:.2f}"])
    rows += [[OPEN, f"{opened:.2f}"], [LATER, f"{later:.3f}"]]
    figures = {identifier(OPEN): opened, identifier(LATER): later}
    publish(given.record, "startup", figures, {"startup": rows})


if __name__ == "__main__":
    main()
