"""Removes documents by key; the server computes which band rows they have, so no kernel is loaded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg

from textsim_db.db.engine import transaction
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.text.run_ahead import cut
from textsim_db.write import statements
from textsim_db.write.attempts import attempts_of_writer, queue
from textsim_db.write.storable_keys import possible_key

_KEYS_AT_ONCE = 5000


def remove(store: Store, keys: Iterable[object]) -> int:
    """Remove documents by key and return how many were removed; unknown keys are skipped."""
    stored_keys = (key for key in map(possible_key, keys) if key is not None)
    pieces = cut(stored_keys, _KEYS_AT_ONCE, len)
    return sum(_remove_or_retry(store, sorted(set(piece))) for piece in pieces)


def remove_within(cursor: psycopg.Cursor[Any], corpus: StoredCorpus, keys: list[str]) -> int:
    """Remove documents in the transaction of the caller, and return how many were removed."""
    row = cursor.execute(corpus.statement(statements.REMOVE_DOCUMENTS), [keys]).fetchone()
    return 0 if row is None else int(row[0])


def _remove_or_retry(store: Store, keys: list[str]) -> int:
    """Remove documents, in halves if that takes too long; return how many were removed."""
    removed = 0
    for attempt in attempts_of_writer(store, keys):
        with attempt:
            with transaction(store.engine) as connection:
                queue(connection, store, attempt)
                part = keys[attempt.part]
                attempt.results.append(remove_within(connection.cursor(), store.corpus, part))
            removed += max(attempt.results)
    return removed
