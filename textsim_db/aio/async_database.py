"""Corpus and Database: the methods of the synchronous classes as coroutines; connect() opens one.

Each coroutine and async iterator is made from the synchronous method, with its arguments, types and
docstring. So a new method needs one line here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import URL, Engine

from textsim_db import corpus
from textsim_db.aio.threads import Results, Stream, Threads, ended
from textsim_db.corpus import database
from textsim_db.db.engine import APPLICATION_NAME
from textsim_db.errors import TextsimError
from textsim_db.files import arrow_frames
from textsim_db.results import ChangeReport
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.sync import worker

Synchronous = TypeVar("Synchronous")
Synchronous_co = TypeVar("Synchronous_co", covariant=True)
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Row = TypeVar("Row", bound=NamedTuple)


class Derived(Generic[Synchronous_co]):
    """An object whose methods run those of a synchronous object in threads."""

    def __init__(self, synchronous: Synchronous_co, threads: Threads) -> None:
        self._synchronous = synchronous
        self._threads = threads

    def __repr__(self) -> str:
        return f"aio.{self._synchronous!r}"


Made = TypeVar("Made", bound=Derived[Any])


def coroutine(
    method: Callable[Concatenate[Synchronous, Parameters], Result],
) -> Callable[Concatenate[Derived[Synchronous], Parameters], Coroutine[Any, Any, Result]]:
    """Return a method as a coroutine."""

    @wraps(method)
    async def call(
        self: Derived[Synchronous], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        return await self._threads.run(partial(method, self._synchronous, *args, **kwargs))

    return call


def opening(
    method: Callable[Concatenate[Synchronous, Parameters], Any],
    kind: Callable[[Any, Threads], Made],
) -> Callable[Concatenate[Derived[Synchronous], Parameters], Coroutine[Any, Any, Made]]:
    """Return a method as a coroutine whose result is of an asynchronous class."""

    @wraps(method)
    async def call(
        self: Derived[Synchronous], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Made:
        opened = partial(method, self._synchronous, *args, **kwargs)
        return kind(await self._threads.run(opened), self._threads)

    return call


def stream(
    method: Callable[Concatenate[Synchronous, Parameters], Generator[Result, None, None]],
) -> Callable[Concatenate[Derived[Synchronous], Parameters], Stream[Result]]:
    """Return a generator as a method that returns an async iterator."""

    @wraps(method)
    def call(
        self: Derived[Synchronous], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Stream[Result]:
        return Stream(self._threads, partial(method, self._synchronous, *args, **kwargs))

    return call


def results(
    method: Callable[Concatenate[Synchronous, Parameters], arrow_frames.Results[Row]],
) -> Callable[Concatenate[Derived[Synchronous], Parameters], Results[Row]]:
    """Return a method that finds rows as a method that returns an async iterator of rows."""

    @wraps(method)
    def call(
        self: Derived[Synchronous], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Results[Row]:
        return Results(self._threads, partial(method, self._synchronous, *args, **kwargs))

    return call


THREADS = 8
"""The calls that run at the same time. More of them wait for each other, as Python runs one thread.

An iterator keeps up to three connections, and the pool of an engine lends 25.
"""
_MOST_THREADS = 1000


class Corpus(Derived[corpus.Corpus]):
    """A textsim_db.Corpus with coroutines; Database.create_corpus() and Database.corpus() return it.

    The arguments, results and errors are those of textsim_db.Corpus. `count()` stands for len(), and
    `contains(key)` for `in`. Iterables and functions among the arguments run in a thread. Tasks may
    share a corpus.

    Examples:
        >>> import asyncio
        >>> from textsim_db import aio
        >>> async def find(text: str) -> list[str]:
        ...     async with aio.connect() as db:
        ...         corpus = await db.corpus("news")
        ...         return [match.key for match in await corpus.query(text)]
        >>> asyncio.run(find("The city council approved the new budget for schools"))
        ['update', 'monday']
    """

    @property
    def name(self) -> str:
        """The name of the corpus."""
        return self._synchronous.name

    @property
    def config(self) -> CorpusConfig:
        """The settings of the corpus, which determine its signatures and buckets."""
        return self._synchronous.config

    count = coroutine(corpus.Corpus.__len__)
    contains = coroutine(corpus.Corpus.__contains__)
    status = coroutine(corpus.Corpus.status)
    pending = coroutine(corpus.Corpus.pending)
    detach = coroutine(corpus.Corpus.detach)
    keys = results(corpus.Corpus.keys)
    remove = coroutine(corpus.Corpus.remove)
    expire = coroutine(corpus.Corpus.expire)
    scopes = coroutine(corpus.Corpus.scopes)
    untrack = coroutine(corpus.Corpus.untrack)
    members = results(corpus.Corpus.members)
    judge = coroutine(corpus.Corpus.judge)
    unjudge = coroutine(corpus.Corpus.unjudge)
    judgements = results(corpus.Corpus.judgements)
    doubtful = results(corpus.Corpus.doubtful)

    add = coroutine(corpus.Corpus.add)
    add_many = coroutine(corpus.Corpus.add_many)
    add_unique = coroutine(corpus.Corpus.add_unique)
    reject = coroutine(corpus.Corpus.reject)
    rejected = coroutine(corpus.Corpus.rejected)

    query = coroutine(corpus.Corpus.query)
    query_many = coroutine(corpus.Corpus.query_many)
    neighbours = coroutine(corpus.Corpus.neighbours)
    nearest = coroutine(corpus.Corpus.nearest)
    distinct = coroutine(corpus.Corpus.distinct)
    candidates = coroutine(corpus.Corpus.candidates)
    passages = coroutine(corpus.Corpus.passages)
    regions = coroutine(corpus.Corpus.regions)
    characters = coroutine(corpus.Corpus.characters)
    shared_passages = stream(corpus.Corpus.shared_passages)
    contamination = stream(corpus.Corpus.contamination)
    quote = coroutine(corpus.Corpus.quote)
    pairs = results(corpus.Corpus.pairs)
    clusters = results(corpus.Corpus.clusters)
    duplicates = results(corpus.Corpus.duplicates)
    split = coroutine(corpus.Corpus.split)

    explain = coroutine(corpus.Corpus.explain)
    differences = stream(corpus.Corpus.differences)
    inspect_clusters = coroutine(corpus.Corpus.inspect_clusters)
    normal_form = coroutine(corpus.Corpus.normal_form)

    measure_recall = coroutine(corpus.Corpus.measure_recall)
    statistics = coroutine(corpus.Corpus.statistics)
    boilerplate = coroutine(corpus.Corpus.boilerplate)
    check = coroutine(corpus.Corpus.check)

    attach = coroutine(corpus.Corpus.attach)
    reconcile = coroutine(corpus.Corpus.reconcile)
    drift = results(corpus.Corpus.drift)
    merge = coroutine(corpus.Corpus.merge)
    unmerge = coroutine(corpus.Corpus.unmerge)

    track = coroutine(corpus.Corpus.track)
    update_clusters = coroutine(corpus.Corpus.update_clusters)
    cluster_events = stream(corpus.Corpus.cluster_events)

    rebuild = coroutine(corpus.Corpus.rebuild)
    forget = coroutine(corpus.Corpus.forget)


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
        ...         return list(await db.corpora())
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
