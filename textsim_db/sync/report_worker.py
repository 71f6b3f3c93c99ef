"""A thread beside a worker: reports its progress, and ends its statements after it was stopped."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING

import psycopg
from psycopg.types.json import Jsonb

from textsim_db.db import cancellation
from textsim_db.db.cancellation import LentConnections
from textsim_db.db.engine import transaction, wait_at_most
from textsim_db.errors import DatabaseError
from textsim_db.sync import statements
from textsim_db.sync.step_faults import StepFaults
from textsim_db.sync.worker_state import SLICE_SECONDS, Progress, Stop

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger(__name__)

GRACE_SECONDS = 5.0
"""A stopped worker may finish its batch in this time; then its statements are cancelled.

Less than the 10 s after which container runtimes follow SIGTERM by SIGKILL.
"""
REPORT_SECONDS = 5.0
_STOP_SECONDS = 1.0
_REPORT_PATIENCE = "1s"


class Watch:
    def __init__(
        self,
        engine: Engine,
        connections: LentConnections,
        progress: Progress,
        faults: StepFaults,
        stop: Stop,
    ) -> None:
        self._engine = engine
        self._connections = connections
        self._progress = progress
        self._faults = faults
        self._stop = stop
        self._id = uuid.uuid4()
        self._ended = threading.Event()
        self._has_row = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        self._ended.clear()
        thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name="textsim-watch", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(_STOP_SECONDS)
            if thread.is_alive():
                self._connections.cancel()
                thread.join()

    def _run(self) -> None:
        cancellation.forget()
        next_report = time.monotonic() + REPORT_SECONDS
        cancel_at: float | None = None
        while not self._ended.wait(SLICE_SECONDS):
            now = time.monotonic()
            if self._stop.is_set() and cancel_at is None:
                cancel_at = now + GRACE_SECONDS
            if cancel_at is not None and now >= cancel_at:
                log.warning("the batch is not finished in time; its statements are cancelled")
                self._connections.cancel()
                cancel_at = now + _STOP_SECONDS
            if cancel_at is None and now >= next_report:
                self._report()
                next_report = time.monotonic() + REPORT_SECONDS
        if self._has_row:
            self._send(statements.FORGET_WORKER, {"id": self._id})

    def _report(self) -> None:
        """Store the progress; without a server, or on a full disk, the log must do."""
        parameters = {"id": self._id, "host": socket.gethostname(), "process": os.getpid()}
        parameters["faults"] = Jsonb(self._faults.report())
        self._send(statements.REPORT_WORKER, parameters | self._progress.report()._asdict())

    def _send(self, statement: str, parameters: dict[str, object]) -> None:
        try:
            with transaction(self._engine) as connection:
                wait_at_most(connection, _REPORT_PATIENCE)
                connection.execute(statement.encode(), parameters)
            self._has_row = True
        except (psycopg.Error, DatabaseError) as error:
            log.debug("cannot report the progress: %s", error)
