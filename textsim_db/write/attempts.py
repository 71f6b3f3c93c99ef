"""The attempts of a writer at a transaction for several documents, and the queue of writers."""

from __future__ import annotations

from textsim_db.db.engine import Connection
from textsim_db.db.retries import Attempts
from textsim_db.db.store import Store
from textsim_db.write import statements

QUEUE_FROM = 2
"""After this number of failures writers of the corpus queue, so that they no longer collide."""


def attempts_of_writer(store: Store, keys: list[str]) -> Attempts:
    """Return the attempts at a transaction for documents with these keys; errors name the document."""
    return Attempts(store.engine, len(keys), lambda place: f'document "{keys[place][:100]}"')


def queue(connection: Connection, store: Store, attempt: Attempts) -> None:
    """Wait for other writers of the corpus, if earlier attempts have failed."""
    if attempt.failures >= QUEUE_FROM:
        connection.execute(statements.QUEUE_OF_WRITERS, [store.corpus.id])
