"""Loads documents in batches; a batch is one transaction, so it is stored completely or not at all.

The stages:

    (key, text) -> batches -> prepare: checks, words, signatures, buckets
                -> word ids -> write_batch (COPY of documents and band rows) -> report

While one batch is being written, one thread looks up the words of the next batch, and another thread
prepares the batch after it. Both kernels and waiting for the server release the GIL. A load needs
memory for these three batches, for the word cache, and 16 to 32 bytes for each key.

A bulk load into an empty corpus drops the band index before, and builds it afterwards.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial, reduce
from itertools import chain
from types import TracebackType
from typing import Any

import numpy as np
import psycopg

from textsim_db.base.numba_compiler import BoolArray, HashArray, kernel
from textsim_db.base.run_ahead import ahead, in_batches
from textsim_db.db.dictionary import dictionary_of
from textsim_db.db.engine import transaction
from textsim_db.db.retries import WriterAttempts
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import build_band_index, drop_band_index
from textsim_db.errors import DocumentError
from textsim_db.read.statements import REJECTIONS
from textsim_db.results import AddReport, Answer, Match, Outcome, Twin
from textsim_db.text.hashing import SPREAD, HashTable, enter, find, is_taken, table_of, with_room
from textsim_db.text.storable import Key
from textsim_db.write import write_batch
from textsim_db.write.prepare_batches import (
    ADDED,
    EXTENDED,
    REPLACED,
    TWIN,
    UNCHANGED,
    Batch,
    StoredByKey,
    prepare,
    slice_of,
    without_words,
)
from textsim_db.write.vacuum_loads import TABLES, VacuumDuringLoad, settle
from textsim_db.write.write_batch import Written

log = logging.getLogger(__name__)


class KeySet:
    """The keys that a call has written so far, by Python's own hash.

    Two different keys have the same hash with a probability of 2^-64. Then a report would count one of
    them as a repeated key.
    """

    def __init__(self) -> None:
        self._table = table_of(np.empty(1 << 13, np.uint64), 0, SPREAD)
        self._count = 0

    def meet(self, keys: Iterable[str]) -> BoolArray:
        """Add distinct keys, and return which of them the set already had: bool of shape (keys,)."""
        hashes = np.fromiter(map(hash, keys), np.int64).view(np.uint64)
        self._table = with_room(self._table, self._count, len(hashes))
        were_there = _enter_all(self._table, hashes, self._count)
        self._count += int(np.count_nonzero(~were_there))
        return were_there


@kernel
def _enter_all(table: HashTable, hashes: HashArray, count: int) -> BoolArray:
    """Enter hashes, numbered from count, and return which of them the table already had."""
    were_there = np.zeros(len(hashes), np.bool_)
    for i in range(len(hashes)):
        slot = find(table, hashes[i])
        were_there[i] = is_taken(table, slot)
        if not were_there[i]:
            enter(table, slot, count)
            table.hashes[count] = hashes[i]
            count += 1
    return were_there


BULK_DOCUMENTS = 1000
"""If the first batch has at least this many documents, the load is a bulk load."""
BULK_SECONDS = 10.0
"""If a load waits longer than this for its next batch, the index is built at once."""


class DeferredIndex:
    """Builds the band index after a bulk load into an empty corpus instead of during the load.

    Sorting all rows at once takes a third of the time. If the process dies before the index is built,
    the first search or the next load builds it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_bulk: bool | None = None
        self.is_dropped = False
        """Whether the corpus was empty when the load began, and has no index now."""
        self._last_batch = time.monotonic()

    def expect(self, documents: int) -> None:
        """Drop or build the index before a batch of this many documents, if that is due."""
        waited = time.monotonic() - self._last_batch
        if self._is_bulk is None:
            # A unique corpus looks up every document that it adds.
            is_looked_up = self._store.corpus.config.is_unique
            self._is_bulk = documents >= BULK_DOCUMENTS and not is_looked_up
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
        elif self._is_bulk:  # even if we did not drop the index: an earlier load may have died
            self._build()

    def _build(self) -> None:
        build_band_index(self._store.engine, self._store.corpus)
        self.is_dropped = False


_MOST_NAMED = 5
"""The most repeated keys that a report names."""


def add_many(
    store: Store,
    documents: Iterable[Any],
    progress: Callable[[AddReport], None] | None = None,
    unique_from: float = 0,
) -> AddReport:
    """Add or replace documents, given as (key, text); see Corpus.add_many."""
    report = AddReport()
    written_keys = KeySet()
    with (
        ready_batches(store, documents) as batches,
        ThreadPoolExecutor(1) as executor,
        DeferredIndex(store) as index,
        VacuumDuringLoad(store, executor) as vacuum,
    ):
        for batch in batches:
            index.expect(len(batch.keys))
            again = written_keys.meet(batch.keys)
            are_new = index.is_dropped and not again.any()
            written = write_or_retry(store, batch, are_new, unique_from)
            _count(report, batch, written, again)
            if index.is_dropped:
                vacuum.after(report.added)
            log.debug(
                "corpus %s: stored a batch of %s documents",
                *(store.corpus.name, len(batch.keys)),
                extra={"corpus": store.corpus.name, "documents": len(batch.keys)},
            )
            if progress is not None:
                progress(report)
        # The documents are vacuumed while the index on their band rows is built.
        settled = executor.submit(copy_context().run, settle, store, report.added, TABLES[:1])
    settled.result()
    settle(store, report.added, TABLES[1:])
    return report


