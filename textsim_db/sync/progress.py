"""The steps of a running worker; pure. Watch stores them; textsim doctor and status show them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from textsim_db.results import IDLE, ChangeReport


class Report(NamedTuple):
    """The progress of a worker at one moment. Times are ages in seconds."""

    claimed: float | None
    """The age of the last claim; None if there was none."""
    wrote: float | None
    """The age of the last write; None if there was none."""
    step: str
    """The step that has been running for the longest time."""
    step_began: float
    """The age of that step."""
    error: str | None
    """The last error."""
    failed: float | None
    """The age of the last error; None if there was none."""
    written: int
    """The documents written so far."""
    set_aside: int
    """The documents set aside so far."""
    expired: int
    """The expired documents removed so far."""
    clustered: int
    """The changed documents whose clusters were updated so far."""
    retries: int
    """The errors so far after which the worker tried again."""


class Progress:
    """Steps that are running, the times of the last claim, write and error, and counts since the start.

    The threads of a worker share it, and run steps at the same time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steps: dict[int, tuple[float, str]] = {}
        self._next = 0
        self._idle_since = time.monotonic()
        self._claimed_at: float | None = None
        self._wrote_at: float | None = None
        self._failed_at: float | None = None
        self._error: str | None = None
        self._written = self._set_aside = self._expired = self._clustered = self._retries = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Note that a step is running until the block ends."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._steps[number] = (time.monotonic(), name)
        try:
            yield
        finally:
            with self._lock:
                del self._steps[number]
                self._idle_since = time.monotonic()

    @property
    def is_busy(self) -> bool:
        """Whether a step is running."""
        return bool(self._steps)

    def claimed(self) -> None:
        """Note that a claim has ended."""
        self._claimed_at = time.monotonic()

    def wrote(self, changes: ChangeReport) -> None:
        """Note that a transaction was written."""
        self._wrote_at = time.monotonic()
        self._written += changes.written
        self._set_aside += len(changes.refused)

    def removed_expired(self, documents: int) -> None:
        """Note that expired documents were removed."""
        self._expired += documents

    def updated_clusters(self, documents: int) -> None:
        """Note that changed documents were brought into the tracked clusters."""
        self._clustered += documents

    def failed(self, error: str) -> None:
        """Note an error after which the worker tries again."""
        self._error, self._failed_at = error, time.monotonic()
        self._retries += 1

    def report(self) -> Report:
        """Return the progress until now."""
        with self._lock:
            began, step = min(self._steps.values(), default=(self._idle_since, IDLE))
        now = time.monotonic()

        def age(moment: float | None) -> float | None:
            return None if moment is None else now - moment

        return Report(
            age(self._claimed_at),
            age(self._wrote_at),
            step,
            now - began,
            self._error,
            age(self._failed_at),
            self._written,
            self._set_aside,
            self._expired,
            self._clustered,
            self._retries,
        )
