"""Indexes a piece: resolve_piece() computes ahead of time, apply_piece() writes in one transaction.

The transaction waits for other writers of the corpus (an advisory lock), locks the stored documents,
reads the table again, writes the documents and deletes the log entries. The second reading makes the
order and the number of repetitions irrelevant, and a worker may die at any time. Documents are locked
before the table is read, because in mode inline users' transactions write the row first and the document
second. While a worker holds a lock it waits at most 100 ms, far less than deadlock_timeout. So the
server never ends a user's transaction because of a worker, except a REPEATABLE READ transaction that
writes a document after a worker gave it word ids.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from psycopg import errors as pg

from textsim_db.db.binary_format import Parameter, array
from textsim_db.db.dictionary import dictionary_of
from textsim_db.db.engine import Connection, transaction, wait_at_most
from textsim_db.db.retries import PASSING, Attempts
from textsim_db.db.statements import QUEUE_OF_WRITERS
from textsim_db.db.store import Store
from textsim_db.results import ChangeReport, Refusal
from textsim_db.sync import pending_log, read_source, statements
from textsim_db.sync.pieces import SOURCE_PATIENCE, Piece, next_page
from textsim_db.sync.read_source import SourceRows, StoredSource
from textsim_db.sync.step_faults import concerns_corpus, is_bug, reason_of
from textsim_db.text.languages import identify
from textsim_db.text.tokens import tokens_of
from textsim_db.write import prepare_batches, write_batch
from textsim_db.write.load_batches import with_word_ids
from textsim_db.write.prepare_batches import Batch, prepare

log = logging.getLogger(__name__)

PIECE_TRIES = 3
"""The attempts at a piece before it is halved, and the claims of a key before it fails."""
CONFLICTS = (*PASSING, pg.LockNotAvailable, pg.ObjectNotInPrerequisiteState)
"""Errors that another transaction causes."""


class Resolved(NamedTuple):
    piece: Piece
    change: ApplyStep | Exception | None
    """The error that ended the computation, if there was one; None if there is nothing to write."""
    started_at: float
    """The time of the monotonic clock."""


def resolve_piece(piece: Piece) -> Resolved:
    """Read and compute the change of a piece, before its transaction begins; never raises."""
    started_at = time.monotonic()
    try:
        if piece.source is None:
            return Resolved(piece, _resolve_words(piece), started_at)
        return Resolved(piece, resolve_rows(piece, piece.source), started_at)
    except Exception as error:
        return Resolved(piece, error, started_at)


def apply_piece(resolved: Resolved) -> ChangeReport:
    """Write a piece, in halves if it fails; raise an error only if every piece would fail with it.

    A single key that fails is postponed, and fails for good after PIECE_TRIES. If PIECE_TRIES keys in a
    row conflict with other transactions, the cause is not a single key, so all remaining keys are
    postponed.
    """
    piece, report = resolved.piece, ChangeReport()
    conflicts = 0
    attempts = _AttemptsAtPiece(piece)
    for attempt in attempts:
        own = piece.with_keys(piece.keys[attempt.slice], attempt.slice.stop == len(piece.keys))
        was_unresolved = isinstance(resolved.change, Exception) and attempt.failures
        if was_unresolved or resolved.piece.keys != own.keys:
            resolved = resolve_piece(own)
        try:
            with attempt:
                report.include(_commit(own, resolved.change, attempts.queue_patience))
            conflicts = 0
        except Exception as error:
            # The last piece of a sweep has no key to set aside.
            if not own.keys or concerns_corpus(piece.store.engine, error):
                raise
            if not isinstance(error, CONFLICTS):
                report.refused += _postpone_or_fail(own, error)
                continue
            conflicts += 1
            if conflicts == PIECE_TRIES:
                _postpone(piece.with_keys(piece.keys[attempt.slice.start :], is_last=True))
                break
            _postpone(own)
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
        return isinstance(error, CONFLICTS)

    def halves(self, error: Exception) -> bool:
        """Return whether smaller pieces may succeed; after a conflict they do not wait again."""
        if isinstance(error, CONFLICTS):
            self.tries, self.queue_patience = 1, SOURCE_PATIENCE
        return not concerns_corpus(self._piece.store.engine, error)


def _commit(
    piece: Piece, change: ApplyStep | Exception | None, queue_patience: str
) -> ChangeReport:
    if isinstance(change, Exception):
        raise change
    if change is None:
        return ChangeReport(unchanged=len(piece.keys))
    with transaction(piece.store.engine) as connection:
        wait_at_most(connection, queue_patience)
        report = change(connection)
        pending_log.delete_done(connection, piece)
        pending_log.fail(connection, piece, report.refused)
    return report


def _postpone_or_fail(single: Piece, error: Exception) -> list[Refusal]:
    """Postpone a key; if it was claimed PIECE_TRIES times, let it fail, and return the refusal."""
    if single.tries < PIECE_TRIES:
        _postpone(single, single.tries)
        return []
    reason = reason_of(error)
    if is_bug(error):
        log.error("%s", reason, extra={"corpus": single.corpus.name}, exc_info=error)
    refused = [Refusal(single.keys[0], reason)]
    with transaction(single.store.engine) as connection:
        pending_log.delete_done(connection, single)
        pending_log.fail(connection, single, refused)
    return refused


def _postpone(piece: Piece, tries: int = 0) -> None:
    with transaction(piece.store.engine) as connection:
        pending_log.postpone(connection, piece, piece.keys, tries)
        pending_log.delete(connection, piece.entries)


_Completion = dict[str, Parameter | str | int | None]
"""The parameters of statements.COMPLETE."""


def _resolve_words(piece: Piece) -> ApplyStep:
    store, documents = piece.store, list[_Completion]()
    refused: list[Refusal] = []
    with transaction(store.engine) as connection:
        statement = store.corpus.statement(statements.WAITING_FORMS)
        rows = connection.execute(statement, [piece.keys]).fetchall()
    tokens = tokens_of([form.encode() for _, _, form in rows])
    all_word_ids = dictionary_of(store).ensure(tokens)
    languages = [None] * len(rows) if store.corpus.config.language is None else identify(tokens)
    for (key, id_, form), (start, end), language in zip(
        rows, pairwise(tokens.word_offsets.tolist()), languages, strict=True
    ):
        word_ids = None if all_word_ids is None else all_word_ids[start:end]
        if word_ids is None or word_ids.all():
            ids = None if word_ids is None else array(word_ids)
            documents.append({"ids": ids, "language": language, "id": id_, "form": form})
        else:
            word = tokens.words(start + np.flatnonzero(word_ids == 0)[:1])[0]
            reason = f'the word "{word[:40]}" has the same 64-bit hash as another one'
            refused.append(Refusal(key, reason))
    return partial(_complete, piece, documents, refused)


def _complete(
    piece: Piece, documents: list[_Completion], refused: list[Refusal], connection: Connection
) -> ChangeReport:
    """Store word ids and languages, and postpone the documents that another transaction has locked."""
    cursor = connection.cursor(binary=True)
    cursor.executemany(piece.corpus.statement(statements.COMPLETE), documents)
    statement = piece.corpus.statement(statements.STILL_WAITING)
    rows = connection.execute(statement, [piece.keys]).fetchall()
    waiting = [key for (key,) in rows if key not in {refusal.key for refusal in refused}]
    if waiting:
        pending_log.postpone(connection, piece, waiting)
    return ChangeReport(completed=len(documents) - len(waiting), refused=refused)


def waiting_pieces(store: Store) -> Iterator[Piece]:
    """Yield all documents of a corpus that wait for a worker, even if the log has no entry for them."""
    last: str | None = None
    while True:
        with transaction(store.engine) as connection:
            statement = store.corpus.statement(statements.WAITING_KEYS)
            rows = connection.execute(statement, next_page(last)).fetchall()
        if not rows:
            return
        yield from Piece(store, [key for (key,) in rows]).cut()
        last = rows[-1][0]


ApplyStep = Callable[[Connection], ChangeReport]
"""Writes the documents of a piece in the caller's transaction."""


