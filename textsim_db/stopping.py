"""A flag that ends long work, which a signal handler may set; pure."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue


class Stop:
    """What threading.Event is, but set() may interrupt wait() in the same thread.

    A signal handler does so; set() of an Event then waits for a lock that its own thread holds.
    SimpleQueue is documented to be reentrant.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._wake: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Set the flag, and wake whoever waits for it."""
        self._is_set = True
        self._wake.put(None)

    def is_set(self) -> bool:
        """Say whether set() was called."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait until the flag is set, or for so long; say whether it is set."""
        if not self._is_set:
            with suppress(Empty):
                self._wake.get(timeout=seconds)
                self._wake.put(None)  # for the next one that waits
        return self._is_set
