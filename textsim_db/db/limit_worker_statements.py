"""Supervises the statements of a worker, which reuses its connections for months.

Each statement of a supervised transaction has a time limit, and a plan that depends on no statistics:
the tables of a worker are empty at one moment and huge at the next. The supervisor can also cancel what
its connections run, so that no statement outlives the worker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from psycopg import errors as pg

from textsim_db.db import statements
from textsim_db.db.cancellation import Connection, LentConnections

log = logging.getLogger(__name__)

STATEMENT_SECONDS = 30.0
"""The first time limit of a statement. A healthy statement of a worker takes far less than a second."""
LONGEST_SECONDS = 3600.0


class Supervisor(LentConnections):
    """Limits and cancels the statements of one worker; its threads share it."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds = STATEMENT_SECONDS

    @contextmanager
    def active(self) -> Iterator[None]:
        """Supervise the transactions that begin in this context."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def limiting(self, connection: Connection) -> Iterator[None]:
        """Limit the statements of a transaction.

        After a time-out the limit is doubled, so that a statement that needs longer ends at last.
        """
        limit, start = self._seconds, time.monotonic()
        parameters = {"limit": f"{limit * 1000:.0f}ms"}
        try:
            connection.execute(statements.SUPERVISE, parameters, prepare=True)
            yield
        except pg.QueryCanceled:
            with self._lock:
                self._outworn.add(connection)
            if time.monotonic() - start >= limit:
                self._seconds = min(2 * limit, LONGEST_SECONDS)
                log.warning(
                    "a statement took over %g s and was cancelled; it is planned anew", limit
                )
            raise

    def _cancel(self, connection: Connection) -> None:
        """Cancel a statement, and remove its connection from the pool afterwards.

        A fresh connection plans its statements anew.
        """
        self._outworn.add(connection)
        super()._cancel(connection)


_current: ContextVar[Supervisor | None] = ContextVar("supervisor", default=None)


def current() -> Supervisor | None:
    """Return the supervisor of this context, or None."""
    return _current.get()
