"""Runs the crash tests and prints what was killed and what was found; exits 1 where anything is."""

from __future__ import annotations

import argparse
import random
import signal
import sys

from tests.crash.runner import crash, table
from tests.support.embedded import server_folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    # The server must not outlive the run, however it ends.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"--seed {arguments.seed}", flush=True)
    with server_folder() as folder:
        works = crash(
            folder,
            arguments.kills,
            arguments.seed,
            tell=lambda line: print(line, flush=True),
        )
    print(table(works))
    broken = [f"{work.name}: {message}" for work in works for message in work.tally.broken]
    print("\n".join(broken[:50]), end="\n" if broken else "")
    return 1 if any(work.tally.faults for work in works) else 0


if __name__ == "__main__":
    sys.exit(main())
