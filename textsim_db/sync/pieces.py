"""Pieces: keys to be indexed in one transaction, few enough for their texts to fit in memory.

A piece names keys, not texts. Its transaction reads the rows again and writes their current texts. So
pieces may be written in any order, and more than once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self

import psycopg
from psycopg import errors as pg

from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.results import ChangeReport
from textsim_db.sync.faults import Subject
from textsim_db.text.run_ahead import MAX_WEIGHT
from textsim_db.write.batches import BATCH_DOCUMENTS

SOURCE_PATIENCE = "100ms"
"""How long a piece that holds locks waits for another lock, such as the lock of a key being added.

Much shorter than deadlock_timeout, which is 1 s by default. If a user's transaction and a piece wait
for each other, the piece gives up before the server looks for a deadlock.
"""


OF_ROWS = (psycopg.DataError, pg.DataCorrupted)
"""Errors that a single row or key causes."""


class Changes(Protocol):
    """The documents that a piece will write, computed before its transaction begins."""

    def write_changes(self, connection: Connection) -> ChangeReport:
        """Write the documents of the piece, in the caller's transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece(ABC):
    """Keys to be indexed in one transaction."""

    store: Store
    keys: list[str]
    entries: tuple[int, ...] = ()
    """The entries of the log to delete with this piece."""
    tries: int = 1
    """How often the entries were claimed."""

    kind: ClassVar[str]
    """The kind of the entries."""

    @property
    def corpus(self) -> StoredCorpus:
        """The corpus that the keys belong to."""
        return self.store.corpus

    @property
    def source_id(self) -> int | None:
        """The id of the attached table; None if the keys are of documents."""
        return None

    @property
    def table(self) -> str | None:
        """The name of the attached table; None if the keys are of documents."""
        return None

    @property
    @abstractmethod
    def subject(self) -> Subject:
        """The step of a table or a corpus that the piece belongs to."""

    @property
    def max_keys(self) -> int:
        """How many keys one transaction may have."""
        return BATCH_DOCUMENTS

    @abstractmethod
    def resolve_changes(self) -> Changes | None:
        """Read and compute the changes, ahead of the transaction; None if there are none."""

    @abstractmethod
    def read_sizes(self) -> Mapping[str, int]:
        """Return the bytes of the texts of the keys, without the texts."""

    def part(self, keys: list[str], is_last: bool) -> Self:
        """Return a piece with some of the keys; the entries belong to the last part."""
        return replace(self, keys=keys, entries=self.entries if is_last else ())

    def cut(self) -> Iterator[Self]:
        """Cut a piece by number of keys and by bytes of texts.

        A key that cannot be read comes alone; to resolve its piece raises the error again.
        """
        try:
            sizes = self.read_sizes() if len(self.keys) > 1 else {}
        except OF_ROWS:
            middle = len(self.keys) // 2
            yield from self.part(self.keys[:middle], is_last=False).cut()
            yield from self.part(self.keys[middle:], is_last=True).cut()
            return
        parts = list(cut_keys(self.keys, sizes, self.max_keys))
        for i, keys in enumerate(parts):
            yield self.part(keys, i == len(parts) - 1)


def cut_keys(keys: list[str], sizes: Mapping[str, int], most: int) -> Iterator[list[str]]:
    """Cut keys into lists; without keys, yield an empty list."""
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


def next_page(after: str | None) -> dict[str, object]:
    """Return the parameters of a statement that reads a page of keys; None: the first page."""
    return {"after": after or "", "is_first": after is None, "most": BATCH_DOCUMENTS}
