"""Cancels what other threads run: a call, or the statements of a worker.

    cancellation = Cancellation()
    context = copy_context()
    context.run(cancellation.activate)
    call = executor.submit(context.run, function)
    cancellation.cancel_until_done(call)

The call begins no other statement, and ends as if it is interrupted: Cancelled is raised where it uses
the database, and it cleans up.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg import errors as pg

if TYPE_CHECKING:
    from sqlalchemy.pool import PoolProxiedConnection

_CANCEL_SECONDS = 2.0

Connection = psycopg.Connection[Any]


class LentConnections:
    """The connections that a worker or a call uses, so that another thread can cancel them."""

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

    @contextmanager
    def of_worker(self) -> Iterator[None]:
        """Note what is lent in this context, which is a worker's."""
        token = _of_worker.set(self)
        try:
            yield
        finally:
            _of_worker.reset(token)

    def cancel(self) -> None:
        """Cancel the statements that are running.

        When a request returns, the server has signalled the session, which ignores the signal if no
        statement runs. A request that fails may arrive later, at another statement.
        """
        with self._lock:
            for connection in self._lent:
                try:
                    connection.cancel_safe(timeout=_CANCEL_SECONDS)
                except psycopg.Error:
                    self._outworn.add(connection)


_of_worker: ContextVar[LentConnections | None] = ContextVar("of_worker", default=None)


def of_worker() -> LentConnections | None:
    return _of_worker.get()


AGAIN_SECONDS = 0.1
"""How long a call may compute between two requests to cancel its statements."""


class Cancelled(BaseException):
    """Raised in the threads of a cancelled call; no handler of errors catches it."""


class Cancellation(LentConnections):
    """Cancels the statements of one call and of its helper threads."""

    def __init__(self) -> None:
        super().__init__()
        self._is_cancelled = threading.Event()

    def activate(self) -> None:
        _current.set(self)

    def cancel_until_done(self, call: Future[Any]) -> None:
        """Cancel a call, and return when it has ended.

        The request is repeated, because the call may compute between two statements.
        """
        self._is_cancelled.set()
        while not call.done():
            self.cancel()
            wait([call], AGAIN_SECONDS)

    @contextmanager
    def lending(self, lent: PoolProxiedConnection) -> Iterator[None]:
        """Lend a connection; if its statement was cancelled, raise Cancelled."""
        with super().lending(lent):
            try:
                yield
            except pg.QueryCanceled as error:
                if self._is_cancelled.is_set():
                    raise Cancelled from error
                raise

    def check(self) -> None:
        if self._is_cancelled.is_set():
            raise Cancelled

    def sleep(self, seconds: float) -> None:
        if self._is_cancelled.wait(seconds):
            raise Cancelled


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def current() -> Cancellation | None:
    """Return the cancellation of this context.

    None while the context cleans up after it was cancelled, as after any interruption.
    """
    return None if isinstance(sys.exc_info()[1], Cancelled) else _current.get()


def sleep(seconds: float) -> None:
    """Wait; raise Cancelled as soon as the call of this context is cancelled."""
    canceller = current()
    if canceller is None:
        time.sleep(seconds)
    else:
        canceller.sleep(seconds)


def forget() -> None:
    """Let the statements of this context outlive the call, as statements that watch it must."""
    _current.set(None)
