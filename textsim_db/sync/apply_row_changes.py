"""Indexes changed rows of an attached table.

resolve() computes ahead; write() reads the rows again, and computes again only if they changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from psycopg import errors as pg

from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.results import ChangeReport, Refusal
from textsim_db.sync import pending_log, source_rows
from textsim_db.sync.pieces import Piece
from textsim_db.sync.source_rows import StoredSource
from textsim_db.write import detect_changes, write_batch
from textsim_db.write.bulk_load import with_word_ids
from textsim_db.write.prepared_batch import Batch, prepare
from textsim_db.write.statements import QUEUE_OF_WRITERS

PATIENCE = "100ms"
"""How long a piece that holds locks waits for another lock, such as the lock of a key being added.

Much shorter than deadlock_timeout, which is 1 s by default. If a user's transaction and a piece wait
for each other, the piece gives up before the server looks for a deadlock.
"""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The texts of the rows of a piece, when they were read, and their batch."""

    texts: dict[str, str]
    batch: Batch


class Comparison(NamedTuple):
    """Rows compared with their documents.

    outcomes: what a write would do with each row; adopted: the ids of documents that would only get a
    new source.
    """

    changes: RowChanges
    outcomes: npt.NDArray[np.int8]
    adopted: list[int]


def resolve(piece: Piece) -> RowChanges | None:
    """Read the rows and compute the changes; None if the piece may be skipped and nothing differs."""
    assert piece.source is not None
    if not piece.skip_unchanged:
        with source_rows.reading(piece.store.engine, piece.source) as connection:
            texts = source_rows.read_texts(connection, piece.source, piece.keys)
        return RowChanges(texts, _batch(texts, piece.store))
    changes, outcomes, adopted = compare(piece)
    is_whole = len(changes.batch.keys) == len(piece.keys)
    if is_whole and not adopted and np.all(outcomes == detect_changes.UNCHANGED):
        return None
    return changes


def compare(piece: Piece) -> Comparison:
    """Compare the rows of a piece with its documents; writes only new words of the dictionary."""
    assert piece.source is not None
    with source_rows.reading(piece.store.engine, piece.source) as connection:
        texts = source_rows.read_texts(connection, piece.source, piece.keys)
        cursor = connection.cursor(binary=True)
        documents = write_batch.find(cursor, piece.corpus, piece.keys)
    batch = _batch(texts, piece.store)
    outcomes, adopted = detect_changes.outcomes(batch, documents, piece.source.id)
    return Comparison(RowChanges(texts, batch), outcomes, adopted)


def write(connection: Connection, piece: Piece, changes: RowChanges) -> ChangeReport:
    """Write the current rows; if they did not change, the batch computed ahead is used.

    The documents are locked before the rows are read. So a transaction that writes both, as inline
    triggers do, cannot write between the two steps. If it adds a document, we get a UniqueViolation.
    """
    source, cursor = piece.source, connection.cursor(binary=True)
    assert source is not None
    documents, keys = _lock_documents(connection, piece, source)
    texts = source_rows.read_texts(connection, source, keys)
    owners = _other_owners(connection, source, documents)
    own_documents = {key: row for key, row in documents.items() if key not in owners}
    own_texts = {key: text for key, text in texts.items() if key not in owners}
    batch = changes.batch if own_texts == changes.texts else _batch(own_texts, piece.store)
    outcomes, left_out = write_batch.write(cursor, piece.store, batch, source.id, own_documents)
    if source.mode == "inline":
        _check_added_rows(connection, source, texts, batch, outcomes)
    surplus = [own_documents[key] for key in own_documents.keys() - set(batch.keys)]
    removed = write_batch.remove_locked(cursor, piece.corpus, surplus)
    refused = [
        Refusal(key, f"the corpus has this key from the table {owners[key]}")
        for key in sorted(owners.keys() & texts.keys())
    ]
    refused += [
        Refusal(
            batch.keys[number],
            f'the text matches document "{matches[0].key[:100]}" with similarity '
            f"{matches[0].similarity:.3f}, and the corpus keeps near-duplicates out",
        )
        for number, matches in left_out
    ]
    added, replaced, unchanged, completed, _ = np.bincount(outcomes, minlength=5).tolist()
    return ChangeReport(
        added=added,
        replaced=replaced,
        removed=removed,
        unchanged=unchanged,
        completed=completed,
        refused=[*batch.refused, *refused],
    )


def _lock_documents(
    connection: Connection, piece: Piece, source: StoredSource
) -> tuple[detect_changes.Existing, list[str]]:
    """Lock the documents of a piece; return them, and the keys that no other transaction has locked.

    A piece waits for other writers of its corpus before it locks any document. If another transaction
    has locked the document of a key, the key is postponed.
    """
    connection.execute(QUEUE_OF_WRITERS, [piece.corpus.id])
    source_rows.lock_table(connection, source, PATIENCE)
    cursor = connection.cursor(binary=True)
    documents, busy = write_batch.lock_free(cursor, piece.corpus, piece.keys)
    if busy:
        pending_log.postpone(connection, piece, sorted(busy))
    return documents, [key for key in piece.keys if key not in busy]


def _batch(texts: dict[str, str], store: Store) -> Batch:
    return with_word_ids(prepare(list(texts.items()), store.corpus.config), store)


def _other_owners(
    connection: Connection, source: StoredSource, documents: detect_changes.Existing
) -> dict[str, str]:
    """Return the keys whose documents come from another attached table, with the table's name."""
    numbers = {document.source_id for document in documents.values()} - {None, source.id}
    if not numbers:
        return {}
    names = source_rows.source_names(connection, numbers)
    return {
        key: names[document.source_id]
        for key, document in documents.items()
        if document.source_id in names
    }


def _check_added_rows(
    connection: Connection,
    source: StoredSource,
    texts: dict[str, str],
    batch: Batch,
    outcomes: npt.NDArray[np.int8],
) -> None:
    """Raise SerializationFailure if a row changed before its document was added.

    A row that was indexed inline and removed again meanwhile has left no entry in the log. A
    transaction that writes the row later waits for the document, or logs the key.
    """
    added = [batch.keys[i] for i in np.flatnonzero(outcomes == detect_changes.ADDED)]
    expected = {key: texts[key] for key in added}
    if added and source_rows.read_texts(connection, source, added) != expected:
        raise pg.SerializationFailure("rows changed before their documents were added")
