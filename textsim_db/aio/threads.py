"""Runs functions and generators in bounded pools of threads; a cancelled task cancels its function.

Stream and Results are the items of a generator as an async iterator. A step takes up to MOST_ITEMS
items, and begins when the consumer has had the items of the step before. Between two steps the
generator keeps its connection, and no thread. These rules keep the pool right:

- The context of a call has its cancellation, and db.connections.lend() notes each connection in it. A
  thread of the package that sends statements runs in a copy of the context. The thread that watches a
  worker does not: it reports to the end.
- While a request to cancel is under way, the connection does not return to the pool. So the request
  never ends a statement of somebody else. If a request fails, the connection is closed.
- Cancelled is no Exception, so nothing repeats or ignores it. While it is handled, statements run again:
  an interrupted rebuild drops its hidden corpus.
- An event loop that shuts down closes all asynchronous generators at once, in any order. So no generator
  of aio holds another one open.
- A semaphore bounds the open iterators, because iterators that all wait for another connection would
  never end.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from textsim_db.db.cancellation import Cancellation
from textsim_db.errors import DatabaseUnavailable
from textsim_db.files import arrow_frames

OPEN_PATIENCE_SECONDS = 30.0
"""How long an iterator waits for the end of another one, as long as a call waits for a connection."""

Result = TypeVar("Result")


class CallContext:
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
        self._open: set[_Steps[Any]] = set()
        self._is_closed = False

    async def run(self, function: Callable[[], Result], call: CallContext | None = None) -> Result:
        """Run a function in a thread; call: that of all steps of an iterator.

        If the task is cancelled, the statements of the function are cancelled. The task is resumed when
        the function has ended.

        Raises:
            DatabaseUnavailable: the database was closed.
        """
        if self._is_closed:
            raise DatabaseUnavailable("the database was closed; open it again with aio.connect()")
        call = call or CallContext()
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

    async def begin(self, opened: _Steps[Any]) -> None:
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

    def forget(self, opened: _Steps[Any]) -> None:
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

    def _close(self, opened: list[_Steps[Any]], last: Callable[[], None]) -> None:
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


MOST_ITEMS = 1000
"""The items of a step at most; they wait in memory for the consumer."""
STEP_SECONDS = 0.05
"""A step that has an item ends after this time, so that the first items of a slow search come early."""

Item = TypeVar("Item")
Row = TypeVar("Row", bound=NamedTuple)
Iterated = TypeVar("Iterated", bound="Stream[Any]")


class Stream(AsyncIterator[Item]):
    """The items that a method yields, as an async iterator.

    The search begins with the first item. It ends with the last one, with aclose(), or with the block
    of `async with`. If a consumer leaves `async for` early, it ends soon after; until then it keeps a
    connection. The errors of the method are raised by the iteration.

    Examples:
        >>> import asyncio
        >>> from textsim_db import aio
        >>> async def first_pair() -> None:
        ...     async with aio.connect() as db:
        ...         corpus = await db.corpus("news")
        ...         async with corpus.pairs() as pairs:
        ...             print(await anext(pairs))
        >>> asyncio.run(first_pair())
        Pair(a='monday', b='update', similarity=0.9)
    """

    def __init__(self, threads: Threads, begin: Callable[[], Generator[Item, None, None]]) -> None:
        self._threads = threads
        self._items = _items(threads, _Steps(begin))

    async def __anext__(self) -> Item:
        return await anext(self._items)

    async def aclose(self) -> None:
        """End the search, and its transaction."""
        await self._items.aclose()

    async def __aenter__(self: Iterated) -> Iterated:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class Results(Stream[Row]):
    """The rows that a method finds: an async iterator of named tuples, and an Arrow table."""

    def __init__(self, threads: Threads, begin: Callable[[], arrow_frames.Results[Row]]) -> None:
        super().__init__(threads, begin)
        self._begin = begin

    async def to_arrow(self) -> Any:
        """Return all rows as a pyarrow.Table; the rows are found anew.

        Raises:
            ConfigurationError: PyArrow is not installed.
        """
        return await self._threads.run(lambda: self._begin().to_arrow())


async def _items(threads: Threads, steps: _Steps[Item]) -> AsyncGenerator[Item, None]:
    """Yield the items of all steps; asyncio closes a generator that nobody reads any more."""
    call = CallContext()
    await threads.begin(steps)
    try:
        while items := await threads.run(steps.take, call):
            for item in items:
                yield item
    finally:
        try:
            if steps.is_begun:
                await threads.end(steps.close)
        finally:
            threads.forget(steps)


class _Steps(Generic[Item]):
    """The steps of a generator; each step may run in another thread."""

    def __init__(self, begin: Callable[[], Generator[Item, None, None]]) -> None:
        self._begin = begin
        self._items: Generator[Item, None, None] | None = None
        self._failure: Exception | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def is_begun(self) -> bool:
        """Whether a generator is open."""
        return self._items is not None and not self._is_closed

    def take(self) -> list[Item]:
        """Return the next items; none after the last item."""
        with self._lock:
            if self._is_closed:
                raise DatabaseUnavailable("the database was closed before the last item was read")
            if self._failure is not None:
                raise self._failure
            if self._items is None:
                self._items = self._begin()
            return self._take(self._items)

    def _take(self, items: Generator[Item, None, None]) -> list[Item]:
        taken: list[Item] = []
        end = time.monotonic() + STEP_SECONDS
        try:
            for item in items:
                taken.append(item)
                if len(taken) == MOST_ITEMS or time.monotonic() > end:
                    break
        except Exception as error:
            if not taken:
                raise
            self._failure = error  # the items before it come first
        return taken

    def close(self) -> None:
        """End the generator, after the step that is running."""
        with self._lock:
            self._is_closed = True
            if self._items is not None:
                self._items.close()
