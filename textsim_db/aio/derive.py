"""Makes the methods of the asynchronous classes from those of the synchronous classes.

    class Corpus(Derived[database.Corpus]):
        query = coroutine(Corpus.query)     # await corpus.query("a text")
        pairs = results(Corpus.pairs)       # async for pair in corpus.pairs()

The names, arguments, defaults, types and docstrings are those of the synchronous method.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import partial, wraps
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar

from textsim_db.aio.threads import Results, Stream, Threads
from textsim_db.files import arrow_results

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
    method: Callable[Concatenate[Synchronous, Parameters], arrow_results.Results[Row]],
) -> Callable[Concatenate[Derived[Synchronous], Parameters], Results[Row]]:
    """Return a method that finds rows as a method that returns an async iterator of rows."""

    @wraps(method)
    def call(
        self: Derived[Synchronous], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Results[Row]:
        return Results(self._threads, partial(method, self._synchronous, *args, **kwargs))

    return call
