"""Reads the band index in its order: the documents of each bucket that several documents have.

The server sends arrays of millions of rows, and a kernel groups them. So Python does no work for a
single bucket.
"""

from __future__ import annotations

from itertools import pairwise

from textsim_db.db.binary_format import load_int8_array
from textsim_db.db.engine import Connection
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.text.array_types import Int64Array

RANGE_BYTES = 96 * 1024 * 1024
"""The bytes of band rows that one statement reads; larger ranges need more memory."""
_LOWEST, _BUCKETS = -(2**31), 2**32

Range = tuple[int, int]
"""The lowest and the highest bucket of a range."""


class BucketScan:
    """Reads the band rows of a corpus, of all documents or of the documents of one language."""

    def __init__(self, corpus: StoredCorpus, language: str | None) -> None:
        self._corpus = corpus
        self._language = language

    def prepare(self, connection: Connection) -> None:
        """Make the server read the band index in order, instead of sorting the table."""
        connection.execute(statements.READ_IN_INDEX_ORDER)

    def ranges(self, connection: Connection) -> list[Range]:
        """Cut all buckets into ranges with about the same number of rows."""
        row = connection.execute(self._corpus.statement(statements.SIZE_OF_BANDS)).fetchone()
        # NULL if the table has just been dropped. The statement that reads the table reports that.
        count = -(-int((row or (0,))[0] or 0) // RANGE_BYTES) or 1
        bounds = [_LOWEST + _BUCKETS * i // count for i in range(count + 1)]
        return [(low, high - 1) for low, high in pairwise(bounds)]

    def rows(self, connection: Connection, buckets: Range) -> Int64Array:
        """Read the band rows of a range of buckets, sorted, as grouped() takes them."""
        statement = statements.BAND_ROWS
        if self._language is not None:
            statement = statements.BAND_ROWS_OF_LANGUAGE
        low, high = buckets
        parameters = {"low": low, "high": high, "language": self._language}
        cursor = connection.cursor(binary=True)
        (data,) = cursor.execute(self._corpus.statement(statement), parameters).fetchone() or (b"",)
        rows = load_int8_array(data or b"")
        if (rows[1:] < rows[:-1]).any():  # a join, or a plan that does not read the index in order
            rows.sort()
        return rows
