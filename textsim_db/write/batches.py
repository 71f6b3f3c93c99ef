"""How many documents a batch has, and the attempts of a writer at the transaction of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from textsim_db.db.engine import Connection
from textsim_db.db.retries import Attempts
from textsim_db.db.store import Store
from textsim_db.text.run_ahead import cut
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


BATCH_DOCUMENTS = 5000
"""Documents of a batch. Larger batches need more memory, and a load starts and ends more slowly."""


def in_batches(documents: Iterable[Any]) -> Iterator[list[Any]]:
    """Cut a stream of documents into lists, by number of documents and of characters.

    A document is (key, text), or (key, text, scope) in a scoped corpus.
    """
    return cut(documents, BATCH_DOCUMENTS, length_of)


def length_of(item: Any) -> int:
    """Return the characters of the text of a document, 0 if it is none."""
    try:
        return len(item[1])
    except (TypeError, IndexError, KeyError):  # refused when the batch is prepared
        return 0
