"""Indexes a piece: resolve_piece() computes ahead of time, write_piece() writes in one transaction.

If another transaction conflicts, write_piece() tries again, and at last writes smaller pieces.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db.engine import is_trouble, transaction, wait_at_most
from textsim_db.db.retries import OUTDATED, PASSING, Attempts, is_timeout
from textsim_db.errors import DatabaseUnavailable, TextsimError, on_one_line
from textsim_db.results import ChangeReport, Refusal
from textsim_db.sync import pending_log
from textsim_db.sync.pieces import SOURCE_PATIENCE, Changes, Piece

PIECE_TRIES = 3
"""The attempts at a piece before it is halved, and the claims of a key before it fails."""
CONFLICTS = (*PASSING, pg.LockNotAvailable, pg.ObjectNotInPrerequisiteState)
"""Errors that another transaction causes."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A piece with the changes to write."""

    piece: Piece
    changes: Changes | Exception | None
    """The error that ended the computation, if there was one; None if there is nothing to write."""
    started_at: float
    """The time of the monotonic clock."""


def resolve_piece(piece: Piece) -> Resolved:
    """Read and compute the changes of a piece, before its transaction begins; never raises."""
    started_at = time.monotonic()
    try:
        return Resolved(piece, piece.resolve_changes(), started_at)
    except (psycopg.Error, TextsimError) as error:
        return Resolved(piece, error, started_at)


def write_piece(resolved: Resolved) -> ChangeReport:
    """Write a piece, in halves if it fails; raise an error only if every piece would fail with it.

    A single key that fails is postponed, and fails for good after PIECE_TRIES. If PIECE_TRIES keys in a
    row conflict with other transactions, the cause is not a single key, so all remaining keys are
    postponed.
    """
    piece, report = resolved.piece, ChangeReport()
    conflicts = 0
    attempts = _AttemptsAtPiece(piece)
    for attempt in attempts:
        part = piece.part(piece.keys[attempt.part], attempt.part.stop == len(piece.keys))
        was_unresolved = isinstance(resolved.changes, Exception) and attempt.failures
        if was_unresolved or resolved.piece.keys != part.keys:
            resolved = resolve_piece(part)
        try:
            with attempt:
                report.include(_write_once(part, resolved.changes, attempts.queue_patience))
            conflicts = 0
        except (psycopg.Error, TextsimError) as error:
            if _concerns_every_piece(piece.store.engine, error):
                raise
            if not isinstance(error, CONFLICTS):
                report.refused += _postpone_or_fail(part, error)
                continue
            conflicts += 1
            if conflicts == PIECE_TRIES:
                _postpone(piece.part(piece.keys[attempt.part.start :], is_last=True))
                break
            _postpone(part)
    return report


class _AttemptsAtPiece(Attempts):
    """Attempts that halve a piece after any error that other pieces do not have."""

    queue_patience = "10s"
    """How long a piece waits for other writers of its corpus. It holds no other lock meanwhile."""

    def __init__(self, piece: Piece) -> None:
        super().__init__(size=len(piece.keys))
        self._piece = piece
        self.tries = PIECE_TRIES

    def repeats(self, error: Exception) -> bool:
        """Return whether another transaction is the cause."""
        return isinstance(error, CONFLICTS)

    def halves(self, error: Exception) -> bool:
        """Return whether smaller pieces may succeed; after a conflict they do not wait again."""
        if isinstance(error, CONFLICTS):
            self.tries, self.queue_patience = 1, SOURCE_PATIENCE
        return not _concerns_every_piece(self._piece.store.engine, error)


def _write_once(
    piece: Piece, changes: Changes | Exception | None, queue_patience: str
) -> ChangeReport:
    if isinstance(changes, Exception):
        raise changes
    if changes is None:
        return ChangeReport(unchanged=len(piece.keys))
    with transaction(piece.store.engine) as connection:
        wait_at_most(connection, queue_patience)
        report = changes.write_changes(connection)
        pending_log.delete_done(connection, piece)
        pending_log.fail(connection, piece, report.refused)
    return report


def _concerns_every_piece(engine: Engine, error: Exception) -> bool:
    """Return whether every piece of the table would fail with this error.

    A right, a function or a table that is missing is never the fault of a document.
    """
    if isinstance(error, pg.QueryCanceled):
        return not is_timeout(engine, error)
    if isinstance(error, (*OUTDATED, DatabaseUnavailable)):
        return True
    if isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith("42"):
        return True
    return isinstance(error, psycopg.Error) and is_trouble(error)


def _postpone_or_fail(single: Piece, error: Exception) -> list[Refusal]:
    """Postpone a key; if it was claimed PIECE_TRIES times, let it fail, and return the refusal."""
    if single.tries < PIECE_TRIES:
        _postpone(single, single.tries)
        return []
    reason = on_one_line(error)
    refused = [Refusal(single.keys[0], reason)]
    with transaction(single.store.engine) as connection:
        pending_log.delete_done(connection, single)
        pending_log.fail(connection, single, refused)
    return refused


def _postpone(piece: Piece, tries: int = 0) -> None:
    with transaction(piece.store.engine) as connection:
        pending_log.postpone(connection, piece, piece.keys, tries)
        pending_log.delete(connection, piece.entries)
