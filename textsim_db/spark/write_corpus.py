"""Writes the documents of a DataFrame into a corpus of PostgreSQL, which it creates if there is none.

Tasks write with the transactions of add_many(): a batch is one transaction with its documents and their
band rows, and the keys of documents are unique. So a task that Spark runs again, or twice at the same
time, stores no document twice, and a call that failed can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from sqlalchemy import Engine

from textsim_db.corpus.database import connect
from textsim_db.db import stored_corpus
from textsim_db.db.dictionary import Dictionaries
from textsim_db.db.engine import database_errors
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import ConfigurationError, CorpusNotFound, suggest_settings
from textsim_db.results import AddReport, Refusal
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import (
    SETTINGS,
    CorpusConfig,
    CorpusSettings,
    learns_common,
)
from textsim_db.spark.columns import FrameColumns, accept
from textsim_db.spark.packed_rows import record_batch
from textsim_db.spark.pair_frames import check_keys
from textsim_db.spark.read_corpus import Target
from textsim_db.spark.stage_1_buckets import sample_of
from textsim_db.text.stop_words import with_lists
from textsim_db.write.learn_from_sample import learn_from_load
from textsim_db.write.load_batches import (
    BULK_DOCUMENTS,
    DeferredIndex,
    ready_batches,
    write_or_retry,
)
from textsim_db.write.prepare_batches import ADDED, REPLACED
from textsim_db.write.temporary_corpora import check_not_reserved
from textsim_db.write.vacuum_loads import settle

WRITING_TASKS = 32
"""Tasks that write at once. Each needs two connections; a server has 100 by default."""
MAX_WRITING_TASKS = 10_000


@suggest_settings(*SETTINGS)
def write(
    df: DataFrame,
    url: str | None,
    corpus: str,
    key: str = "id",
    text: str = "text",
    *,
    scope: str | None = None,
    writers: int = WRITING_TASKS,
    **settings: Any,
) -> AddReport:
    """Write the documents of a DataFrame into a corpus, with the result of Corpus.add_many().

    If there is no corpus of this name, it is created. Documents go into it in transactions of up to
    5,000 documents, and documents with stored keys are replaced. If the call fails or is killed, call it
    again: documents that are stored are unchanged.

    Args:
        df: the documents. Spark may compute it several times, so it must have the same rows each time.
        url: the address of the database, for the driver and for all executors. A password may stand in
            the file that PGPASSFILE names on each of them, instead of the address. None takes
            TEXTSIM_DATABASE_URL or the embedded PostgreSQL, which only executors of this machine reach.
        corpus: the name of the corpus.
        key: the column of the keys: strings or whole numbers.
        text: the column of the texts.
        scope: the column of the scopes, if the corpus is scoped. Its values become text.
        writers: the tasks that write at once. Each has two connections to the server.
        settings: the settings of a new corpus, as in Database.create_corpus(). An existing corpus must
            have the same settings, unless none are given.

    Raises:
        ConfigurationError: a column is missing or has another type, two rows have the same key, a
            setting is out of range, or a scope is given and the corpus is not scoped.
        CorpusExists: the corpus exists with other settings.
    """
    check_not_reserved(corpus)
    stored_corpus.check_name(corpus)
    check_count(writers, "writers", 1, MAX_WRITING_TASKS)
    columns = FrameColumns(key, text, scope)
    columns.check(df)
    documents = df.select(*columns.documents())
    with connect(url) as database, database_errors():
        existing, config = _target(database.engine, corpus, settings)
        config.check_scope(corpus, scope is not None)
        check_keys(documents.dropna(subset=["key"]), key)
        stored = existing or stored_corpus.create(database.engine, corpus, config)
        store = Store(database.engine, Dictionaries(database.engine), stored)
        learned, _ = learn_from_load(store, _first_documents(store, documents))
        if learned is not None:
            store = Store(store.engine, store.dictionaries, learned)
        with DeferredIndex(store) as index:
            index.expect(BULK_DOCUMENTS)
            task = task_of(Target(database.url, corpus), is_first=index.is_dropped)
            report = _run(documents.coalesce(writers), task)
        settle(store, report.added)
    return report


def _target(
    engine: Engine, name: str, settings: dict[str, Any]
) -> tuple[StoredCorpus | None, CorpusConfig]:
    """Return the corpus of this name if it exists, and the configuration to write with."""
    wanted = with_lists(CorpusSettings(**settings))
    try:
        existing = stored_corpus.load(engine, name)
    except CorpusNotFound:
        existing = None
    if existing is not None and settings:
        wanted.check_same(name, existing.config)
    config = wanted.complete() if existing is None else existing.config
    if config.is_unique:
        raise ConfigurationError(
            f'corpus "{name}" is unique, and write() keeps no near-duplicates out: add the documents '
            "with Corpus.add_many()"
        )
    return existing, config


def _first_documents(store: Store, documents: DataFrame) -> Iterator[tuple[str, ...]]:
    """Yield documents from which the corpus learns its common shingles, if it learns any."""
    if learns_common(store.corpus.config):
        scope = ["scope"] if store.corpus.config.scoped else []
        sample = sample_of(documents.dropna(subset=["key", "text", *scope]), *scope)
        yield from map(tuple, sample.toLocalIterator())


def _run(documents: DataFrame, task: WriteTask) -> AddReport:
    report = AddReport()
    for row in documents.mapInArrow(task, OUTPUT).collect():
        if row["reason"] is not None:
            report.refused.append(Refusal(row["refused"], row["reason"]))
        report.added += row["added"]
        report.replaced += row["replaced"]
        report.unchanged += row["unchanged"]
        report.without_words += row["without_words"]
    report.refused.sort()
    return report


RecordBatches = Iterator[pa.RecordBatch]
WriteTask = Callable[[RecordBatches], RecordBatches]

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


def task_of(target: Target, is_first: bool) -> WriteTask:
    """Return the task that stores the documents of a partition; is_first: the corpus was empty."""

    def write_partition(batches: RecordBatches) -> RecordBatches:
        report = AddReport()
        with target.opened() as store:
            _add(store, batches, report, are_new=is_first and _attempt() == 0)
        if is_first:  # an earlier attempt may have stored documents that are unchanged now
            report.added, report.unchanged = report.added + report.unchanged, 0
        yield _rows(report)

    return write_partition


def _attempt() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


def _add(store: Store, batches: RecordBatches, report: AddReport, are_new: bool) -> None:
    with ready_batches(store, _documents(store, batches, report)) as ready:
        for batch in ready:
            outcome = write_or_retry(store, batch, are_new).outcomes
            added, replaced = (int(np.count_nonzero(outcome == kind)) for kind in (ADDED, REPLACED))
            report.added += added
            report.replaced += replaced
            report.unchanged += len(outcome) - added - replaced
            report.without_words += batch.count_without_words()
            report.refused += batch.refused


def _documents(
    store: Store, batches: RecordBatches, report: AddReport
) -> Iterator[tuple[str, str, str | None]]:
    """Yield the documents of rows (key, text, scope), and report the rows that are refused."""
    for batch in batches:
        _, keys, texts, scopes, refused = accept(batch, store.corpus.config.scoped)
        report.refused += refused
        for key, text, scope in zip(keys, texts, scopes or repeat(None), strict=False):
            yield key.decode(), text.decode(), scope


def _rows(report: AddReport) -> pa.RecordBatch:
    rows: list[tuple[Any, ...]] = [
        (refusal.key, refusal.reason, 0, 0, 0, 0) for refusal in report.refused
    ]
    counts = report.added, report.replaced, report.unchanged, report.without_words
    rows.append((None, None, *counts))
    return record_batch(zip(*rows, strict=True), _OUTPUT)
