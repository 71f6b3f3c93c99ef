"""Start the processes of a work, kill one of them or the server, and check what is stored."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg

import textsim_db as ts
from tests.crash.checks import Findings
from tests.crash.scenarios import Inline, Load, Queue, Rebuild, Unique, Work
from tests.crash.stage import FIRST, Stage

KINDS = ("client", "worker", "backend", "server", "group")
"""Targets of a kill; server: the postmaster alone, group: the postmaster and all its processes."""


def make_works() -> list[Work]:
    return [
        Load("bulk load", ("client", "backend", "server", "group"), 1.5),
        Queue("worker", KINDS, 1.0),
        Inline("inline writes", KINDS, 1.0),
        Unique("unique corpus", KINDS, 1.0),
        Rebuild("rebuild", KINDS, 1.5),
    ]


def crash(
    folder: Path, kills: int, seed: int, fsync: bool = True, report: Any = print, only: str = ""
) -> list[Work]:
    """Run `kills` kills, each kind of work in turn, and return the works with their findings.

    fsync: have the server write commits to the disk; a SIGKILL loses no commit without it. only: run the
    works whose names contain this.
    """
    stage = Stage(folder, seed, fsync)
    try:
        works = [work for work in make_works() if only in work.name]
        ts.install(stage.url)
        with ts.connect(stage.url) as db:
            for work in works:
                work.prepare(db)
        kinds: dict[str, list[str]] = {work.name: [] for work in works}
        for number in range(kills):
            work = works[number % len(works)]
            unused_kinds = kinds[work.name]
            if not unused_kinds:
                unused_kinds += stage.rng.sample(work.kinds, len(work.kinds))
            _kill_once(stage, work, unused_kinds.pop(), (number + 1) * FIRST, report)
    finally:
        stage.close()
    return works


def _kill_once(stage: Stage, work: Work, kind: str, first: int, report: Any) -> None:
    start, before = time.monotonic(), work.findings.faults
    work.begin(stage, first)
    stage.wait_for_all()
    moment = stage.rng.uniform(0, work.seconds)
    time.sleep(moment)
    stage.kill(kind)
    work.findings.kills[kind] += 1
    stage.recover(kind, work.findings)
    try:
        work.check(stage)
        work.complete(stage, first + FIRST // 2)
    except (ts.TextsimError, psycopg.Error) as error:
        work.findings.problems.append(f"the repeated work failed: {error!r}")
    stage.finish(work.findings)
    report(
        f"{first // FIRST:4d}. {work.name}: {kind} killed after {moment:.2f} s, "
        f"{work.findings.faults - before} faults ({time.monotonic() - start:.1f} s)"
    )


def table(works: Iterable[Work]) -> str:
    """Return a table of the kills and the findings of each work."""
    heads = [*KINDS, "transactions", "documents", "in doubt", "lost", "doubled", "problems"]
    rows = {work.name: _figures(work.findings) for work in works}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = [f"{'killed:':14}" + "".join(f"{head:>{len(head) + 2}}" for head in heads)]
    for name, figures in rows.items():
        cells = zip(figures, heads, strict=True)
        lines.append(f"{name:14}" + "".join(f"{n:>{len(head) + 2},}" for n, head in cells))
    return "\n".join(lines)


def _figures(findings: Findings) -> list[int]:
    return [
        *(findings.kills[kind] for kind in KINDS),
        findings.transactions,
        findings.documents,
        findings.in_doubt,
        findings.lost,
        findings.duplicated,
        len(findings.problems),
    ]
