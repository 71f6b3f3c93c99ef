"""A task of write(): it stores the documents of its partition, in batches.

Spark may run a task again, or twice at the same time. A batch is one transaction with its documents
and their band rows, and the keys of documents are unique. So a task that runs again finds what is
stored, and adds what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from textsim_db.db.engine import read_rows
from textsim_db.db.store import Store
from textsim_db.results import AddReport
from textsim_db.spark.columns import accept
from textsim_db.spark.packed_rows import record_batch
from textsim_db.spark.read_corpus import Target
from textsim_db.write import statements
from textsim_db.write.input_batches import in_batches
from textsim_db.write.load_batches import ready_batches, write_or_retry
from textsim_db.write.prepare_batches import ADDED, REPLACED

RecordBatches = Iterator[pa.RecordBatch]
WriteTask = Callable[[RecordBatches], RecordBatches]
AcceptedDocument = tuple[str, str, str | None]
"""The key, the text and the scope; the scope is None if the corpus is not scoped."""

OUTPUT = (
    "refused string, reason string, added long, replaced long, unchanged long, without_words long"
)
"""The columns that a task returns: a row for each refused document, and a row of counts."""
_OUTPUT = pa.schema(
    [
        *((name, pa.string()) for name in ("refused", "reason")),
        *((name, pa.int64()) for name in ("added", "replaced", "unchanged", "without_words")),
    ]
)


def task_into_hidden(target: Target, is_resumed: bool) -> WriteTask:
    """Return the task that fills a hidden corpus, which only this call of write() fills.

    It skips documents that an earlier attempt has stored. is_resumed: an earlier call of write() may
    have stored documents too.
    """

    def write_partition(batches: RecordBatches) -> RecordBatches:
        report = AddReport()
        with target.opened() as store:
            documents = _documents(store, batches, report)
            is_first = not is_resumed and _attempt() == 0
            if not is_first:
                documents = _missing(store, documents, report)
            _add(store, documents, report, are_new=is_first)
        # If another attempt stored a document first, the document is unchanged, and still new.
        yield _rows(AddReport(report.stored, refused=report.refused))

    return write_partition


def task_into_existing(target: Target) -> WriteTask:
    """Return the task that adds or replaces documents of a corpus that others may use meanwhile."""

    def write_partition(batches: RecordBatches) -> RecordBatches:
        report = AddReport()
        with target.opened() as store:
            _add(store, _documents(store, batches, report), report, are_new=False)
        yield _rows(report)

    return write_partition


def _attempt() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


def _add(
    store: Store, documents: Iterable[AcceptedDocument], report: AddReport, are_new: bool
) -> None:
    with ready_batches(store, documents) as batches:
        for batch in batches:
            outcome = write_or_retry(store, batch, are_new).outcomes
            added, replaced = (int(np.count_nonzero(outcome == kind)) for kind in (ADDED, REPLACED))
            report.added += added
            report.replaced += replaced
            report.unchanged += len(outcome) - added - replaced
            report.without_words += batch.count_without_words()
            report.refused += batch.refused


def _documents(
    store: Store, batches: RecordBatches, report: AddReport
) -> Iterator[AcceptedDocument]:
    """Yield the documents of rows (key, text, scope), and report the rows that are refused."""
    for batch in batches:
        _, keys, texts, scopes, refused = accept(batch, store.corpus.config.scoped)
        report.refused += refused
        for key, text, scope in zip(keys, texts, scopes or repeat(None), strict=False):
            yield key.decode(), text.decode(), scope


def _missing(
    store: Store, documents: Iterator[AcceptedDocument], report: AddReport
) -> Iterator[AcceptedDocument]:
    """Yield the documents whose keys are not stored, and count the other documents."""
    statement = store.corpus.statement(statements.STORED_KEYS)
    for piece in in_batches(documents):
        keys = [key for key, *_ in piece]
        stored = {key for (key,) in read_rows(store.engine, statement, [keys])}
        report.unchanged += len(stored)
        yield from (document for document in piece if document[0] not in stored)


def _rows(report: AddReport) -> pa.RecordBatch:
    rows: list[tuple[Any, ...]] = [
        (refusal.key, refusal.reason, 0, 0, 0, 0) for refusal in report.refused
    ]
    counts = report.added, report.replaced, report.unchanged, report.without_words
    rows.append((None, None, *counts))
    return record_batch(zip(*rows, strict=True), _OUTPUT)
