"""Streams of work cut into pieces, and stages that run one step ahead of each other; pure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

MAX_WEIGHT = 8 * 1024 * 1024
"""Bytes or characters that are worked on at once, unless a single document is longer."""

Given = TypeVar("Given")
Made = TypeVar("Made")


def ahead(items: Iterable[Given], function: Callable[[Given], Made]) -> Generator[Made, None, None]:
    """Apply a function to each item in a thread, one item ahead of what is asked for.

    Where the items end with an error, what came before it is passed on first. Close the generator
    to end its thread.
    """
    with ThreadPoolExecutor(1, "textsim-ahead") as pool:
        waiting: Future[Made] | None = None
        for item in (source := _Source(items)):
            submitted = pool.submit(function, item)
            if waiting is not None:
                yield waiting.result()
            waiting = submitted
        if waiting is not None:
            yield waiting.result()
    source.raise_failure()


def cut(
    items: Iterable[Given], most: int, weigh: Callable[[Given], int]
) -> Generator[list[Given], None, None]:
    """Cut a stream into lists that end with the item that reaches the number or the weight.

    Where the stream fails, what it gave before that comes first.
    """
    some: list[Given] = []
    weight = 0
    for item in (source := _Source(items)):
        some.append(item)
        weight += weigh(item)
        if len(some) >= most or weight >= MAX_WEIGHT:
            yield some
            some, weight = [], 0
    if some:
        yield some
    source.raise_failure()


class _Source(Iterator[Given]):
    """The items of an iterable, which ends where it fails and keeps the failure."""

    def __init__(self, items: Iterable[Given]) -> None:
        self._items = iter(items)
        self._failure: Exception | None = None

    def __next__(self) -> Given:
        try:
            return next(self._items)
        except StopIteration:
            raise
        except Exception as error:
            self._failure = error
            raise StopIteration from None

    def raise_failure(self) -> None:
        """Raise the failure of the iterable, if it failed.

        An error refers to the frames that it passed. A frame that refers to the error would keep
        the items of the stream in memory, so both references end here.
        """
        failure, self._failure = self._failure, None
        try:
            if failure is not None:
                raise failure
        finally:
            del failure
