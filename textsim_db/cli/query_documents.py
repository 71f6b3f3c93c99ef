"""The documents that a query of the user's returns, for textsim index --query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from textsim_db.errors import InputError

if TYPE_CHECKING:
    from textsim_db.database import Database

_RESULTS_AT_ONCE = 1000


class QueryDocuments:
    """The rows (key, text) or (key, text, scope) of a query; iterating reads them once, as they come."""

    def __init__(self, db: Database, query: str, scoped: bool) -> None:
        self._db = db
        self._query = query
        self._columns = 3 if scoped else 2
        self.bytes_read = 0

    def total_bytes(self) -> None:
        """Return None: the size of the result is unknown."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows; raises InputError if the query has other columns."""
        from textsim_db.db.engine import database_errors, transaction

        with (
            database_errors(),
            transaction(self._db.engine) as connection,
            connection.cursor("textsim_query") as cursor,
        ):
            connection.execute("SET TRANSACTION READ ONLY")
            cursor.execute(self._query.encode())
            if len(cursor.description or ()) != self._columns:
                raise InputError(
                    f"the query returns {len(cursor.description or ())} columns; expected "
                    + ("key, text and scope" if self._columns == 3 else "key and text")
                )
            while rows := cursor.fetchmany(_RESULTS_AT_ONCE):
                for row in rows:
                    self.bytes_read += len(row[1]) if isinstance(row[1], str) else 0
                    yield row
