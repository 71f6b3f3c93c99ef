"""The log of changes, textsim.pending: deletes entries, postpones keys, and lets keys fail.

Triggers append entries in the user's transaction. A worker claims them (see leases), and deletes
them in the transaction that writes the documents. An entry that failed has an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from textsim_db.db.engine import Connection, read_rows, transaction
from textsim_db.results import Failure, Refusal
from textsim_db.sync import statements

if TYPE_CHECKING:
    from textsim_db.db.store import Store
    from textsim_db.sync.pieces import Piece


def comparisons(connection: Connection, source_id: int) -> list[int]:
    """Return the entries that ask for a comparison of a whole table."""
    return [id_ for (id_,) in connection.execute(statements.COMPARISONS, [source_id])]


def delete(connection: Connection, ids: Sequence[int]) -> None:
    """Delete entries."""
    if ids:
        connection.execute(statements.DELETE_ENTRIES, [list(ids)])


def delete_done(connection: Connection, piece: Piece) -> None:
    """Delete the entries of a piece, and the failures of its keys."""
    parameters = [piece.corpus.id, piece.source_id, piece.keys, list(piece.entries)]
    connection.execute(statements.DELETE_DONE, parameters)


def fail(connection: Connection, piece: Piece, refused: Iterable[Refusal]) -> None:
    """Log that documents of a piece failed, each with its reason; no worker claims them again."""
    for key, reason in refused:
        parameters = [piece.corpus.id, piece.source_id, [key], piece.tries, reason]
        connection.execute(statements.FAIL, parameters)


def postpone(connection: Connection, piece: Piece, keys: Sequence[str], tries: int = 0) -> None:
    """Log keys of a piece again, to be claimed after 2**tries seconds."""
    parameters = [piece.kind, piece.corpus.id, piece.source_id, list(keys), tries, 2**tries]
    connection.execute(statements.POSTPONE, parameters)


def failures(store: Store, last: int | None = None) -> list[Failure]:
    """Return the documents that failed; last: only this number of the latest ones."""
    rows = read_rows(store.engine, store.corpus.statement(statements.FAILURES), [last])
    return [Failure(*row) for row in reversed(rows)]


def retry_failures(store: Store) -> int:
    """Let workers try again what failed, and return the number of entries."""
    with transaction(store.engine) as connection:
        return connection.execute(statements.RETRY_FAILURES, [store.corpus.id]).rowcount
