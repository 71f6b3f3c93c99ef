"""Cut streams into pieces or batches, and run a stage ahead of its consumer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

MAX_WEIGHT = 8 * 1024 * 1024
"""Bytes or characters of a piece, unless a document is longer. More take more memory."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def ahead(
    items: Iterable[Item], function: Callable[[Item], Result], most: int = 1, threads: int = 1
) -> Generator[Result, None, None]:
    """Apply a function to each item in threads, at most some items ahead of the consumer.

    The function runs in the consumer's context, and its results have the order of the items. If the
    items raise an error, the results of the items before it come first. Close the generator to end its
    threads.
    """
    with ThreadPoolExecutor(threads, "textsim-ahead") as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in (stream := _Fallible(items)):
                waiting.append(pool.submit(copy_context().run, function, item))
                if len(waiting) > most:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
    stream.raise_failure()


def cut(
    items: Iterable[Item], most: int, weigh: Callable[[Item], int]
) -> Generator[list[Item], None, None]:
    """Cut a stream into lists that end with the item that reaches the number or the weight.

    If the stream raises an error, the items before it come first.
    """
    piece: list[Item] = []
    weight = 0
    for item in (stream := _Fallible(items)):
        piece.append(item)
        weight += weigh(item)
        if len(piece) >= most or weight >= MAX_WEIGHT:
            yield piece
            piece, weight = [], 0
    if piece:
        yield piece
    stream.raise_failure()


class _Fallible(Iterator[Item]):
    """An iterator that ends when the iterable raises an error, and keeps the error."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._failure: Exception | None = None

    def __next__(self) -> Item:
        try:
            return next(self._items)
        except StopIteration:
            raise
        except Exception as error:
            self._failure = error
            raise StopIteration from None

    def raise_failure(self) -> None:
        """Raise the error of the iterable, if it raised one.

        An error refers to its frames. A frame that refers to the error keeps the items of the stream
        in memory, so both references end here.
        """
        failure, self._failure = self._failure, None
        try:
            if failure is not None:
                raise failure
        finally:
            del failure


BATCH_DOCUMENTS = 5000
"""Documents of a batch. Larger batches need more memory, and a load starts and ends more slowly."""


def in_batches(documents: Iterable[Any]) -> Iterator[list[Any]]:
    """Cut a stream of documents into lists, by number of documents and of characters."""
    return cut(documents, BATCH_DOCUMENTS, length_of)


def length_of(item: Any) -> int:
    try:
        return len(item[1])
    except (TypeError, IndexError, KeyError):  # refused when the batch is prepared
        return 0
