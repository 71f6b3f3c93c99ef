"""Threads: runs functions in bounded pools of threads; a cancelled task cancels its function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Protocol, TypeVar

from textsim_db.db.cancellation import Cancellation
from textsim_db.errors import DatabaseUnavailable

Result = TypeVar("Result")


class Closable(Protocol):
    """An object that is open until its close() is called, in any thread."""

    def close(self) -> None: ...  # noqa: D102


class Call:
    """The context of one function, or of several that run one after another."""

    def __init__(self) -> None:
        self.cancellation = Cancellation()
        self.context = copy_context()
        self.context.run(self.cancellation.activate)


class Threads:
    """The pools of threads of one database; any number of tasks share them.

    Calls, later steps of iterators, and what ends both have a pool each. A call may wait for a
    connection, which only another step or an end can free.
    """

    def __init__(self, count: int) -> None:
        self._calls = ThreadPoolExecutor(count, "textsim-call")
        self._steps = ThreadPoolExecutor(count, "textsim-step")
        self._ends = ThreadPoolExecutor(2 * count, "textsim-end")
        self._is_closed = False
        self.open: set[Closable] = set()
        """The objects that close() closes."""

    async def run(self, function: Callable[[], Result]) -> Result:
        """Run a function in a thread.

        If the task is cancelled, the statements of the function are cancelled. The task is resumed when
        the function has ended.

        Raises:
            DatabaseUnavailable: the database was closed.
        """
        return await self._run(self._calls, function, Call())

    async def step(self, function: Callable[[], Result], call: Call, is_first: bool) -> Result:
        """Run a step of an iterator as run() does; all steps have the same call."""
        return await self._run(self._calls if is_first else self._steps, function, call)

    async def end(self, function: Callable[[], Result]) -> Result:
        """Run a function that ends something, even if the task is cancelled."""
        return await ended(self._ends.submit(copy_context().run, function))

    async def close(self, last: Callable[[], None]) -> None:
        """Close the open objects, wait for all calls, and then call a function."""
        if not self._is_closed:
            self._is_closed = True
            try:
                await self.end(self._close)
            finally:
                await self.end(last)
                self._ends.shutdown()

    def _close(self) -> None:
        for each in list(self.open):
            each.close()
        self._calls.shutdown()
        self._steps.shutdown()

    async def _run(
        self, pool: ThreadPoolExecutor, function: Callable[[], Result], call: Call
    ) -> Result:
        if self._is_closed:
            raise DatabaseUnavailable("the database was closed; open it again with aio.connect()")
        work = pool.submit(call.context.run, function)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            if not work.cancel():
                await ended(self._ends.submit(call.cancellation.cancel_until_done, work))
            raise


async def ended(work: Future[Result]) -> Result:
    """Wait until a function in a thread has ended, even if the task is cancelled meanwhile."""
    waiter = asyncio.wrap_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not waiter.done():
        try:
            await asyncio.wait([waiter])
        except asyncio.CancelledError as error:
            cancelled = error
    result = waiter.result()
    if cancelled is not None:
        raise cancelled
    return result
