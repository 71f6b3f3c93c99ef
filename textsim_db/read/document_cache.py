"""Documents by id, each read when it is first needed, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from textsim_db.cluster.spanning_forest import Ids
from textsim_db.db.binary_format import Array
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import Connection
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import DatabaseError
from textsim_db.read import statements
from textsim_db.read.stored_documents import StoredDocuments, Vocabulary

CACHE_BYTES = 256 * 1024 * 1024
"""The size of the documents that are kept; more memory saves reading some of them twice."""
READ_BYTES = 4 * CACHE_BYTES
"""The most that is held at once, unless a single pair of documents is larger."""
ROW_BYTES = 300
"""What a document takes besides its words and its signature."""
KEYS_AT_ONCE = 10_000

Row = tuple[Any, ...]


class DocumentCache:
    """The documents of one snapshot by id, kept up to a number of bytes."""

    def __init__(
        self, connection: Connection, corpus: StoredCorpus, dictionary: Dictionary
    ) -> None:
        self._connection = connection
        self._corpus = corpus
        self._vocabulary = Vocabulary(dictionary)
        self._rows: dict[int, Row] = {}
        self._bytes = 0

    def documents(self, ids: Ids) -> StoredDocuments:
        """Return documents in the order of the ids; raises DatabaseError if one is not there."""
        numbers = ids.tolist()
        self._fetch(numbers)
        rows = [self._rows[number] for number in numbers]
        return StoredDocuments(self._corpus, self._vocabulary, rows)

    def keys(self, ids: Ids) -> dict[int, str]:
        """Return the keys of documents by id."""
        keys: dict[int, str] = {}
        for start in range(0, len(ids), KEYS_AT_ONCE):
            keys |= dict(self._execute(statements.KEYS_OF_IDS, ids[start : start + KEYS_AT_ONCE]))
        return keys

    def has_room(self, ids: Ids) -> bool:
        """Say whether documents can be read beside those that are kept."""
        missing = self._missing(ids.tolist())
        return not missing or self._bytes + self._size_of(missing) <= READ_BYTES

    def parts(self, ids: Ids) -> Iterator[Ids]:
        """Cut documents, in their order, where reading them together would take too much memory."""
        parts = [ids]
        while parts:
            part = parts.pop()
            unread = [number for number in part.tolist() if number not in self._rows]
            if len(part) > 1 and self._size_of(unread) > CACHE_BYTES:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
            else:
                yield part

    def _fetch(self, numbers: list[int]) -> None:
        missing = self._missing(numbers)
        if not missing:
            return
        rows = self._execute(statements.DOCUMENTS_OF_IDS, np.array(missing, np.int64))
        self._rows.update((row[0], row) for row in rows)
        self._bytes += sum(map(_size, rows))
        if gone := set(missing) - self._rows.keys():
            raise DatabaseError(
                f"document {min(gone)} has band rows, but is not there: run textsim check"
            )

    def _missing(self, numbers: list[int]) -> list[int]:
        """Return the ids that have to be read; if too much is kept, let other documents go."""
        missing = [number for number in numbers if number not in self._rows]
        if missing and self._bytes > CACHE_BYTES:
            self._rows = {i: self._rows[i] for i in numbers if i in self._rows}
            self._bytes = sum(map(_size, self._rows.values()))
        return missing

    def _size_of(self, numbers: list[int]) -> int:
        ((size,),) = self._execute(statements.SIZE_OF_DOCUMENTS, np.array(numbers, np.int64))
        return ROW_BYTES * len(numbers) + int(size)

    def _execute(self, statement: Any, ids: Ids) -> list[Row]:
        cursor = self._connection.cursor(binary=True)
        return cursor.execute(self._corpus.statement(statement), [Array(ids)]).fetchall()


def _size(row: Row) -> int:
    return ROW_BYTES + len(row[3] or row[5]) + len(row[4])
