"""Indexes a piece: resolve() reads and computes ahead of time, write() writes in one transaction.

If another transaction conflicts, write() tries again, and at last writes smaller pieces.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db.engine import is_trouble, transaction, wait_at_most
from textsim_db.db.retries import PASSING, is_timeout
from textsim_db.errors import DatabaseError, DatabaseUnavailable, TextsimError
from textsim_db.results import ChangeReport, Refusal
from textsim_db.sync import apply_row_changes, apply_word_ids, pending_log
from textsim_db.sync.apply_row_changes import RowChanges
from textsim_db.sync.apply_word_ids import Completions
from textsim_db.sync.pieces import Piece

MAX_TRIES = 3
QUEUE_PATIENCE = "10s"
"""How long a piece waits for other writers of its corpus. It holds no other lock meanwhile."""

CONFLICTS = (*PASSING, pg.LockNotAvailable, pg.ObjectNotInPrerequisiteState)
"""Errors that another transaction causes."""
OUTDATED = (pg.ObjectNotInPrerequisiteState, pg.UndefinedTable)
"""Errors of a table that was altered, or a corpus that was rebuilt, after we read its description."""
TIMED_OUT = (pg.QueryCanceled, pg.TransactionTimeout, pg.IdleInTransactionSessionTimeout)


@dataclass(frozen=True, slots=True)
class Failed:
    """The error that ended the reading or computing of a piece; write() handles it."""

    error: psycopg.Error | TextsimError


@dataclass(frozen=True, slots=True)
class Resolved:
    """A piece with the changes to write; changes is None if the documents equal the rows."""

    piece: Piece
    changes: RowChanges | Completions | Failed | None
    started_at: float


def resolve(piece: Piece) -> Resolved:
    """Read and compute the changes of a piece, before its transaction begins; never raises."""
    started_at = time.monotonic()
    try:
        return Resolved(piece, _changes(piece), started_at)
    except (psycopg.Error, TextsimError) as error:
        return Resolved(piece, Failed(error), started_at)


def _changes(piece: Piece) -> RowChanges | Completions | None:
    if piece.source is None:
        return apply_word_ids.resolve(piece)
    return apply_row_changes.resolve(piece)


def write(resolved: Resolved) -> ChangeReport:
    """Write a piece, and raise an error only if smaller pieces would fail too.

    These are a lost connection, an altered table, and a statement that somebody cancelled.
    """
    piece = resolved.piece
    if isinstance(resolved.changes, Failed):
        return _write_smaller(piece, resolved.changes.error)
    for attempt in range(MAX_TRIES):
        try:
            return _write_once(piece, resolved.changes)
        except CONFLICTS:
            time.sleep(0.02 * 2**attempt)
        except (psycopg.Error, DatabaseError) as error:
            return _write_smaller(piece, error)
    return _write_key_by_key(piece)


def _write_once(piece: Piece, changes: RowChanges | Completions | None) -> ChangeReport:
    if changes is None:
        return ChangeReport(unchanged=len(piece.keys))
    with transaction(piece.store.engine) as connection:
        wait_at_most(connection, QUEUE_PATIENCE)
        if isinstance(changes, Completions):
            report = apply_word_ids.write(connection, piece, changes)
        else:
            report = apply_row_changes.write(connection, piece, changes)
        pending_log.finish(connection, piece, report.refused)
    return report


def _write_smaller(piece: Piece, error: Exception) -> ChangeReport:
    """Write a piece that failed: in halves if it took too long, otherwise key by key."""
    if _concerns_every_piece(piece.store.engine, error):
        raise error
    if len(piece.keys) < 2 or not isinstance(error, TIMED_OUT):
        return _write_key_by_key(piece)
    middle = len(piece.keys) // 2
    first = replace(piece, keys=piece.keys[:middle], entries=())
    second = replace(piece, keys=piece.keys[middle:])
    report = write(resolve(first))
    report.include(write(resolve(second)))
    return report


def _concerns_every_piece(engine: Engine, error: Exception) -> bool:
    """Return whether every piece of the table would fail with this error."""
    if isinstance(error, pg.QueryCanceled):
        return not is_timeout(engine, error)
    if isinstance(error, (*OUTDATED, DatabaseUnavailable)):
        return True
    return isinstance(error, psycopg.Error) and is_trouble(error)


def _write_key_by_key(piece: Piece) -> ChangeReport:
    """Write each key in a transaction of its own.

    A key that fails is postponed, and set aside after MAX_TRIES. If MAX_TRIES keys in a row conflict
    with other transactions, the cause is not a single key, so all remaining keys are postponed.
    """
    report = ChangeReport()
    conflicts = 0
    for number, key in enumerate(piece.keys):
        single = Piece(piece.store, piece.source, [key], tries=piece.tries)
        try:
            report.include(_write_once(single, _changes(single)))
            conflicts = 0
        except (psycopg.Error, TextsimError) as error:
            if _concerns_every_piece(piece.store.engine, error):
                raise
            if not isinstance(error, CONFLICTS):
                report.refused += _postpone_or_set_aside(single, error)
                continue
            conflicts += 1
            if conflicts == MAX_TRIES:
                _postpone(single, piece.keys[number:])
                break
            _postpone(single, [key])
    if piece.entries:
        with transaction(piece.store.engine) as connection:
            pending_log.delete(connection, piece.entries)
    return report


def _postpone_or_set_aside(single: Piece, error: Exception) -> list[Refusal]:
    """Postpone a key that failed; after too many tries, set it aside."""
    if single.tries < MAX_TRIES:
        _postpone(single, single.keys, single.tries)
        return []
    reason = " ".join(str(error).split()) or type(error).__name__
    refused = [Refusal(single.keys[0], reason)]
    with transaction(single.store.engine) as connection:
        pending_log.finish(connection, single, refused)
    return refused


def _postpone(piece: Piece, keys: list[str], tries: int = 0) -> None:
    with transaction(piece.store.engine) as connection:
        pending_log.postpone(connection, piece, keys, tries)
