"""Work in a thread beside the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.waiting import PATIENCE_SECONDS


@contextmanager
def apart(work: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Run something in a thread, and wait for its end; yield where its error comes to."""
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
def running(*functions: Any) -> Iterator[threading.Event]:
    """Run functions again and again in threads until the end."""
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
