"""Loads documents in batches; a batch is one transaction, so it is stored completely or not at all.

The stages:

    (key, text) -> batches -> prepare: checks, words, signatures, buckets
                -> word ids -> write_batch (COPY of documents and band rows) -> report

While one batch is being written, one thread looks up the words of the next batch, and another thread
prepares the batch after it. Both kernels and waiting for the server release the GIL. A load needs
memory for these three batches, for the word cache, and 16 to 32 bytes for each key.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from textsim_db.db.store import Store
from textsim_db.errors import DocumentError
from textsim_db.results import AddReport, Match, Twin
from textsim_db.text.array_types import BoolArray
from textsim_db.text.run_ahead import ahead
from textsim_db.write import statements
from textsim_db.write.batch_size import in_batches
from textsim_db.write.deferred_index import DeferredIndex
from textsim_db.write.detect_changes import ADDED, REPLACED, TWIN
from textsim_db.write.document_inputs import Key
from textsim_db.write.loaded_keys import KeySet
from textsim_db.write.prepare_batches import Batch, prepare, without_words
from textsim_db.write.retry_batch import write_or_retry
from textsim_db.write.vacuum_loads import VacuumDuringLoad, settle
from textsim_db.write.write_batch import Written

log = logging.getLogger(__name__)

_MOST_NAMED = 5
"""The most repeated keys that a report names."""


def add_many(
    store: Store, documents: Iterable[Any], progress: Callable[[AddReport], None] | None = None
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
            written = write_or_retry(store, batch, are_new)
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
        settled = executor.submit(
            copy_context().run, settle, store, report.added, [statements.VACUUM_DOCUMENTS]
        )
    settled.result()
    settle(store, report.added, [statements.VACUUM_BAND_ROWS])
    return report


def add(
    store: Store, key: Key, text: str, scope: str | None, force: bool, copies: bool
) -> tuple[AddReport, list[Match]]:
    """Add or replace a document, and return the matches for which a unique corpus leaves it out.

    force: only matches with the same shingles keep it out. copies: nothing does. Raises DocumentError if
    the document cannot be stored.
    """
    batch = with_word_ids(prepare([(key, text, scope)], store.corpus.config), store)
    if batch.refused:
        raise DocumentError(f'document "{batch.refused[0].key}": {batch.refused[0].reason}')
    unique_from = float("inf") if copies else 1.0 if force else 0.0
    report, written = AddReport(), write_or_retry(store, batch, unique_from=unique_from)
    _count(report, batch, written, np.zeros(1, np.bool_))
    return report, written.twins[0].matches if written.twins else []


def with_word_ids(batch: Batch, store: Store) -> Batch:
    """Return a batch with its word ids; words that are missing in the dictionary are added to it."""
    word_ids = store.dictionary.ensure(batch.sketches.tokens)
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
    report.refused += batch.refused
    for place, matches in written.twins:
        report.twins.append(Twin(batch.keys[place], matches[0].key, matches[0].similarity))
