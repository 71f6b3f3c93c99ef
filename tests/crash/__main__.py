"""Run the crash tests and print the kills and the faults; exit with 1 if there are faults."""

from __future__ import annotations

import argparse
import random
import signal
import sys
from functools import partial

from tests.crash.runner import crash, table
from tests.support.embedded import server_folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--only", default="", help="the works whose names contain this")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    # However the run ends, the server must not outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"--seed {arguments.seed}", flush=True)
    with server_folder() as folder:
        report = partial(print, flush=True)
        works = crash(folder, arguments.kills, arguments.seed, True, report, arguments.only)
    print(table(works))
    problems = [f"{work.name}: {message}" for work in works for message in work.findings.problems]
    print("\n".join(problems[:50]), end="\n" if problems else "")
    return 1 if any(work.findings.faults for work in works) else 0


if __name__ == "__main__":
    sys.exit(main())
