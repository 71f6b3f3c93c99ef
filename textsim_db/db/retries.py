"""Repeats transactions after temporary errors.

Always the whole transaction is repeated. After an error that a document causes, nothing is repeated.
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
# Another transaction causes these errors, and a repetition usually succeeds: it added the same key, or
# the server reports a deadlock or a serialization failure.
PASSING = (pg.UniqueViolation, pg.DeadlockDetected, pg.SerializationFailure)
# These time-outs end the session too, but the same attempt would time out again, so it must be smaller.
_TIMED_OUT = (pg.TransactionTimeout, pg.IdleInTransactionSessionTimeout)

Result = TypeVar("Result")


def repeated(work: Callable[[int], Result]) -> Result:
    """Run work(attempt); run it again after a conflict with a transaction, or a lost connection.

    work must be safe to repeat. If the connection is lost during COMMIT, nobody knows whether the
    transaction was committed. work runs up to MAX_TRIES times; without a server that takes about 10
    seconds.
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
    """Wait for a random time, longer after each attempt, so that the conflict does not repeat."""
    if is_lost(error):
        # At least half of the longest time, because a server needs seconds to restart.
        most = min(2.0, 0.1 * 2**attempt)
        seconds = random.uniform(most / 2, most)  # noqa: S311
        log.info("lost the connection, trying again in %.1f s: %s", seconds, error)
    else:
        seconds = random.uniform(0, min(1.0, 0.01 * 2**attempt))  # noqa: S311
    time.sleep(seconds)


def in_parts(engine: Engine, keys: Sequence[str], work: Callable[[slice], Result]) -> list[Result]:
    """Run work on all keys at once; if a part exceeds a time limit of the server, run it in halves.

    If a single document takes too long, raises DatabaseError with its key.
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
    """Return whether a statement exceeded a time limit, and was not cancelled by somebody.

    Both errors have SQLSTATE 57014. Only their messages differ, and they are in the server's language.
    So we provoke a time-out of a millisecond, and compare its message.
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
