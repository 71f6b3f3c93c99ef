"""Functions that run in threads while a test goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
