"""Removes documents by key, and expired documents, in small transactions; no kernel is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import psycopg

from textsim_db.db.engine import transaction
from textsim_db.db.retries import Attempts, WriterAttempts
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.text.run_ahead import cut
from textsim_db.write import statements
from textsim_db.write.document_inputs import BATCH_DOCUMENTS, possible_key

if TYPE_CHECKING:
    from sqlalchemy import Engine


def remove(store: Store, keys: Iterable[object]) -> int:
    """Remove documents by key and return how many were removed; unknown keys are skipped."""
    stored_keys = (key for key in map(possible_key, keys) if key is not None)
    pieces = cut(stored_keys, BATCH_DOCUMENTS, len)
    return sum(_remove_or_retry(store, sorted(set(piece))) for piece in pieces)


def remove_within(cursor: psycopg.Cursor[Any], corpus: StoredCorpus, keys: list[str]) -> int:
    """Remove documents in the transaction of the caller, and return how many were removed."""
    row = cursor.execute(corpus.statement(statements.REMOVE_DOCUMENTS), [keys]).fetchone()
    return 0 if row is None else int(row[0])


def _remove_or_retry(store: Store, keys: list[str]) -> int:
    """Remove documents, in halves if that takes too long; return how many were removed."""
    removed = 0
    for attempt in WriterAttempts(store, keys):
        with attempt:
            with transaction(store.engine) as connection:
                attempt.queue(connection)
                part = keys[attempt.part]
                attempt.results.append(remove_within(connection.cursor(), store.corpus, part))
            removed += max(attempt.results)
    return removed


def expire(store: Store, progress: Callable[[int], None] | None = None) -> int:
    """Remove the expired documents of a corpus in small transactions; return how many were removed."""
    total = 0
    while removed := expire_some(store.engine, store.corpus.name):
        total += removed
        if progress is not None:
            progress(total)
    return total


def expire_some(engine: Engine, name: str) -> int:
    """Remove up to a thousand expired documents of a corpus, and return how many were removed."""
    removed = 0
    for attempt in Attempts():
        with attempt, transaction(engine) as connection:
            row = connection.execute(statements.EXPIRE, [name]).fetchone()
            removed = 0 if row is None else int(row[0])
    return removed
