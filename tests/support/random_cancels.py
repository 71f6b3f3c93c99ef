"""Tasks that use one corpus side by side, most of which are cancelled at random moments."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from itertools import count
from typing import Any

from textsim_db import aio

TASKS = 16
GROUP = 7
"""The documents of an add_many(), which are one batch."""
LONGEST_SECONDS = 0.06
"""Tasks are cancelled after a random time up to this one."""
PATIENT = 0.2
"""The share of the tasks that are not cancelled."""

Job = Callable[[aio.Corpus], Coroutine[Any, Any, object]]


class Jobs:
    """The jobs of the tasks, in an order that depends on the seed."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._numbers = count()
        self._jobs: dict[str, Job] = {
            "query": lambda corpus: corpus.query(self._text()),
            "query_many": lambda corpus: corpus.query_many([self._text() for _ in range(20)]),
            "neighbours": lambda corpus: corpus.neighbours("k5"),
            "add": lambda corpus: corpus.add(f"single {next(self._numbers)}", self._text()),
            "add_many": self._add_group,
            "remove": lambda corpus: corpus.remove([f"single {self._rng.randrange(500)}"]),
            "pairs": lambda corpus: self._read(corpus.pairs()),
            "clusters": lambda corpus: self._read(corpus.clusters()),
            "members": lambda corpus: self._read(corpus.members()),
            "update_clusters": lambda corpus: corpus.update_clusters(),
            "check": lambda corpus: corpus.check(),
        }

    def next(self) -> tuple[str, Job]:
        return self._rng.choice(list(self._jobs.items()))

    def _text(self) -> str:
        number, word = self._rng.randrange(300), self._rng.randrange(9)
        return f"document number {number} of version one w{word}"

    def _add_group(self, corpus: aio.Corpus) -> Coroutine[Any, Any, object]:
        group = next(self._numbers)
        return corpus.add_many([(f"group {group} {i}", self._text()) for i in range(GROUP)])

    async def _read(self, rows: AsyncIterator[object]) -> None:
        most = self._rng.randrange(1, 200)
        async for _ in rows:
            most -= 1
            if most == 0:
                return
            await asyncio.sleep(0)


async def cancel_at_random(corpus: aio.Corpus, rng: random.Random, number: int) -> Counter[str]:
    """Run jobs side by side until this number of them was cancelled; return how often each was."""
    jobs, cancelled = Jobs(rng), Counter[str]()

    async def work() -> None:
        while cancelled.total() < number:
            name, job = jobs.next()
            task = asyncio.create_task(job(corpus))
            is_patient = rng.random() < PATIENT
            seconds = None if is_patient else rng.uniform(0, LONGEST_SECONDS)
            await asyncio.wait([task], timeout=seconds)
            task.cancel()
            await asyncio.wait([task])
            if task.cancelled():
                cancelled[name] += 1
            else:
                task.result()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(TASKS):
            tasks.create_task(work())
    return cancelled
