"""Database: the methods of textsim_db.Database as coroutines; connect() opens it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from contextvars import copy_context
from functools import partial

from sqlalchemy import URL, Engine

from textsim_db.aio.async_corpus import Corpus
from textsim_db.aio.derive import Derived, coroutine, opening
from textsim_db.aio.threads import Threads, ended
from textsim_db.corpus import database
from textsim_db.db.engine import APPLICATION_NAME
from textsim_db.errors import TextsimError
from textsim_db.results import ChangeReport
from textsim_db.settings.check_values import check_count
from textsim_db.sync import worker

THREADS = 8
"""The calls that run at the same time. More of them wait for each other, as Python runs one thread.

An iterator keeps up to three connections, and the pool of an engine lends 25.
"""
_MOST_THREADS = 1000


class Worker(Derived[worker.Worker]):
    """A textsim_db.Worker with coroutines; Database.worker() returns it."""

    async def run(self, until_idle: bool = False) -> ChangeReport:
        """Index changes in a thread of its own until stop() is called or the task is cancelled.

        Otherwise it is run() of textsim_db.Worker. A cancelled task is resumed when the worker has
        ended, as after stop().
        """
        thread = ThreadPoolExecutor(1, "textsim-worker")
        work = thread.submit(copy_context().run, self._synchronous.run, until_idle)
        thread.shutdown(wait=False)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            self.stop()
            with suppress(TextsimError):
                await ended(work)
            raise

    def stop(self) -> None:
        """Let run() end after the current batch; see textsim_db.Worker.stop()."""
        self._synchronous.stop()

    @property
    def unusable(self) -> dict[str, str]:
        """The tables that this role cannot index, each with the reason."""
        return self._synchronous.unusable

    cancel = coroutine(worker.Worker.cancel)
    why_stuck = coroutine(worker.Worker.why_stuck)
    why_not_ready = coroutine(worker.Worker.why_not_ready)


class Database(Derived[database.Database]):
    """A textsim_db.Database with coroutines; connect() opens it, and closes it at the end.

    The arguments, results and errors are those of textsim_db.Database. Tasks may share a database, in
    the event loop in which it was opened.
    """

    @property
    def url(self) -> str:
        """The address of the database for psql and other clients, with the password."""
        return self._synchronous.url

    @property
    def engine(self) -> Engine:
        """The SQLAlchemy engine, which is not asynchronous."""
        return self._synchronous.engine

    async def close(self) -> None:
        """End open iterators, wait for running calls, and close all connections as in Database.close().

        Later calls raise DatabaseUnavailable.
        """
        await self._threads.close(self._synchronous.close)

    create_corpus = opening(database.Database.create_corpus, Corpus)
    corpus = opening(database.Database.corpus, Corpus)
    manage = opening(database.Database.manage, Corpus)
    drop_corpus = coroutine(database.Database.drop_corpus)
    corpora = coroutine(database.Database.corpora)
    worker = opening(database.Database.worker, Worker)
    workers = coroutine(database.Database.workers)
    sources = coroutine(database.Database.sources)
    metrics = coroutine(database.Database.metrics)


def connect(
    address: str | URL | Engine | None = None,
    application_name: str = APPLICATION_NAME,
    *,
    threads: int = THREADS,
) -> AbstractAsyncContextManager[Database]:
    """Open a database as textsim_db.connect() does, for a block of `async with`.

    It needs asyncio. If a task is cancelled, its statement is cancelled on the server, and its
    connection returns to the pool. A cancelled write may have been committed: each batch of documents
    is one transaction, which is stored completely or not at all.

    Args:
        address: as in textsim_db.connect().
        application_name: as in textsim_db.connect().
        threads: the number of calls that run at the same time; other calls wait. As many iterators may
            be open; others wait, up to 30 seconds. An open iterator keeps up to three connections.

    Raises:
        ConfigurationError: as in textsim_db.connect(), or `threads` is out of range.
        SchemaError: as in textsim_db.connect().
        DatabaseUnavailable: as in textsim_db.connect().

    Examples:
        >>> import asyncio
        >>> from textsim_db import aio
        >>> async def names() -> list[str]:
        ...     async with aio.connect() as db:
        ...         await db.create_corpus("news")
        ...         return await db.corpora()
        >>> asyncio.run(names())
        ['news']
    """
    checked = check_count(threads, "threads", 1, _MOST_THREADS)
    return _Connecting(partial(database.connect, address, application_name), Threads(checked))


class _Connecting(AbstractAsyncContextManager[Database]):
    """Opens a database at the beginning of a block, and closes it at the end.

    It is no generator: when an event loop shuts down, it closes all generators at once.
    """

    def __init__(self, open_database: Callable[[], database.Database], threads: Threads) -> None:
        self._open_database = open_database
        self._threads = threads
        self._opened = ExitStack()

    async def __aenter__(self) -> Database:
        try:
            return Database(await self._threads.run(self._open), self._threads)
        except BaseException:
            await self._close()  # a thread may have opened it after the task was cancelled
            raise

    async def __aexit__(self, *error: object) -> None:
        await self._close()

    def _open(self) -> database.Database:
        return self._opened.enter_context(self._open_database())

    async def _close(self) -> None:
        await self._threads.close(self._opened.close)
