"""Run the crash tests and print the kills and the faults; exit with 1 if there are faults."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from tests.crash.runner import crash, table
from tests.support.embedded import arguments_of, server_folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--only", default="", help="the works whose names contain this")
    arguments = arguments_of(parser)
    with server_folder() as folder:
        report = partial(print, flush=True)
        works = crash(folder, arguments.kills, arguments.seed, True, report, arguments.only)
    print(table(works))
    problems = [f"{work.name}: {message}" for work in works for message in work.findings.problems]
    print("\n".join(problems[:50]), end="\n" if problems else "")
    return 1 if any(work.findings.faults for work in works) else 0


if __name__ == "__main__":
    sys.exit(main())