def add(
    store: Store,
    key: Key,
    text: str,
    scope: str | None,
    unique_from: float,
    tells_near_misses: bool = False,
) -> tuple[AddReport, Answer]:
    """Add or replace a document, and return what became of it, with its twins.

    unique_from: the similarity of twins, if it is above that of the corpus. tells_near_misses: whether
    the answer has also the matches beside which the document is stored. Raises DocumentError if the
    document cannot be stored.
    """
    batch = with_word_ids(prepare([(key, text, scope)], store.corpus.config), store)
    if batch.refused:
        raise DocumentError(f'document "{batch.refused[0].key}": {batch.refused[0].reason}')
    report = AddReport()
    written = write_or_retry(
        store, batch, unique_from=unique_from, tells_near_misses=tells_near_misses
    )
    _count(report, batch, written, np.zeros(1, np.bool_))
    if written.twins:
        return report, _kept_out(store, written.twins[0].matches)
    if report.unchanged:
        return report, Answer(Outcome.UNCHANGED, [])
    near_misses = written.near_misses
    outcome = near_misses[0][0] if near_misses else Outcome.NEW
    return report, Answer(outcome, [match for _, match in near_misses])


def _kept_out(store: Store, matches: list[Match]) -> Answer:
    """Return the answer for a document that these matches keep out; the rejected ones come first."""
    reasons = dict(store.read(REJECTIONS, [[match.key for match in matches]]))
    ordered = sorted(matches, key=lambda match: match.key not in reasons)
    reason = reasons.get(ordered[0].key)
    return Answer(Outcome.TWIN if reason is None else Outcome.REJECTED, ordered, reason)


def with_word_ids(batch: Batch, store: Store) -> Batch:
    """Return a batch with its word ids; words that are missing in the dictionary are added to it.

    A corpus of characters has no dictionary.
    """
    word_ids = dictionary_of(store).ensure(batch.sketches.tokens)
    if word_ids is None:
        return batch
    hidden = np.flatnonzero(word_ids == 0)
    if len(hidden):
        return with_word_ids(without_words(batch, hidden, store.corpus.config), store)
    return replace(batch, word_ids=word_ids)


@contextmanager
def ready_batches(
    store: Store, documents: Iterable[Any]
) -> Generator[Generator[Batch, None, None], None, None]:
    """Lend the batches with their word ids; later batches are computed while one is written."""
    to_batch = partial(prepare, config=store.corpus.config)
    with (
        closing(ahead(in_batches(documents), to_batch)) as prepared,
        closing(ahead(prepared, partial(with_word_ids, store=store))) as ready,
    ):
        yield ready


def _count(report: AddReport, batch: Batch, written: Written, again: BoolArray) -> None:
    """Add the outcomes of a batch to a report.

    again: (documents,), whether an earlier batch of this call wrote the key. Then the document counts
    as a repeated key, not as replaced.
    """
    outcome = written.outcomes
    is_added, is_replaced, is_twin = (outcome == o for o in (ADDED, REPLACED, TWIN))
    is_unchanged = ~(is_added | is_replaced | is_twin)
    report.added += int(np.count_nonzero(is_added))
    report.replaced += int(np.count_nonzero(is_replaced & ~again))
    report.unchanged += int(np.count_nonzero(is_unchanged & ~again))
    places = np.flatnonzero(again & (is_replaced | is_unchanged)).tolist()
    report.repeated_keys += len(batch.repeated_keys) + len(places)
    for key in chain(batch.repeated_keys, (batch.keys[place] for place in places)):
        if len(report.some_repeated) == _MOST_NAMED:
            break
        if key not in report.some_repeated:
            report.some_repeated.append(key)
    report.without_words += batch.count_without_words()
    report.refused += batch.refused
    for place, matches in written.twins:
        report.twins.append(Twin(batch.keys[place], matches[0].key, matches[0].similarity))


def write_or_retry(
    store: Store,
    batch: Batch,
    are_new: bool = False,
    unique_from: float = 0,
    tells_near_misses: bool = False,
) -> Written:
    """Write a batch, in halves if it exceeds the server's time limit; return the outcomes.

    are_new: the keys are probably new, so the first attempt does not look them up. If another session
    has added one of them, the server reports a unique violation, and the next attempt looks them up.
    unique_from: the similarity of twins, if it is above that of the corpus. tells_near_misses: whether
    to return the near misses of a batch of one document.
    """
    written = Written(np.empty(len(batch.keys), np.int8), [])
    for attempt in WriterAttempts(store.engine, store.corpus.id, batch.keys):
        own = slice_of(batch, attempt.slice)
        locked: StoredByKey | None = {} if are_new and not attempt.failures else None
        with attempt:
            with transaction(store.engine) as connection:
                cursor = connection.cursor(binary=True)
                attempt.queue(connection)
                result = write_batch.write(
                    cursor, store, own, locked=locked, unique_from=unique_from
                )
                if tells_near_misses and not result.twins:
                    near = write_batch.near_misses(cursor, store.corpus, own.keys[0], unique_from)
                    result = result._replace(near_misses=near)
                attempt.results.append(result)
            outcomes, twins, near_misses = reduce(_outcomes_of_both, attempt.results)
            written.outcomes[attempt.slice] = outcomes
            written.twins.extend(
                twin._replace(place=twin.place + attempt.slice.start) for twin in twins
            )
            written = written._replace(near_misses=near_misses)
    return written


def _outcomes_of_both(before: Written, now: Written) -> Written:
    """Return the outcomes of a batch that was attempted twice.

    If the second attempt finds a document unchanged, the first attempt was committed, or the document
    was unchanged then too. So the first outcome is right, except that of a twin.
    """
    is_same = np.isin(now.outcomes, (UNCHANGED, EXTENDED))
    is_first = is_same & (before.outcomes != TWIN)
    return Written(np.where(is_first, before.outcomes, now.outcomes), now.twins, now.near_misses)
