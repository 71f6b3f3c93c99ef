"""Write to a unique corpus with many clients at random, and compare with brute force.

    python -m tests.soak.unique --minutes 30

Clients add, replace and remove documents by SQL and by Python, and insert, update and delete rows of
attached tables, in transactions with savepoints, some of which they roll back. A worker gives word ids
meanwhile. After each round all clients pause. Then no two documents may match, the documents of each
table must equal its rows, and a new text must be refused if and only if brute force finds a match.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import psycopg

import textsim_db as ts
from tests.support.embedded import server_folder
from tests.support.unique_writers import Client, faults_of, prepare
from textsim_db.db import embedded_server


def run_round(clients: list[Client]) -> None:
    """Run all clients at once."""
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def soak(
    url: str, clients: int, seed: int, rounds: Iterable[object]
) -> tuple[Counter[str], list[str]]:
    """Run rounds until there is a fault; return the outcomes of transactions and the faults."""
    rng, faults = random.Random(seed), []
    with ExitStack() as stack:
        db = stack.enter_context(ts.connect(url))
        connection = stack.enter_context(psycopg.connect(url, autocommit=True))
        prepare(db, connection)
        sessions = [Client(db, f"{seed} {number}") for number in range(clients)]
        worker = db.worker()
        thread = threading.Thread(target=worker.run)
        thread.start()
        stack.callback(thread.join)
        stack.callback(worker.stop)
        for _ in rounds:
            run_round(sessions)
            if faults := faults_of(connection, rng):
                break
        faults += [str(problem) for problem in db.corpus("c").check()]
        for session in sessions:
            session.connection.close()
    outcomes = sum((session.outcomes for session in sessions), Counter[str]())
    faults += [name for name in outcomes if name.startswith("fault: ")]
    return outcomes, faults


def rounds_for(seconds: float) -> Iterator[None]:
    """Yield once for each round, until this time after the first round began."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


def main() -> int:
    """Run the soak test on an embedded server of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.unique")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    # However the run ends, the server must not outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"--seed {arguments.seed}", flush=True)
    with server_folder() as folder:
        url = embedded_server.start(folder)
        ts.install(url)
        rounds = rounds_for(60 * arguments.minutes)
        outcomes, faults = soak(url, arguments.clients, arguments.seed, rounds)
    print("\n".join(f"{count:8,} {name}" for name, count in outcomes.most_common()))
    print("\n".join(f"FAILED: {fault}" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
