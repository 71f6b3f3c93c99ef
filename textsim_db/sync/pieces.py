"""Pieces: keys to be indexed in one transaction, few enough for their texts to fit in memory.

A piece names keys, not texts. Its transaction reads the rows again and writes their current texts. So
pieces may be written in any order, and more than once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Engine

from textsim_db.db.engine import Connection, transaction
from textsim_db.db.retries import repeated
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.sync import source_rows, statements
from textsim_db.sync.source_rows import StoredSource
from textsim_db.text.streams import MAX_WEIGHT
from textsim_db.write.prepared_batch import BATCH_DOCUMENTS

INLINE_DOCUMENTS = 1000
"""The documents of a piece in mode inline, in which users' transactions wait for locked documents."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Keys to be indexed in one transaction.

    source: the table whose rows changed; None if documents wait for the ids of their words. entries:
    the entries of the log to delete with this piece. tries: how often they were claimed.
    skip_unchanged: open no transaction if the documents equal the rows.
    """

    store: Store
    source: StoredSource | None
    keys: list[str]
    entries: tuple[int, ...] = ()
    tries: int = 1
    skip_unchanged: bool = False

    @property
    def corpus(self) -> StoredCorpus:
        """The corpus that the keys belong to."""
        return self.store.corpus

    @property
    def source_id(self) -> int | None:
        """The number of the source, or None."""
        return None if self.source is None else self.source.id


def cut_keys(
    store: Store,
    source: StoredSource | None,
    keys: Sequence[str],
    entries: Sequence[int] = (),
    tries: int = 1,
) -> Iterator[Piece]:
    """Cut keys into pieces; the entries of the log belong to the last piece."""
    distinct = sorted(set(keys))
    if source is None:
        with transaction(store.engine) as connection:
            rows = connection.execute(
                store.corpus.statement(statements.WAITING_SIZES), [distinct]
            ).fetchall()
        sizes: dict[str, int] = dict(rows)
    else:
        with source_rows.reading(store.engine, source) as connection:
            sizes = source_rows.read_sizes(connection, source, distinct)
    parts = list(_cut(distinct, sizes, source))
    for part in parts[:-1]:
        yield Piece(store, source, part, tries=tries)
    yield Piece(store, source, parts[-1], tuple(entries), tries)


def sweep(store: Store, source: StoredSource) -> Iterator[Piece]:
    """Yield pieces of all keys of a table, and then of the documents that have no row any more.

    A sweep reads pages in short transactions. Triggers log the changes that are made meanwhile.
    """
    after: str | None = None
    while rows := repeated(partial(_row_page, store.engine, source, after)):
        for keys in _cut([key for key, _ in rows], dict(rows), source):
            yield Piece(store, source, keys, skip_unchanged=True)
        after = rows[-1][0]
    after = None
    while True:
        keys, absent = repeated(partial(_document_page, store, source, after))
        if not keys:
            return
        if absent:
            yield Piece(store, source, absent)
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


def _cut(
    keys: Sequence[str], sizes: dict[str, int], source: StoredSource | None
) -> Iterator[list[str]]:
    """Cut keys into lists; without keys, yield an empty list."""
    inline = source is not None and source.mode == "inline"
    most = INLINE_DOCUMENTS if inline else BATCH_DOCUMENTS
    part: list[str] = []
    size = 0
    for key in keys:
        part.append(key)
        size += sizes.get(key, 0)
        if len(part) >= most or size >= MAX_WEIGHT:
            yield part
            part, size = [], 0
    if part or not keys:
        yield part


def _row_page(
    engine: Engine, source: StoredSource, after: str | None, attempt: int
) -> list[tuple[str, int]]:
    with source_rows.reading(engine, source) as connection:
        return source_rows.read_page(connection, source, after, BATCH_DOCUMENTS)


def _document_page(
    store: Store, source: StoredSource, after: str | None, attempt: int
) -> tuple[list[str], list[str]]:
    """Return the keys of the next documents of a source, and the keys that its table lacks."""
    with source_rows.reading(store.engine, source) as connection:
        keys = _own_keys(connection, store, source, after)
        return keys, source_rows.absent_keys(connection, source, keys)


def _own_keys(
    connection: Connection, store: Store, source: StoredSource, after: str | None
) -> list[str]:
    """Return the keys of the next documents of a source."""
    statement = store.corpus.statement(
        statements.FIRST_DOCUMENT_KEYS if after is None else statements.NEXT_DOCUMENT_KEYS
    )
    start: list[object] = [source.id] if after is None else [source.id, after]
    return [key for (key,) in connection.execute(statement, [*start, BATCH_DOCUMENTS])]
