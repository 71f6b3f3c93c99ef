"""Supervises the statements of a worker, which reuses its connections for months.

Each statement of a supervised transaction has a time limit, and a plan that depends on no statistics:
the tables of a worker are empty at one moment and huge at the next. The supervisor can also cancel what
its connections run, so that no statement outlives the worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, cast

import psycopg
from psycopg import errors as pg
from sqlalchemy.pool import PoolProxiedConnection

from textsim_db.db import statements

log = logging.getLogger(__name__)

STATEMENT_SECONDS = 30.0
"""The first time limit of a statement. A healthy statement of a worker takes far less than a second."""
LONGEST_SECONDS = 3600.0
_CANCEL_SECONDS = 2.0

Connection = psycopg.Connection[Any]


class Supervisor:
    """Limits and cancels the statements of one worker; its threads share it."""

    def __init__(self) -> None:
        self._seconds = STATEMENT_SECONDS
        self._lock = threading.Lock()
        self._lent: set[Connection] = set()
        self._outworn: set[Connection] = set()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Supervise the transactions that begin in this context."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def lending(self, lent: PoolProxiedConnection) -> Iterator[None]:
        """Note that a connection is lent; if its statement was cancelled, remove it from the pool.

        A fresh connection plans its statements anew. And the server may receive a request to cancel so
        late that it would end another statement.
        """
        connection = cast(Connection, lent.driver_connection)
        with self._lock:
            self._lent.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._lent.remove(connection)
                is_outworn = connection in self._outworn
                self._outworn.discard(connection)
            if is_outworn and lent.is_valid:
                lent.invalidate()

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

    def cancel(self) -> None:
        """Cancel the statements that are running."""
        with self._lock:
            for connection in self._lent:
                self._outworn.add(connection)
                with suppress(psycopg.Error):
                    connection.cancel_safe(timeout=_CANCEL_SECONDS)


_current: ContextVar[Supervisor | None] = ContextVar("supervisor", default=None)


def current() -> Supervisor | None:
    """Return the supervisor of this context, or None."""
    return _current.get()