def compare_rows(
    piece: Piece, source: StoredSource
) -> tuple[SourceRows, Batch, prepare_batches.Outcomes, list[int]]:
    """Compare rows with their documents; adds only new words to the dictionary.

    Returns the rows, their batch, the outcome of writing each row, and the ids of documents that would
    only get a new source.
    """
    with read_source.reading(piece.store.engine, source) as connection:
        rows = read_source.read_rows(connection, source, piece.keys)
        cursor = connection.cursor(binary=True)
        documents = write_batch.find(cursor, piece.corpus, piece.keys)
    batch = _batch(rows, piece.store)
    outcomes, adopted = prepare_batches.outcomes(batch, documents, source.id)
    return rows, batch, outcomes, adopted


def resolve_rows(piece: Piece, source: StoredSource) -> ApplyStep | None:
    """Read the rows and compute their batch; None if the piece may be skipped."""
    if piece.skip_unchanged:
        rows, batch, outcomes, adopted = compare_rows(piece, source)
        is_whole = len(batch.keys) == len(piece.keys)
        if is_whole and not adopted and np.all(outcomes == prepare_batches.UNCHANGED):
            return None
    else:
        rows = piece.read_rows(source) if piece.rows is None else piece.rows
        batch = _batch(rows, piece.store)
    return partial(_index_rows, piece, source, rows, batch)


