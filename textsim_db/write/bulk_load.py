"""The write path: documents in batches, each one transaction that is wholly there or not at all.

While one batch is being written, a thread looks up the words of the next and another computes the
one after: the kernels and the waiting for the server both release the GIL.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial, reduce
from itertools import islice
from types import TracebackType
from typing import Any, LiteralString, TypeVar

import numpy as np
import numpy.typing as npt
import psycopg

from textsim_db.db.engine import autocommit, is_lost, transaction
from textsim_db.db.retries import in_parts, repeated
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import build_band_index, drop_band_index
from textsim_db.results import AddReport
from textsim_db.text.streams import ahead
from textsim_db.write import write_batch
from textsim_db.write.document_inputs import Key
from textsim_db.write.key_set import SeenKeys
from textsim_db.write.prepared_batch import (
    BATCH_DOCUMENTS,
    Batch,
    in_batches,
    possible_key,
    prepare,
    without_words,
)

log = logging.getLogger(__name__)

QUEUE_FROM = 2
"""The repetition from which writers of the same keys wait for each other instead of colliding."""
BULK_DOCUMENTS = 1000
"""A first batch of so many documents into an empty corpus is written without the band index."""
BULK_SECONDS = 10.0
"""A stream that keeps a load waiting so long for a batch is no bulk load."""
SETTLE_DOCUMENTS = 10_000
SETTLE_SHARE = 0.2
"""A load of so many documents, and of this share of the corpus, is followed by a VACUUM."""
ANALYZE_DOCUMENTS = 100
"""A load of so many documents into a corpus that has no statistics yet is followed by ANALYZE."""

VACUUM_DOCUMENTS: LiteralString = """
/* textsim-db: vacuum corpus {id} after a load */ VACUUM (ANALYZE, SKIP_LOCKED) {document}
"""
VACUUM_BANDS: LiteralString = """
/* textsim-db: vacuum corpus {id} after a load */ VACUUM (ANALYZE, SKIP_LOCKED) {band}
"""
_ANALYZE: LiteralString = """
/* textsim-db: analyze corpus {id} after a load */ ANALYZE (SKIP_LOCKED) {document}, {band}
"""

Progress = Callable[[AddReport], None]
Result = TypeVar("Result")

_ESTIMATED_DOCUMENTS = """
SELECT reltuples FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass({document_name})
"""
QUEUE = """
/* textsim-db: wait for other writers of the corpus */
SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('textsim-db writers'), %s::integer)
"""


def add_many(
    store: Store,
    documents: Iterable[Any],
    progress: Progress | None = None,
) -> AddReport:
    """Add or replace documents, given as (key, text); see Corpus.add_many."""
    report = AddReport()
    seen = SeenKeys()
    with (
        closing(
            ahead(in_batches(documents), partial(prepare, config=store.corpus.config))
        ) as prepared,
        closing(ahead(prepared, partial(with_word_ids, store=store))) as resolved,
        ThreadPoolExecutor(1) as executor,
        _BandIndex(store) as index,
    ):
        for batch in resolved:
            index.expect(len(batch.keys))
            outcome = _write(store, batch)
            report.refused += batch.refused
            # A key that an earlier batch of this call has written is a duplicate, not replaced.
            again = seen.meet(batch.keys)
            report.added += int(np.count_nonzero(outcome == write_batch.ADDED))
            report.replaced += int(np.count_nonzero((outcome == write_batch.REPLACED) & ~again))
            same = (outcome == write_batch.UNCHANGED) | (outcome == write_batch.COMPLETED)
            report.unchanged += int(np.count_nonzero(same & ~again))
            again &= outcome != write_batch.ADDED
            report.duplicates += int(np.count_nonzero(again))
            report.duplicates += batch.duplicates
            log.debug(
                "corpus %s: stored a batch of %s documents",
                *(store.corpus.name, len(batch.keys)),
                extra={"corpus": store.corpus.name, "documents": len(batch.keys)},
            )
            if progress is not None:
                progress(report)
        # The documents are settled while the index on their band rows is built.
        apart = executor.submit(settle, store, report.added, [VACUUM_DOCUMENTS])
    apart.result()
    settle(store, report.added, [VACUUM_BANDS])
    return report


class _BandIndex:
    """Builds the index on the band rows after a bulk load into an empty corpus, not during it.

    Sorted at once it costs a third. Where the process dies in between, the first search or the next
    load builds it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bulk: bool | None = None
        self._dropped = False
        self._last = time.monotonic()

    def expect(self, documents: int) -> None:
        """Get ready for a batch."""
        waited = time.monotonic() - self._last
        if self._bulk is None:
            self._bulk = documents >= BULK_DOCUMENTS
            self._dropped = self._bulk and drop_band_index(self._store.engine, self._store.corpus)
        elif self._dropped and waited > BULK_SECONDS:
            self._build()
        self._last = time.monotonic()

    def __enter__(self) -> _BandIndex:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and self._dropped:
            with suppress(psycopg.Error):
                self._build()
        elif self._bulk:  # also where another load died
            self._build()

    def _build(self) -> None:
        build_band_index(self._store.engine, self._store.corpus)
        self._dropped = False


