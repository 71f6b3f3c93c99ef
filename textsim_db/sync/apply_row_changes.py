"""Indexes changed rows of an attached table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from psycopg import errors as pg

from textsim_db.db.engine import Connection
from textsim_db.db.statements import QUEUE_OF_WRITERS
from textsim_db.db.store import Store
from textsim_db.results import ChangeReport, Refusal
from textsim_db.sync import pending_log, read_source, statements
from textsim_db.sync.pieces import SOURCE_PATIENCE, Piece
from textsim_db.sync.read_source import SourceRows, StoredSource
from textsim_db.write import prepare_batches, write_batch
from textsim_db.write.load_batches import with_word_ids
from textsim_db.write.prepare_batches import Batch, prepare

Change = Callable[[Connection], ChangeReport]
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


def resolve_rows(piece: Piece, source: StoredSource) -> Change | None:
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
