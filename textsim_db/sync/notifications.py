"""Lets an idle worker wait for its next poll, or for a notification that comes earlier."""

from __future__ import annotations

import logging
import time

import psycopg
from sqlalchemy import Engine

from textsim_db.db.connections import is_pooled, lend
from textsim_db.db.engine import detach_connection
from textsim_db.sync.worker_state import POLL_SECONDS, SLICE_SECONDS, Stop, WorkerSettings

log = logging.getLogger(__name__)

SOON_SECONDS = 1.0
"""For this many seconds after a change, a worker polls as often as by default, even if poll is longer.

Not every commit sends a notification, so the next change may come without a notification.
"""


class NextPoll:
    """Waits for the next poll, on a connection of its own if the worker listens."""

    def __init__(self, engine: Engine, settings: WorkerSettings) -> None:
        self._engine = engine
        self._poll = float(settings.poll)
        self._listen = settings.listen
        self._connection: psycopg.Connection[object] | None = None

    def __enter__(self) -> NextPoll:
        if self._listen and self._is_pooled():
            log.warning(
                "notifications do not come through a pooler such as pgbouncer; polling instead"
            )
        elif self._listen:
            self._connection = detach_connection(self._engine)
            self._connection.execute("LISTEN textsim")
        return self

    def _is_pooled(self) -> bool:
        with lend(self._engine) as connection:
            return is_pooled(connection)

    def __exit__(self, *error: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def wait(self, last_change: float, stop: Stop) -> None:
        """Wait for the next poll, a notification or stop."""
        is_recent = time.monotonic() - last_change < SOON_SECONDS
        seconds = min(self._poll, POLL_SECONDS) if is_recent else self._poll
        if self._connection is None:
            stop.wait(seconds)
            return
        end = time.monotonic() + seconds
        while not stop.is_set() and (left := end - time.monotonic()) > 0:
            # Waits in slices, so that stop() takes effect soon.
            timeout = min(left, SLICE_SECONDS)
            if any(True for _ in self._connection.notifies(timeout=timeout, stop_after=1)):
                return
