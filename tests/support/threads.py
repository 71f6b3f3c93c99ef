"""Functions that run in threads while a test goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.waiting import PATIENCE_SECONDS


@contextmanager
def in_thread(work: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Run a function in a thread until it returns; yield a list that receives its error."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield failures
    finally:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "the work did not end"


@contextmanager
def repeating(*functions: Any) -> Iterator[threading.Event]:
    """Call each function repeatedly in a thread until the block ends; then assert that none raised."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def loop(function: Any) -> None:
        try:
            while not stop.is_set():
                function()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=loop, args=[function]) for function in functions]
    for thread in threads:
        thread.start()
    try:
        yield stop
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
