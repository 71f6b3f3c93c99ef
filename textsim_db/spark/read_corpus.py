"""Reads the documents of a corpus of PostgreSQL as a DataFrame; tasks read ranges of ids."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, LiteralString

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Engine

from textsim_db.corpus.database import connect
from textsim_db.db import stored_corpus
from textsim_db.db.dictionary import Dictionaries
from textsim_db.db.engine import database_errors, open_engine, read_rows
from textsim_db.db.store import Store
from textsim_db.errors import CorpusChanged
from textsim_db.read.statements import HIGHEST_ID
from textsim_db.read.stored_documents import normal_forms
from textsim_db.settings.check_values import check_count
from textsim_db.spark.packed_rows import record_batch

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
    """The name of the corpus."""
    call: str = field(default_factory=lambda: secrets.token_hex(8))
    """Tells this call from the other calls."""

    @contextmanager
    def opened(self) -> Generator[Store, None, None]:
        """Lend the store of the corpus, and close its connections afterwards.

        Spark runs many tasks in one process. They share the cache of the dictionary.
        """
        engine, dictionaries = _of_call(self.address, self.call)
        try:
            with database_errors():
                yield Store(engine, dictionaries, stored_corpus.load(engine, self.corpus))
        finally:
            engine.dispose()


# Another call opens another cache: the database of an address may have been created again meanwhile.
@lru_cache(maxsize=1)
def _of_call(address: str, call: str) -> tuple[Engine, Dictionaries]:
    engine = open_engine(address, SPARK_APPLICATION_NAME)
    return engine, Dictionaries(engine)


PAGE = 1000
"""Documents that one statement reads."""

DOCUMENTS = "key string, language string, scope string, shingle_count int, normal_form string"
_DOCUMENTS = pa.schema(
    [
        *((name, pa.string()) for name in ("key", "language", "scope")),
        *(("shingle_count", pa.int32()), ("normal_form", pa.string())),
    ]
)

RecordBatches = Iterator[pa.RecordBatch]


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
    forms = normal_forms(word_ids, waiting, store.dictionary)
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
