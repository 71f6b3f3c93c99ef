"""The band index of a bulk load: dropped before the load of an empty corpus, built after it."""

from __future__ import annotations

import time
from contextlib import suppress
from types import TracebackType

import psycopg

from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import build_band_index, drop_band_index

BULK_DOCUMENTS = 1000
"""A first batch of so many documents into an empty corpus is written without the band index."""
BULK_SECONDS = 10.0
"""A stream that keeps a load waiting so long for a batch is no bulk load."""


class DeferredIndex:
    """Builds the index on the band rows after a bulk load into an empty corpus, not during it.

    To sort all rows at once takes a third of the time. If the process dies before the index is
    built, the first search or the next load builds it.
    """

    def __init__(self, store: Store) -> None:
        """is_dropped: the corpus was empty when the load began, and has no index now."""
        self._store = store
        self._is_bulk: bool | None = None
        self.is_dropped = False
        self._last_batch = time.monotonic()

    def expect(self, documents: int) -> None:
        """Get ready for a batch of so many documents."""
        waited = time.monotonic() - self._last_batch
        if self._is_bulk is None:
            self._is_bulk = documents >= BULK_DOCUMENTS
            self.is_dropped = self._is_bulk and drop_band_index(
                self._store.engine, self._store.corpus
            )
        elif self.is_dropped and waited > BULK_SECONDS:
            self._build()
        self._last_batch = time.monotonic()

    def __enter__(self) -> DeferredIndex:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and self.is_dropped:
            with suppress(psycopg.Error):
                self._build()
        elif self._is_bulk:  # also if an earlier load died
            self._build()

    def _build(self) -> None:
        build_band_index(self._store.engine, self._store.corpus)
        self.is_dropped = False
