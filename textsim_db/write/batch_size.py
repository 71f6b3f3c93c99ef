"""How many documents a batch has; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from textsim_db.text.run_ahead import cut

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
