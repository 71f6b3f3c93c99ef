"""Starts the processes of a work, kills one of them or the server, and looks at what is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psycopg

import textsim_db as ts
from tests.crash.checks import (
    Tally,
)
from tests.crash.scenarios import Inline, Load, Queue, Work
from tests.crash.schema_scenarios import Install, Migrate, Rebuild
from tests.crash.stage import FIRST, Stage

KINDS = ("client", "worker", "backend", "server", "group")
"""What is killed; server: the postmaster alone, group: it and every process of it."""


def make_works() -> list[Work]:
    return [
        Load("bulk load", ("client", "backend", "server", "group"), 1.5),
        Queue("worker", KINDS, 1.0),
        Inline("inline writes", KINDS, 1.0),
        Rebuild("rebuild", KINDS, 1.5),
        Migrate("migration", ("client", "backend", "server", "group"), 0.4),
        Install("installation", ("client", "backend", "server", "group"), 1.2),
    ]


def crash(
    folder: Path,
    kills: int,
    seed: int,
    fsync: bool = True,
    tell: Callable[[str], None] = print,
) -> list[Work]:
    """Kill so often, each kind of work in turn, and return what was found.

    fsync: have the server write commits to the disk, which no SIGKILL needs.
    """
    stage = Stage(folder, seed, fsync)
    try:
        works = make_works()
        ts.install(stage.url)
        with ts.connect(stage.url) as db:
            for work in works:
                work.prepare(db)
        kinds: dict[str, list[str]] = {work.name: [] for work in works}
        for number in range(kills):
            work = works[number % len(works)]
            left = kinds[work.name]
            if not left:
                left += stage.rng.sample(work.kinds, len(work.kinds))
            _kill_once(stage, work, left.pop(), (number + 1) * FIRST, tell)
    finally:
        stage.close()
    return works


def _kill_once(
    stage: Stage, work: Work, kind: str, first: int, tell: Callable[[str], None]
) -> None:
    start, before = time.monotonic(), work.tally.faults
    work.begin(stage, first)
    stage.wait_for_all()
    moment = stage.rng.uniform(0, work.seconds)
    time.sleep(moment)
    stage.kill(kind)
    work.tally.kills[kind] += 1
    stage.recover(kind, work.tally)
    try:
        work.check(stage)
        work.complete(stage, first + FIRST // 2)
    except (ts.TextsimError, psycopg.Error) as error:
        work.tally.broken.append(f"what was run again failed: {error!r}")
    stage.finish(work.tally)
    tell(
        f"{first // FIRST:4d}. {work.name}: {kind} killed after {moment:.2f} s, "
        f"{work.tally.faults - before} faults ({time.monotonic() - start:.1f} s)"
    )


def table(works: Iterable[Work]) -> str:
    """Return the table of what was killed and what was found."""
    heads = [*KINDS, "transactions", "documents", "in doubt", "lost", "doubled", "broken"]
    rows = {work.name: _figures(work.tally) for work in works}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = [f"{'killed:':14}" + "".join(f"{head:>{len(head) + 2}}" for head in heads)]
    for name, figures in rows.items():
        cells = zip(figures, heads, strict=True)
        lines.append(f"{name:14}" + "".join(f"{n:>{len(head) + 2},}" for n, head in cells))
    return "\n".join(lines)


def _figures(tally: Tally) -> list[int]:
    return [
        *(tally.kills[kind] for kind in KINDS),
        tally.transactions,
        tally.documents,
        tally.doubtful,
        tally.lost,
        tally.duplicated,
        len(tally.broken),
    ]