def _index_rows(
    piece: Piece, source: StoredSource, resolved: SourceRows, batch: Batch, connection: Connection
) -> ChangeReport:
    """Index the current rows; if they equal the resolved rows, the batch computed ahead is used.

    The documents are locked before the rows are read. So a transaction that writes both, as inline
    triggers do, cannot write between the two steps. If it adds a document, we get a UniqueViolation.
    """
    cursor = connection.cursor(binary=True)
    documents, keys = _lock_documents(connection, piece, source)
    rows = read_source.read_rows(connection, source, keys)
    owners = _other_owners(connection, source, documents)
    own_documents = {key: row for key, row in documents.items() if key not in owners}
    own_rows = {key: row for key, row in rows.items() if key not in owners}
    if own_rows != resolved:
        batch = _batch(own_rows, piece.store)
    outcomes, twins, _ = write_batch.write(cursor, piece.store, batch, source.id, own_documents)
    if source.mode == "inline":
        # A row that was indexed inline and removed again meanwhile has left no entry in the log. A
        # transaction that writes the row later waits for the document, or logs the key.
        added_keys = [batch.keys[i] for i in np.flatnonzero(outcomes == prepare_batches.ADDED)]
        now = read_source.read_rows(connection, source, added_keys)
        if any(now.get(key) != rows[key] for key in added_keys):
            raise pg.SerializationFailure("rows changed before their documents were added")
    surplus = [own_documents[key] for key in own_documents.keys() - set(batch.keys)]
    removed = write_batch.remove_locked(cursor, piece.corpus, surplus)
    refused = [
        Refusal(key, f"the corpus has this key from the table {owners[key]}")
        for key in sorted(owners.keys() & rows.keys())
    ]
    refused += [
        Refusal(
            batch.keys[place],
            f'the text matches document "{matches[0].key[:100]}" with similarity '
            f"{matches[0].similarity:.3f}, and the corpus keeps near-duplicates out",
        )
        for place, matches in twins
    ]
    counts = np.bincount(outcomes, minlength=6).tolist()
    added, replaced, unchanged, completed, _, extended = counts
    return ChangeReport(
        added=added,
        replaced=replaced + extended,
        removed=removed,
        unchanged=unchanged,
        completed=completed,
        without_words=batch.count_without_words(),
        refused=[*batch.refused, *refused],
    )


def _lock_documents(
    connection: Connection, piece: Piece, source: StoredSource
) -> tuple[prepare_batches.StoredByKey, list[str]]:
    """Lock the documents of a piece; return them, and the keys that no other transaction has locked.

    A piece waits for other writers of its corpus before it locks any document. If another transaction
    has locked the document of a key, the key is postponed.
    """
    connection.execute(QUEUE_OF_WRITERS, [piece.corpus.id])
    read_source.lock_table(connection, source, SOURCE_PATIENCE)
    cursor = connection.cursor(binary=True)
    documents, busy = write_batch.lock_free(cursor, piece.corpus, piece.keys)
    if busy:
        pending_log.postpone(connection, piece, sorted(busy))
    return documents, [key for key in piece.keys if key not in busy]


def _batch(rows: SourceRows, store: Store) -> Batch:
    faults = [Refusal(key, row.fault) for key, row in rows.items() if row.fault is not None]
    documents = [(key, row.text, row.scope) for key, row in rows.items() if row.fault is None]
    batch = with_word_ids(prepare(documents, store.corpus.config), store)
    batch = replace(batch, refused=batch.refused + faults)
    if store.corpus.config.keep_for is None:
        return batch
    return replace(batch, expiries=[rows[key].expires_at for key in batch.keys])


def _other_owners(
    connection: Connection, source: StoredSource, documents: prepare_batches.StoredByKey
) -> dict[str, str]:
    """Return the keys whose documents come from another attached table, with the table's name."""
    ids = {document.source_id for document in documents.values()} - {None, source.id}
    rows = connection.execute(statements.SOURCE_NAMES, [list(ids)]) if ids else ()
    names: dict[int | None, str] = dict(rows)
    return {
        key: names[document.source_id]
        for key, document in documents.items()
        if document.source_id in names
    }