def remove(store: Store, keys: Iterable[Key]) -> int:
    """Remove documents by key and return how many there were; unknown keys are skipped."""
    removed = 0
    possible = (stored for key in keys if (stored := possible_key(key)) is not None)
    for some in _chunks(possible, BATCH_DOCUMENTS):
        removed += _remove(store, sorted(set(some)))
    return removed


def _write(store: Store, batch: Batch) -> npt.NDArray[np.int8]:
    def write(part: slice) -> npt.NDArray[np.int8]:
        some = batch if len(batch.keys) == part.stop - part.start else _part(batch, part)
        return with_retries(
            store,
            partial(write_batch.write, corpus=store.corpus, batch=some),
            # What is now as it should be was made so by the transaction whose end is not known.
            lambda before, now: np.where(now == write_batch.UNCHANGED, before, now),
        )

    return np.concatenate(in_parts(store.engine, batch.keys, write))


def _part(batch: Batch, part: slice) -> Batch:
    """Return some of the documents of a batch."""
    made, tokens = batch.sketches, batch.sketches.tokens
    bounds = slice(part.start, part.stop + 1)
    offsets = tokens.word_offsets[bounds]
    words = slice(int(offsets[0]), int(offsets[-1]))
    return replace(
        batch,
        keys=batch.keys[part],
        texts=batch.texts[part],
        sketches=replace(
            made,
            tokens=replace(
                tokens,
                normal_offsets=tokens.normal_offsets[bounds],
                starts=tokens.starts[words],
                ends=tokens.ends[words],
                word_offsets=offsets - offsets[0],
            ),
            shingle_counts=made.shingle_counts[part],
            signatures=made.signatures[part],
            buckets=made.buckets[part],
        ),
        languages=batch.languages and batch.languages[part],
        word_ids=batch.word_ids[words],
    )


def _remove(store: Store, keys: list[str]) -> int:
    def remove(part: slice) -> int:
        run = partial(write_batch.remove, corpus=store.corpus, keys=keys[part])
        return with_retries(store, run, max)

    return sum(in_parts(store.engine, keys, remove))


def with_word_ids(batch: Batch, store: Store) -> Batch:
    """Give a batch its word ids, adding to the dictionary what is missing."""
    word_ids = store.dictionary.ensure(batch.sketches.tokens)
    hidden = np.flatnonzero(word_ids == 0)
    if len(hidden):
        return with_word_ids(without_words(batch, hidden, store.corpus.config), store)
    return replace(batch, word_ids=word_ids)


def with_retries(
    store: Store,
    write: Callable[[psycopg.Cursor[Any]], Result],
    merge: Callable[[Result, Result], Result],
) -> Result:
    """Run a transaction, again where another one was in its way or the connection was lost.

    merge(before, now) gives the result where the connection was lost during COMMIT, so that nobody
    knows whether that was done, and the transaction was repeated.
    """
    before: list[Result] = []

    def run(attempt: int) -> Result:
        results: list[Result] = []
        try:
            with transaction(store.engine) as connection:
                cursor = connection.cursor(binary=True)
                if attempt >= QUEUE_FROM:
                    cursor.execute(QUEUE, [store.corpus.id])
                results.append(write(cursor))
        except psycopg.Error as error:
            if is_lost(error):
                before.extend(results)
            raise
        return reduce(merge, before + results)

    return repeated(run)


def settle(
    store: Store,
    added: int,
    tables: Sequence[LiteralString] = (VACUUM_DOCUMENTS, VACUUM_BANDS),
) -> None:
    """After a large load, do at once what autovacuum would do within minutes.

    Until the new pages are known to be visible to all, each band row of a look-up costs a page of
    the table, and without statistics the plans are guesses: a view of candidate pairs compares all
    documents with each other then. Nothing depends on it: a role that does not own the tables is only
    warned by the server, and a failure is left to autovacuum.
    """
    if added < ANALYZE_DOCUMENTS:
        return
    with suppress(psycopg.Error), autocommit(store.engine) as connection:
        row = connection.execute(store.corpus.statement(_ESTIMATED_DOCUMENTS)).fetchone()
        if added < SETTLE_DOCUMENTS:
            if row is not None and row[0] < 0 and VACUUM_BANDS in tables:
                connection.execute(store.corpus.statement(_ANALYZE))
        elif row is None or row[0] < added / SETTLE_SHARE:
            log.info(
                "vacuum of corpus %s after a load",
                store.corpus.name,
                extra={"corpus": store.corpus.name},
            )
            for table in tables:
                connection.execute(store.corpus.statement(table))


def _chunks(items: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
