"""Corpora of PostgreSQL from and to DataFrames; write() creates a corpus that does not exist.

Tasks read ranges of ids, and write with the transactions of add_many(): a batch is one transaction with
its documents and their band rows, and the keys of documents are unique. So a task that Spark runs
again, or twice at the same time, stores no document twice, and a call that failed can be repeated.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import repeat
from typing import Any, Final, LiteralString

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Engine

from textsim_db.corpus.database import connect
from textsim_db.db import stored_corpus
from textsim_db.db.dictionary import dictionary_of
from textsim_db.db.engine import database_errors, open_engine, read_rows
from textsim_db.db.store import KnownWords, Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import ConfigurationError, CorpusChanged, CorpusNotFound, suggest_settings
from textsim_db.read.statements import HIGHEST_ID
from textsim_db.read.stored_documents import normal_forms
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

RecordBatches = Iterator[pa.RecordBatch]


# A short statement for each page, so that no transaction stays open while Spark computes.
PAGE_OF_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: read corpus {id} */
SELECT id, key, language, scope, shingle_count, pg_catalog.array_send(word_ids), normal_form
FROM {document} d WHERE id > %s AND id <= %s{alive} ORDER BY id LIMIT %s
"""


SPARK_APPLICATION_NAME = "textsim-db spark"


@dataclass(frozen=True, slots=True)
class Target:
    """A corpus that the tasks of one call of write() or read() open."""

    address: str = field(repr=False)
    """The address of the database, with its password, so it is not shown."""
    corpus: str
    call: str = field(default_factory=lambda: secrets.token_hex(8))
    """Tells this call from the other calls."""

    @contextmanager
    def opened(self) -> Generator[Store, None, None]:
        """Lend the store of the corpus, and close its connections afterwards.

        Spark runs many tasks in one process. They share the cache of the dictionary.
        """
        engine, known_words = _of_call(self.address, self.call)
        try:
            with database_errors():
                yield Store(engine, known_words, stored_corpus.load(engine, self.corpus))
        finally:
            engine.dispose()


# Another call opens another cache: the database of an address may have been created again meanwhile.
@lru_cache(maxsize=1)
def _of_call(address: str, call: str) -> tuple[Engine, KnownWords]:
    engine = open_engine(address, SPARK_APPLICATION_NAME)
    return engine, KnownWords(engine)


PAGE = 1000
"""Documents that one statement reads."""

DOCUMENTS = "key string, language string, scope string, shingle_count int, normal_form string"
_DOCUMENTS = pa.schema(
    [
        *((name, pa.string()) for name in ("key", "language", "scope")),
        *(("shingle_count", pa.int32()), ("normal_form", pa.string())),
    ]
)


def task_of_ranges(
    target: Target, corpus_id: int, length: int
) -> Callable[[RecordBatches], RecordBatches]:
    """Return the task that reads ranges of ids, each of this length; it gets the numbers of the ranges.

    The task raises CorpusChanged if the corpus has another id: a rebuild gives documents new ids.
    """

    def read_partition(batches: RecordBatches) -> RecordBatches:
        ranges = [value for batch in batches for value in batch.column(0).to_pylist()]
        with target.opened() as store:
            if store.corpus.id != corpus_id:
                raise CorpusChanged(
                    f'corpus "{target.corpus}" was rebuilt since read() was called; call it again'
                )
            for value in ranges:
                yield from _pages(store, value * length, (value + 1) * length)

    return read_partition


def _pages(store: Store, after: int, last: int) -> RecordBatches:
    while after < last:
        rows = store.read(PAGE_OF_DOCUMENTS, [after, last, PAGE], binary=True)
        if rows:
            yield _batch(store, rows)
        after = last if len(rows) < PAGE else rows[-1][0]


def _batch(store: Store, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    _, keys, languages, scopes, counts, word_ids, waiting = zip(*rows, strict=True)
    forms = normal_forms(word_ids, waiting, dictionary_of(store))
    return record_batch((keys, languages, scopes, counts, forms), _DOCUMENTS)


IDS_OF_PARTITION = 50_000
"""Ids of a partition. More need fewer tasks, and a task that fails repeats more."""
MAX_PARTITIONS = 100_000


def read(
    spark: SparkSession, url: str | None, corpus: str, partitions: int | None = None
) -> DataFrame:
    """Return the documents of a corpus as a DataFrame, which executors read from the server.

    The columns are `key`, `language` (null if the corpus does not identify languages), `scope` (null if
    the corpus is not scoped), `shingle_count`, and `normal_form`, the words of the text joined by
    spaces. The functions of this package accept the normal form as a text.

    Spark reads when it computes the DataFrame, each time again. A document that changes meanwhile is in
    the old or the new state. So cache the DataFrame, or save it as a table, if others write to the
    corpus.

    Args:
        spark: the session.
        url: the address of the database, as in write().
        corpus: the name of the corpus.
        partitions: the number of partitions, ranges of ids of the same length. By default one for
            50,000 ids.

    Raises:
        CorpusNotFound: there is no corpus of this name.
        ConfigurationError: an argument is out of range.
    """
    with connect(url) as database, database_errors():
        stored = stored_corpus.load(database.engine, corpus)
        ((highest,),) = read_rows(database.engine, stored.statement(HIGHEST_ID))
        address = database.url
    count = min(-(-highest // IDS_OF_PARTITION) or 1, MAX_PARTITIONS)
    if partitions is not None:
        count = check_count(partitions, "partitions", 1, MAX_PARTITIONS)
    task = task_of_ranges(Target(address, corpus), stored.id, -(-highest // count))
    return spark.range(0, count, 1, count).mapInArrow(task, DOCUMENTS)


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
        store = Store(database.engine, KnownWords(database.engine), stored)
        learned, _ = learn_from_load(store, _first_documents(store, documents))
        if learned is not None:
            store = Store(store.engine, store.known_words, learned)
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
