"""Run hostile inputs through the kernels, compiled with bounds checking, and check the results.

    python -m tests.fuzz --inputs 10000000 [--seed 7] [--processes 2] [--sql 20000 --postgres 18]

Seed and number determine a batch: a failure names both, and --batch runs that batch again. With --sql
a server computes this number of texts as well, from normal form to buckets. These kernels have a cache
of their own, because the usual kernels do not check bounds.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import random
import sys
import time
import traceback
from pathlib import Path
from typing import Any

BATCH = 500
HANG_SECONDS = 600
CACHE = Path(__file__).with_name("__pycache__") / "checked"


def _check(seed: int, first: int, step: int, inputs: int, at: Any, done: Any) -> None:
    """Check every step-th batch until all processes have done `inputs`; exit with 1 on a failure."""
    from tests.fuzz import checks

    checks.assert_bounds_are_checked()
    checks_of_process = checks.Checks()
    for number in range(first, sys.maxsize, step):
        at.value = number
        # A kernel that hangs cannot be interrupted: the process prints its traceback and ends.
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        try:
            count = checks_of_process.batch(seed, number, BATCH)
        except BaseException:
            print(f"seed {seed}, batch {number}:", flush=True)
            traceback.print_exc()
            sys.exit(1)
        faulthandler.cancel_dump_traceback_later()
        with done.get_lock():
            done.value += count
            if done.value >= inputs:
                return


def _compare(url: str, seed: int, texts: int, at: Any, done: Any) -> None:
    """Compare a sample of the batches on a server; exit with 1 if a text differs."""
    import psycopg

    import textsim_db as ts
    from tests.fuzz import generate
    from tests.support import parity

    real = generate.real_texts()
    with ts.connect(url) as db, psycopg.connect(db.url, autocommit=True) as connection:
        corpora = parity.create_corpora(db)
        while done.value < texts:
            at.value += 1
            batch = generate.batch(seed, at.value, BATCH, real)
            short_texts = [text for text in batch if len(text) <= 1000][: texts - done.value]
            for difference in parity.differences(connection, corpora, short_texts):
                print(f"seed {seed}, batch {at.value}: {difference[:500]}", flush=True)
                sys.exit(1)
            done.value += len(short_texts)


def main() -> None:
    """Run the checks in several processes; exit with 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--batch", type=int, help="run this batch only")
    parser.add_argument("--sql", type=int, default=0, help="texts to compare on a server as well")
    parser.add_argument("--postgres", type=int, default=18, help="version of the embedded server")
    parser.add_argument("--database-url", help="any other server, with the schema installed")
    arguments = parser.parse_args()
    # Numba reads these when it is imported, which only the processes below do.
    os.environ["NUMBA_BOUNDSCHECK"] = "1"
    os.environ["NUMBA_CACHE_DIR"] = str(CACHE)
    os.environ["TEXTSIM_UNCOMPILED_SECONDS"] = "0"
    if arguments.batch is not None:
        _check(arguments.seed, arguments.batch, 1, 1, _number(), _number())
        return
    started = time.monotonic()
    done, compared = _number(), _number()
    print(f"seed {arguments.seed}, {arguments.processes} processes", flush=True)
    processes = {}
    context = multiprocessing.get_context("spawn")
    for i in range(arguments.processes):
        at = _number()
        process_arguments: tuple[Any, ...] = (
            *(arguments.seed, i, arguments.processes, arguments.inputs, at, done),
        )
        processes[context.Process(target=_check, args=process_arguments, daemon=True)] = at
    if arguments.sql:
        at = _number()
        process_arguments = (_server(arguments), arguments.seed, arguments.sql, at, compared)
        processes[context.Process(target=_compare, args=process_arguments, daemon=True)] = at
    for process in processes:
        process.start()
    failed = False
    shown = started
    while any(process.is_alive() for process in processes) and not failed:
        time.sleep(0.2)
        failed = any(process.exitcode for process in processes)
        if time.monotonic() - shown > 60:
            shown = time.monotonic()
            _show(done.value, compared.value, shown - started)
    for process, at in processes.items():
        if process.exitcode:
            print(f"batch {at.value} of seed {arguments.seed}: exit code {process.exitcode}")
            failed = True
    _show(done.value, compared.value, time.monotonic() - started)
    print("FAILED" if failed else "no crash, no index out of range, no disagreement")
    sys.exit(failed)


def _number() -> Any:
    return multiprocessing.get_context("spawn").Value("q", 0)


def _server(arguments: argparse.Namespace) -> str:
    if arguments.database_url is not None:
        return str(arguments.database_url)
    import textsim_db as ts
    from textsim_db.db import embedded_server

    url = embedded_server.start(version=arguments.postgres)
    ts.install(url)
    return url


def _show(inputs: int, compared: int, seconds: float) -> None:
    print(
        f"{inputs:,} inputs, {inputs / seconds:,.0f} a second; {compared:,} texts compared with SQL",
        flush=True,
    )
