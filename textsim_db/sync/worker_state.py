"""The state of a worker: settings, the flag to stop, running steps, and whether it is stuck; pure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from textsim_db.errors import ConfigurationError
from textsim_db.results import ChangeReport
from textsim_db.results.states import IDLE
from textsim_db.settings.check_values import as_float, check_callable, is_number

POLL_SECONDS = 0.1
SOON_SECONDS = 0.025
"""The first pause after a change. Later pauses grow, up to the setting `poll`."""
LEASE_SECONDS = 60.0
EXPIRE_AFTER_SECONDS = 3600.0


class WorkReport(NamedTuple):
    corpus: str
    table: str | None
    """The name of the attached table; None if documents that SQL had written got word ids."""
    changes: ChangeReport
    """The number of documents by outcome."""
    seconds: float
    """The time from reading the rows to the COMMIT."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The arguments of Database.worker(); raises ConfigurationError if one is out of range."""

    poll: float = POLL_SECONDS
    """The longest pause between two looks at an empty log, in seconds."""
    lease: float = LEASE_SECONDS
    """The seconds after which other workers may claim an entry that this worker has claimed."""
    report: Callable[[WorkReport], None] | None = None
    """Called after each transaction."""
    expire_after: float = EXPIRE_AFTER_SECONDS
    """The seconds after which a document is removed that had expired at a look; 0: at once."""
    only_source: int | None = None
    """The id of the only source to index, with the words of its corpus; None for all sources."""

    def __post_init__(self) -> None:
        check_callable(self.report, "report")
        for name, value in (("poll", self.poll), ("lease", self.lease)):
            if not is_number(value) or not 0 < as_float(value) <= 86_400:
                raise ConfigurationError(
                    f"{name} is {value!r}; expected seconds above 0, at most 86400"
                )
            object.__setattr__(self, name, as_float(value))
        after = self.expire_after
        if not is_number(after) or not 0 <= as_float(after) <= 31_536_000:
            raise ConfigurationError(
                f"expire_after is {after!r}; expected seconds from 0, at most 31536000"
            )
        object.__setattr__(self, "expire_after", as_float(after))

    def pause(self, idle_seconds: float) -> float:
        """Return the pause before the next look: a tenth of the time since the last change."""
        return min(self.poll, max(SOON_SECONDS, idle_seconds / 10))


SLICE_SECONDS = 0.1


class Stop:
    """A flag without a lock, so that a signal handler may call set() during wait().

    A handler that set a threading.Event might wait for a lock that the interrupted thread holds.
    """

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._is_set and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, SLICE_SECONDS))


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
    failed: float | None
    """The age of the last error; None if there was none."""
    written: int
    set_aside: int
    expired: int
    clustered: int
    """The changed documents whose clusters were updated so far."""
    retries: int
    """The errors so far after which the worker tried again."""


class Progress:
    """Running steps, the times of the last claim, write and error, and counts since the start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steps: dict[int, tuple[float, str]] = {}
        self._next = 0
        self._idle_since = time.monotonic()
        self.claimed_at: float | None = None
        self._wrote_at: float | None = None
        self._failed_at: float | None = None
        self._error: str | None = None
        self.expired = self.clustered = 0
        self._written = self._set_aside = self._retries = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._steps[number] = (time.monotonic(), name)
        try:
            yield
        finally:
            with self._lock:
                del self._steps[number]
                self._idle_since = time.monotonic()

    def wrote(self, changes: ChangeReport) -> None:
        self._wrote_at = time.monotonic()
        self._written += changes.written
        self._set_aside += len(changes.refused)

    def failed(self, error: str) -> None:
        """Note an error after which the worker tries again."""
        self._error, self._failed_at = error, time.monotonic()
        self._retries += 1

    def report(self) -> Report:
        with self._lock:
            began, step = min(self._steps.values(), default=(self._idle_since, IDLE))
        now = time.monotonic()

        def age(moment: float | None) -> float | None:
            return None if moment is None else now - moment

        return Report(
            age(self.claimed_at),
            age(self._wrote_at),
            step,
            now - began,
            self._error,
            age(self._failed_at),
            self._written,
            self._set_aside,
            self.expired,
            self.clustered,
            self._retries,
        )


READY_SECONDS = 60.0
"""A step takes less, except with the largest texts."""
ALIVE_SECONDS = 600.0
"""A worker whose step takes longer is stuck: the largest texts take minutes."""


def why_stuck(report: Report, poll: float, limit: float = ALIVE_SECONDS) -> str | None:
    """Return why a worker should be started again; None if it makes progress or waits for a server."""
    if report.step_began <= limit + poll:
        return None
    return f"it {report.step} for {report.step_began:,.0f} s"


def why_not_ready(report: Report, poll: float) -> str | None:
    """Return why a worker indexes no changes at present; None if it does."""
    if report.claimed is None:
        return "it has not looked for changes yet"
    if report.failed is not None and report.failed < report.claimed:
        return f"it tries again: {report.error}"
    return why_stuck(report, poll, READY_SECONDS)
