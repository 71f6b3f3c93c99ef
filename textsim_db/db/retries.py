"""Which errors are temporary, and how a transaction that one of them ended is repeated.

Always a whole transaction is repeated. An error that a document causes is never repeated.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db.engine import is_lost, transaction, translated
from textsim_db.errors import DatabaseError

log = logging.getLogger("textsim_db")

MAX_TRIES = 12
# Another transaction causes these, and a repetition succeeds: it added the same key, or the server
# reports a deadlock or a serialization failure.
PASSING = (pg.UniqueViolation, pg.DeadlockDetected, pg.SerializationFailure)
# These end the session too, but the next attempt must be smaller, not the same again.
_TIMED_OUT = (pg.TransactionTimeout, pg.IdleInTransactionSessionTimeout)

Result = TypeVar("Result")


def repeated(work: Callable[[int], Result]) -> Result:
    """Run work(attempt), again if another transaction was in its way or the connection was lost.

    It must be safe to repeat: if the connection is lost during COMMIT, nobody knows whether the
    transaction was committed. It runs up to 12 times, for about 10 seconds if there is no server.
    """
    for attempt in range(MAX_TRIES):
        try:
            return work(attempt)
        except psycopg.Error as error:
            if attempt == MAX_TRIES - 1 or (not isinstance(error, PASSING) and not is_lost(error)):
                raise
            _wait(attempt, error)
    raise AssertionError("unreachable")


def _wait(attempt: int, error: psycopg.Error) -> None:
    """Wait longer each time, for a random time, so that two transactions do not collide again."""
    if is_lost(error):
        # At least half of it: a server that restarts needs seconds.
        most = min(2.0, 0.1 * 2**attempt)
        seconds = random.uniform(most / 2, most)  # noqa: S311
        log.info("lost the database, trying again in %.1f s: %s", seconds, error)
    else:
        seconds = random.uniform(0, min(1.0, 0.01 * 2**attempt))  # noqa: S311
    time.sleep(seconds)


def in_parts(engine: Engine, keys: Sequence[str], work: Callable[[slice], Result]) -> list[Result]:
    """Run work on all keys at once, and on halves of a part that takes longer than the server allows.

    Raises DatabaseError that names the document if a single document takes too long.
    """
    results: list[Result] = []
    parts = [slice(0, len(keys))]
    while parts:
        part = parts.pop()
        try:
            results.append(work(part))
        except psycopg.Error as error:
            if not isinstance(error, pg.LockNotAvailable) and not is_timeout(engine, error):
                raise
            if part.stop - part.start < 2:
                key = "".join(keys[part])
                raise DatabaseError(f'document "{key[:100]}": {translated(error)}') from error
            middle = (part.start + part.stop) // 2
            parts += [slice(middle, part.stop), slice(part.start, middle)]
    return results


def is_timeout(engine: Engine, error: psycopg.Error) -> bool:
    """Say whether the server ended a statement for the time it took, and nobody cancelled it.

    Both are SQLSTATE 57014, and only the messages differ, in the server's language. So a time-out of a
    millisecond shows the server's message for a time-out.
    """
    if not isinstance(error, pg.QueryCanceled):
        return isinstance(error, _TIMED_OUT)
    try:
        with transaction(engine) as connection:
            connection.execute("SET LOCAL statement_timeout = 1")
            connection.execute("SELECT pg_catalog.pg_sleep(1)")
    except pg.QueryCanceled as timeout:
        return timeout.diag.message_primary == error.diag.message_primary
    return False
