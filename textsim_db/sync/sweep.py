"""Sweeps: the keys of all rows of an attached table, and of the documents that have no row any more.

A sweep reads pages in short transactions. Triggers log the changes that are made meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from textsim_db.db.engine import Connection, transaction
from textsim_db.db.retries import Attempts
from textsim_db.db.store import Store
from textsim_db.sync import read_source, statements
from textsim_db.sync.apply_row_changes import RowPiece
from textsim_db.sync.pieces import cut_keys, next_page
from textsim_db.sync.read_source import StoredSource
from textsim_db.write.batch_size import BATCH_DOCUMENTS


def sweep_table(store: Store, source: StoredSource) -> Iterator[RowPiece]:
    """Yield pieces of all keys of a table, and then of the documents that have no row any more."""
    rows = RowPiece(store=store, source=source, keys=[], skip_unchanged=True)
    after: str | None = None
    while sizes := _row_page(store, source, after):
        for keys in cut_keys(list(sizes), sizes, rows.max_keys):
            yield rows.part(keys, is_last=False)
        after = list(sizes)[-1]
    after = None
    while True:
        keys, absent = _document_page(store, source, after)
        if not keys:
            return
        if absent:
            yield RowPiece(store=store, source=source, keys=absent)
        after = keys[-1]


def document_keys(store: Store, source: StoredSource) -> Iterator[str]:
    """Yield the keys of all documents of a source."""
    after: str | None = None
    while True:
        with transaction(store.engine) as connection:
            keys = _own_keys(connection, store, source, after)
        if not keys:
            return
        yield from keys
        after = keys[-1]


def _row_page(store: Store, source: StoredSource, after: str | None) -> dict[str, int]:
    """Return the next keys of a table in order, with the bytes of their texts."""
    for attempt in Attempts():
        with attempt, read_source.reading(store.engine, source) as connection:
            page = read_source.read_page(connection, source, after, BATCH_DOCUMENTS)
    return dict(page)


def _document_page(
    store: Store, source: StoredSource, after: str | None
) -> tuple[list[str], list[str]]:
    """Return the keys of the next documents of a source, and the keys that its table lacks."""
    for attempt in Attempts():
        with attempt, read_source.reading(store.engine, source) as connection:
            keys = _own_keys(connection, store, source, after)
            absent = read_source.absent_keys(connection, source, keys)
    return keys, absent


def _own_keys(
    connection: Connection, store: Store, source: StoredSource, after: str | None
) -> list[str]:
    """Return the keys of the next documents of a source."""
    statement = store.corpus.statement(statements.DOCUMENT_KEYS)
    parameters = {"source": source.id, **next_page(after)}
    return [key for (key,) in connection.execute(statement, parameters)]
