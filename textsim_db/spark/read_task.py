"""A task of read(): it reads the documents of its ranges of ids, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from textsim_db.db.engine import read_rows
from textsim_db.db.store import Store
from textsim_db.errors import CorpusChanged
from textsim_db.read.stored_documents import normal_forms
from textsim_db.spark import statements
from textsim_db.spark.packed_rows import record_batch
from textsim_db.spark.task_store import Target

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
    """Yield the documents with ids above one id, up to another."""
    statement = store.corpus.statement(statements.PAGE_OF_DOCUMENTS)
    while after < last:
        rows = read_rows(store.engine, statement, [after, last, PAGE], binary=True)
        if rows:
            yield _batch(store, rows)
        after = last if len(rows) < PAGE else rows[-1][0]


def _batch(store: Store, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    _, keys, languages, scopes, counts, word_ids, waiting = zip(*rows, strict=True)
    forms = normal_forms(word_ids, waiting, store.dictionary)
    return record_batch((keys, languages, scopes, counts, forms), _DOCUMENTS)
