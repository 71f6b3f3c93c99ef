"""Reads the documents of a corpus of PostgreSQL as a DataFrame; tasks read ranges of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from textsim_db.database import connect
from textsim_db.db import stored_corpus
from textsim_db.db.binary_rows import load_int4_arrays
from textsim_db.db.engine import autocommit, database_errors
from textsim_db.db.store import Store
from textsim_db.errors import CorpusChanged
from textsim_db.read.stored_documents import normal_forms
from textsim_db.settings import check_count
from textsim_db.spark import statements
from textsim_db.spark.task_store import Target

IDS_OF_PARTITION = 50_000
"""Ids of a partition. More need fewer tasks, and a task that fails repeats more."""
MAX_PARTITIONS = 100_000
PAGE = 1000
"""Documents that one statement reads."""

DOCUMENTS = "key string, language string, shingle_count int, normal_form string"
_DOCUMENTS = pa.schema(
    [
        *(("key", pa.string()), ("language", pa.string())),
        *(("shingle_count", pa.int32()), ("normal_form", pa.string())),
    ]
)

Arrow = Iterator[pa.RecordBatch]


def read(
    spark: SparkSession, url: str | None, corpus: str, partitions: int | None = None
) -> DataFrame:
    """Return the documents of a corpus as a DataFrame, which executors read from the server.

    The columns are `key`, `language` (null if the corpus does not identify languages),
    `shingle_count`, and `normal_form`, the words of the text joined by spaces. The functions of this
    package accept the normal form as a text.

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
        with autocommit(database.engine) as connection:
            row = connection.execute(stored.statement(statements.HIGHEST_ID)).fetchone()
        address = database.url
    highest = 0 if row is None else int(row[0])
    count = min(-(-highest // IDS_OF_PARTITION) or 1, MAX_PARTITIONS)
    if partitions is not None:
        count = check_count(partitions, "partitions", 1, MAX_PARTITIONS)
    task = task_of_ranges(Target(address, corpus), stored.id, -(-highest // count))
    return spark.range(0, count, 1, count).mapInArrow(task, DOCUMENTS)


def task_of_ranges(target: Target, number: int, length: int) -> Callable[[Arrow], Arrow]:
    """Return the task that reads ranges of ids; it gets their numbers.

    number: that of the corpus, because a rebuild gives documents new ids. length: ids of a range.
    """

    def read_partition(batches: Arrow) -> Arrow:
        ranges = [value for batch in batches for value in batch.column(0).to_pylist()]
        with target.opened() as store:
            if store.corpus.id != number:
                raise CorpusChanged(
                    f'corpus "{target.corpus}" was rebuilt since read() was called; call it again'
                )
            for value in ranges:
                yield from _pages(store, value * length, (value + 1) * length)

    return read_partition


def _pages(store: Store, after: int, last: int) -> Arrow:
    """Yield the documents with ids above one id, up to another."""
    statement = store.corpus.statement(statements.PAGE_OF_DOCUMENTS)
    while after < last:
        with autocommit(store.engine) as connection:
            cursor = connection.cursor(binary=True)
            rows = cursor.execute(statement, [after, last, PAGE]).fetchall()
        if rows:
            yield _batch(store, rows)
        after = last if len(rows) < PAGE else rows[-1][0]


def _batch(store: Store, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    _, keys, languages, counts, word_ids, waiting = zip(*rows, strict=True)
    forms = normal_forms(*load_int4_arrays([ids or b"" for ids in word_ids]), store.dictionary)
    shown = [form if text is None else text for form, text in zip(forms, waiting, strict=True)]
    columns = (keys, languages, counts, shown)
    arrays = [pa.array(list(c), field.type) for c, field in zip(columns, _DOCUMENTS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_DOCUMENTS)
