"""Threads: runs functions in bounded pools of threads; a cancelled task cancels its function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Protocol, TypeVar

from textsim_db.db.cancellation import Cancellation
from textsim_db.errors import DatabaseUnavailable

OPEN_PATIENCE_SECONDS = 30.0
"""How long an iterator waits for the end of another one, as long as a call waits for a connection."""

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
    """The threads of one database; any number of tasks share them.

    Calls and iterators are ended in other threads, so their end never waits for other calls.
    """

    def __init__(self, count: int) -> None:
        self._calls = ThreadPoolExecutor(count, "textsim-call")
        self._ends = ThreadPoolExecutor(2 * count, "textsim-end")
        self._count = count
        self._may_open = asyncio.Semaphore(count)
        self._open: set[Closable] = set()
        self._is_closed = False

    async def run(self, function: Callable[[], Result], call: Call | None = None) -> Result:
        """Run a function in a thread; call: that of all steps of an iterator.

        If the task is cancelled, the statements of the function are cancelled. The task is resumed when
        the function has ended.

        Raises:
            DatabaseUnavailable: the database was closed.
        """
        if self._is_closed:
            raise DatabaseUnavailable("the database was closed; open it again with aio.connect()")
        call = call or Call()
        work = self._calls.submit(call.context.run, function)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            if not work.cancel():
                await ended(self._ends.submit(call.cancellation.cancel_until_done, work))
            raise

    async def end(self, function: Callable[[], Result]) -> Result:
        """Run a function that ends something, to its end, even if the task is cancelled."""
        return await ended(self._ends.submit(copy_context().run, function))

    async def begin(self, opened: Closable) -> None:
        """Wait until few enough objects are open, and let close() close this one too.

        Each open iterator keeps up to three connections. If all of them waited for another connection,
        none would end.

        Raises:
            DatabaseUnavailable: no other one ended in time, or the database was closed.
        """
        try:
            async with asyncio.timeout(OPEN_PATIENCE_SECONDS):
                await self._may_open.acquire()
        except TimeoutError:
            raise DatabaseUnavailable(
                f"{self._count} iterators were open for {OPEN_PATIENCE_SECONDS:g} s, and no more "
                "may be; end some, or pass a larger threads= to aio.connect()"
            ) from None
        self._open.add(opened)

    def forget(self, opened: Closable) -> None:
        """Note that an object is closed, so that another one may begin."""
        self._open.discard(opened)
        self._may_open.release()

    async def close(self, last: Callable[[], None]) -> None:
        """Close the open objects, wait for all calls, and then call a function."""
        if not self._is_closed:
            self._is_closed = True
            try:
                await self.end(partial(self._close, list(self._open), last))
            finally:
                self._ends.shutdown(wait=False)

    def _close(self, opened: list[Closable], last: Callable[[], None]) -> None:
        try:
            for each in opened:
                each.close()
            self._calls.shutdown()
        finally:
            last()


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
