"""Pieces: keys to be indexed in one transaction, few enough for their texts to fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import psycopg
from psycopg import errors as pg

from textsim_db.base.run_ahead import BATCH_DOCUMENTS, MAX_WEIGHT
from textsim_db.db.engine import transaction
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.sync import read_source, statements
from textsim_db.sync.read_source import SourceRows, StoredSource
from textsim_db.sync.step_faults import Subject

SOURCE_PATIENCE = "100ms"
"""How long a piece that holds locks waits for another lock, such as the lock of a key being added.

Much shorter than deadlock_timeout, which is 1 s by default. If a user's transaction and a piece wait
for each other, the piece gives up before the server looks for a deadlock.
"""
INLINE_DOCUMENTS = 1000
"""The documents of a piece in mode inline, in which users' transactions wait for locked documents."""
_OF_ROWS = (psycopg.DataError, pg.DataCorrupted)
"""Errors that a single row or key causes."""


def words_of(corpus_id: int) -> Subject:
    name = f"words of corpus {corpus_id}"
    return Subject(name, corpus_id, f"the {name} get no ids")


@dataclass(frozen=True, slots=True)
class Piece:
    """Keys to be indexed in one transaction."""

    store: Store
    keys: list[str]
    source: StoredSource | None = None
    """The table of the rows; None: the keys are of documents whose words wait for ids."""
    entries: tuple[int, ...] = ()
    """The entries of the log to delete with this piece."""
    tries: int = 1
    skip_unchanged: bool = False
    """Whether to open no transaction if the documents equal the rows."""
    rows: SourceRows | None = None
    """The rows, if cut() has read them."""

    @property
    def corpus(self) -> StoredCorpus:
        return self.store.corpus

    @property
    def source_id(self) -> int | None:
        return None if self.source is None else self.source.id

    @property
    def subject(self) -> Subject:
        return words_of(self.corpus.id) if self.source is None else self.source.indexing

    def with_keys(self, keys: list[str], is_last: bool) -> Self:
        """Return a piece with some of the keys; the entries belong to the last of them."""
        return replace(self, keys=keys, entries=self.entries if is_last else ())

    def cut(self) -> Iterator[Self]:
        """Cut a piece by number of keys and by bytes of texts; a key that cannot be read comes alone."""
        sizes: Mapping[str, int] = {}
        rows: SourceRows | None = None
        try:
            if len(self.keys) > 1:
                sizes = self._read_sizes()
            elif self.keys and self.source is not None:
                rows = self.read_rows(self.source)
        except _OF_ROWS:
            if len(self.keys) > 1:
                middle = len(self.keys) // 2
                yield from self.with_keys(self.keys[:middle], is_last=False).cut()
                yield from self.with_keys(self.keys[middle:], is_last=True).cut()
                return
        whole = replace(self, rows=rows)
        lists = list(cut_keys(self.keys, sizes, self.source))
        for i, keys in enumerate(lists):
            yield whole.with_keys(keys, i == len(lists) - 1)

    def read_rows(self, source: StoredSource) -> SourceRows:
        with read_source.reading(self.store.engine, source) as connection:
            return read_source.read_rows(connection, source, self.keys)

    def _read_sizes(self) -> dict[str, int]:
        """Return the bytes of the texts or normal forms of the keys, without fetching them."""
        if self.source is not None:
            with read_source.reading(self.store.engine, self.source) as connection:
                return read_source.read_sizes(connection, self.source, self.keys)
        with transaction(self.store.engine) as connection:
            statement = self.corpus.statement(statements.WAITING_SIZES)
            return dict(connection.execute(statement, [self.keys]).fetchall())


def cut_keys(
    keys: list[str], sizes: Mapping[str, int], source: StoredSource | None
) -> Iterator[list[str]]:
    """Cut keys into lists for one transaction each; without keys, yield an empty list."""
    is_inline = source is not None and source.mode == "inline"
    most = INLINE_DOCUMENTS if is_inline else BATCH_DOCUMENTS
    chosen: list[str] = []
    size = 0
    for key in keys:
        chosen.append(key)
        size += sizes.get(key, 0)
        if len(chosen) >= most or size >= MAX_WEIGHT:
            yield chosen
            chosen, size = [], 0
    if chosen or not keys:
        yield chosen


def next_page(after: str | None) -> dict[str, object]:
    """Return the parameters of a statement that reads a page of keys; None: the first page."""
    return {"after": after or "", "is_first": after is None, "most": BATCH_DOCUMENTS}
