"""A flag that ends long work and that a signal handler may set; pure."""

from __future__ import annotations

import time

SLICE_SECONDS = 0.1


class Stop:
    """A flag without a lock, so that a signal handler may call set() during wait().

    A handler that set a threading.Event might wait for a lock that the interrupted thread holds.
    """

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        """Set the flag; wait() returns within a tenth of a second."""
        self._is_set = True

    def is_set(self) -> bool:
        """Return whether set() was called."""
        return self._is_set

    def wait(self, seconds: float) -> None:
        """Wait until the time is over or the flag is set."""
        end = time.monotonic() + seconds
        while not self._is_set and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, SLICE_SECONDS))
