"""Repeats transactions after temporary errors, and halves transactions that exceed a time limit.

    for attempt in Attempts(engine, len(keys)):
        with attempt, transaction(engine) as connection:
            write(connection, keys[attempt.slice])

Always the whole transaction is repeated. After an error that a document causes, nothing is repeated.
Every write is safe to repeat, because after a connection was lost during COMMIT nobody knows whether
the transaction was committed. Deadlocks, serialization failures, lost connections and keys that another
session has just added are repeated; after a time-out a batch is halved, down to single documents.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import psycopg
from psycopg import errors as pg

from textsim_db.db import cancellation
from textsim_db.db.engine import Connection, is_lost, is_timeout, translated
from textsim_db.db.statements import QUEUE_OF_WRITERS
from textsim_db.errors import DatabaseError

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger("textsim_db")

MAX_TRIES = 12
"""The attempts at a transaction. Without a server they take a writer about 10 seconds."""
CONFLICT_SECONDS = (0.01, 0.5)
"""The first and the longest pause after a conflict with another transaction."""
QUEUE_FROM = 2
"""After this number of failures writers of the corpus queue, so that they no longer collide."""
LOST_SECONDS = (0.1, 2.0)
"""The first and the longest pause after the connection was lost: a server needs seconds to restart."""

# Another transaction causes these errors, and a repetition usually succeeds: it added the same key, or
# the server reports a deadlock or a serialization failure.
PASSING = (pg.UniqueViolation, pg.DeadlockDetected, pg.SerializationFailure)
# A table was altered, or a corpus was rebuilt, after its description was read.
OUTDATED = (pg.ObjectNotInPrerequisiteState, pg.UndefinedTable)


class Attempts:
    """The attempts at a transaction: an iterator that yields itself, and the context of each attempt.

    The work in the context must be safe to repeat. If the connection is lost during COMMIT, nobody
    knows whether the transaction was committed.

    If a transaction for several documents exceeds a time limit of the server, two smaller ones follow.
    If an error leaves the context, and the caller catches it, the other slices follow.
    """

    def __init__(
        self,
        engine: Engine | None = None,
        size: int = 1,
        name_of: Callable[[int], str] | None = None,
    ) -> None:
        """Begin with a transaction for all documents; it can be halved only if there is an engine."""
        self.slice = slice(0, size)
        """The places of the documents that this attempt is for."""
        self.failures = 0
        """How many attempts at this slice have failed."""
        self.results: list[Any] = []
        """The caller appends the result of an attempt. Earlier results may have been committed too."""
        self.tries: float = MAX_TRIES
        """The limit of the attempts at one slice."""
        self._earlier_results = 0
        self._slices = [self.slice]
        self._engine = engine
        self._name_of = name_of

    def repeats(self, error: Exception) -> bool:
        """Return whether to repeat: the attempt met another transaction, or lost its connection."""
        return isinstance(error, PASSING) or _is_lost(error)

    def halves(self, error: Exception) -> bool:
        """Return whether the slice is too large: it exceeded a time limit of the server."""
        return self._engine is not None and (
            isinstance(error, pg.LockNotAvailable) or is_timeout(self._engine, error)
        )

    def pause(self, error: Exception) -> None:
        """Wait for a random time, longer after each attempt, so that the conflict does not repeat."""
        if not _is_lost(error):
            cancellation.sleep(pause_seconds(self.failures, CONFLICT_SECONDS))
            return
        # At least half of the longest time.
        seconds = pause_seconds(self.failures, LOST_SECONDS, 0.5)
        log.info("lost the connection, trying again in %.1f s: %s", seconds, error)
        cancellation.sleep(seconds)

    def __iter__(self) -> Iterator[Self]:
        while self._slices:
            self.slice = self._slices[-1]
            yield self

    def __enter__(self) -> None:
        self._earlier_results = len(self.results)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception):
            if not _is_lost(error):
                del self.results[self._earlier_results :]  # certainly not committed
            if self.failures + 1 < self.tries and self.repeats(error):
                self.pause(error)
                self.failures += 1
                return True
        self._slices.pop()
        self.failures = 0
        self.results.clear()
        return isinstance(error, Exception) and self.halves(error) and self._halve(error)

    def _halve(self, error: Exception) -> bool:
        start, stop = self.slice.start, self.slice.stop
        if stop - start > 1:
            middle = (start + stop) // 2
            self._slices += [slice(middle, stop), slice(start, middle)]
            return True
        if self._name_of is not None and isinstance(error, psycopg.Error):
            raise DatabaseError(f"{self._name_of(start)}: {translated(error)}") from error
        return False


class WriterAttempts(Attempts):
    def __init__(self, engine: Engine, corpus_id: int, keys: list[str]) -> None:
        super().__init__(engine, len(keys), lambda place: f'document "{keys[place][:100]}"')
        self._corpus_id = corpus_id

    def queue(self, connection: Connection) -> None:
        """Wait for other writers of the corpus, if earlier attempts have failed."""
        if self.failures >= QUEUE_FROM:
            connection.execute(QUEUE_OF_WRITERS, [self._corpus_id])


def pause_seconds(failures: int, bounds: tuple[float, float], least: float = 0) -> float:
    """Return a random time that doubles after each failure; least: its smallest share."""
    first, longest = bounds
    seconds = min(longest, first * 2.0 ** min(failures, 20))
    return random.uniform(least * seconds, seconds)  # noqa: S311


def _is_lost(error: Exception) -> bool:
    return isinstance(error, psycopg.Error) and is_lost(error)
