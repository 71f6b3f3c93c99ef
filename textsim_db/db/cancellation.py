"""Cancels a call that runs in a thread: its statements end, and it begins no others.

    cancellation = Cancellation()
    context = copy_context()
    context.run(cancellation.activate)
    call = executor.submit(context.run, function)
    cancellation.cancel_until_done(call)

The call ends as if it is interrupted: Cancelled is raised where it uses the database, and it cleans up.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from psycopg import errors as pg
from sqlalchemy.pool import PoolProxiedConnection

from textsim_db.db.lent_connections import LentConnections

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
        """Cancel the statements of this context from now on, when the call is cancelled."""
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
        """Raise Cancelled if the call is cancelled."""
        if self._is_cancelled.is_set():
            raise Cancelled

    def sleep(self, seconds: float) -> None:
        """Wait; raise Cancelled as soon as the call is cancelled."""
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
