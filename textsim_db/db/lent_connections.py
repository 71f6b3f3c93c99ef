"""LentConnections: the connections that a worker or a call uses, so that another thread can cancel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from sqlalchemy.pool import PoolProxiedConnection

_CANCEL_SECONDS = 2.0

Connection = psycopg.Connection[Any]


class LentConnections:
    """The connections that are lent at present; threads share the object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lent: set[Connection] = set()
        self._outworn: set[Connection] = set()

    @contextmanager
    def lending(self, lent: PoolProxiedConnection) -> Iterator[None]:
        """Note that a connection is lent; if it is outworn at the end, remove it from the pool."""
        connection = cast(Connection, lent.driver_connection)
        with self._lock:
            self._lent.add(connection)
        try:
            yield
        finally:
            # No connection returns to the pool while a request to cancel is under way.
            with self._lock:
                self._lent.remove(connection)
                is_outworn = connection in self._outworn
                self._outworn.discard(connection)
            if is_outworn and lent.is_valid:
                lent.invalidate()

    def cancel(self) -> None:
        """Cancel the statements that are running."""
        with self._lock:
            for connection in self._lent:
                self._cancel(connection)

    def _cancel(self, connection: Connection) -> None:
        """Cancel the statement of a connection.

        When the request returns, the server has signalled the session, which ignores the signal if no
        statement runs. A request that fails may arrive later, at another statement.
        """
        try:
            connection.cancel_safe(timeout=_CANCEL_SECONDS)
        except psycopg.Error:
            self._outworn.add(connection)
