"""Indexes a piece: resolve_piece() computes ahead of time, write_piece() writes in one transaction.

If another transaction conflicts, write_piece() tries again, and at last writes smaller pieces.

Gives word ids to documents that SQL wrote with their normal form only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db.binary_format import Array
from textsim_db.db.engine import Connection, is_trouble, transaction, wait_at_most
from textsim_db.db.retries import OUTDATED, PASSING, Attempts, is_timeout
from textsim_db.db.store import Store
from textsim_db.errors import DatabaseUnavailable, TextsimError, on_one_line
from textsim_db.results import ChangeReport, Refusal
from textsim_db.sync import pending_log, statements
from textsim_db.sync.faults import Subject
from textsim_db.sync.pieces import SOURCE_PATIENCE, Changes, Piece, next_page
from textsim_db.text.languages import identify
from textsim_db.text.tokens import tokens_of

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


class _Completion(NamedTuple):
    """The parameters of statements.COMPLETE."""

    word_ids: Array
    language: str | None
    id: int
    normal_form: str


def words_of(corpus_id: int) -> Subject:
    """Return the step that gives the words of a corpus their ids."""
    name = f"words of corpus {corpus_id}"
    return Subject(name, corpus_id, f"the {name} get no ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPiece(Piece):
    """Documents that SQL wrote, and whose words wait for ids."""

    kind = "words"

    @property
    def subject(self) -> Subject:
        """The words of the corpus."""
        return words_of(self.corpus.id)

    def read_sizes(self) -> dict[str, int]:
        """Return the bytes of the normal forms, without the normal forms."""
        with transaction(self.store.engine) as connection:
            statement = self.corpus.statement(statements.WAITING_SIZES)
            return dict(connection.execute(statement, [self.keys]).fetchall())

    def resolve_changes(self) -> WordIds:
        """Read the normal forms and look up the ids of their words."""
        with transaction(self.store.engine) as connection:
            statement = self.corpus.statement(statements.WAITING_FORMS)
            rows = connection.execute(statement, [self.keys]).fetchall()
        tokens = tokens_of([form.encode() for _, _, form in rows])
        all_word_ids = self.store.dictionary.ensure(tokens)
        languages = [None] * len(rows) if self.corpus.config.language is None else identify(tokens)
        changes = WordIds(self)
        for (key, id_, form), (start, end), language in zip(
            rows, pairwise(tokens.word_offsets.tolist()), languages, strict=True
        ):
            word_ids = all_word_ids[start:end]
            if word_ids.all():
                document = _Completion(Array(word_ids), language, id_, form)
                changes.documents.append(document)
            else:
                word = tokens.words(start + np.flatnonzero(word_ids == 0)[:1])[0]
                reason = f'the word "{word[:40]}" has the same 64-bit hash as another one'
                changes.refused.append(Refusal(key, reason))
        return changes


@dataclass(frozen=True, slots=True)
class WordIds:
    """The word ids to store."""

    piece: WordPiece
    documents: list[_Completion] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    """The documents of which a word cannot have an id."""

    def write_changes(self, connection: Connection) -> ChangeReport:
        """Store the word ids, and postpone the documents that another transaction has locked."""
        corpus, keys = self.piece.corpus, self.piece.keys
        cursor = connection.cursor(binary=True)
        cursor.executemany(corpus.statement(statements.COMPLETE), self.documents)
        rows = connection.execute(corpus.statement(statements.STILL_WAITING), [keys]).fetchall()
        refused = {refusal.key for refusal in self.refused}
        waiting = [key for (key,) in rows if key not in refused]
        if waiting:
            pending_log.postpone(connection, self.piece, waiting)
        completed = len(self.documents) - len(waiting)
        return ChangeReport(completed=completed, refused=self.refused)


def waiting_pieces(store: Store) -> Iterator[WordPiece]:
    """Yield all documents of a corpus that wait for word ids, even if the log has no entry for them."""
    last: str | None = None
    while True:
        with transaction(store.engine) as connection:
            statement = store.corpus.statement(statements.WAITING_KEYS)
            rows = connection.execute(statement, next_page(last)).fetchall()
        if not rows:
            return
        yield from WordPiece(store=store, keys=[key for (key,) in rows]).cut()
        last = rows[-1][0]
