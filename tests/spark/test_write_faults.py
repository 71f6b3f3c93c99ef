"""write(): tasks that run again, calls that die, and rows that are refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import textsim_db as ts
from tests.support.rebuilds import stored_rows
from tests.support.waiting import wait_for
from textsim_db.base.run_ahead import BATCH_DOCUMENTS
from textsim_db.db import stored_corpus
from textsim_db.results import AddReport
from textsim_db.spark import write
from textsim_db.spark.stored_frames import Target, WriteTask, task_of

pytestmark = pytest.mark.more

COLUMNS = "id string, text string"
MANY = [(f"k{i}", f"document {i} of many {i % 97} words") for i in range(18_000)]
"""Enough documents of one partition that the first batch is stored before the last row is read.

While it is stored, two batches after it are prepared.
"""


def failing_after_a_commit(url: str, attempts: int) -> WriteTask:
    """Return a function that passes rows on, and whose first attempts fail when documents are stored.

    In the job that looks for repeated keys, which comes before the corpus, it only passes rows on.
    """

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from batches
        with ts.connect(url) as db:
            if context.attemptNumber() < attempts and "c" in db.corpora():
                wait_for(lambda: len(db.corpus("c")))
                raise RuntimeError("a task that fails after a commit")

    return pass_on


def one_partition(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(rows, COLUMNS).coalesce(1)


def test_two_attempts_at_once_store_no_document_twice(db: ts.Database) -> None:
    documents = MANY[: 2 * BATCH_DOCUMENTS + 1]
    db.create_corpus("c")
    keys, texts = zip(*documents, strict=True)
    table = pa.table({"key": keys, "text": texts})
    tasks = [task_of(Target(db.url, "c"), is_first=True) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(lambda task: list(task(iter(table.to_batches()))), t) for t in tasks]
        reports = [run.result() for run in runs]
    assert [rows[0].to_pylist()[-1]["added"] for rows in reports] == [len(documents)] * 2
    db.create_corpus("added").add_many(documents)
    assert stored_rows(db, "c") == stored_rows(db, "added")
    assert db.corpus("c").check() == []


def keys_and_ids(db: ts.Database, name: str) -> dict[str, int]:
    number = stored_corpus.load(db.engine, name).id
    with psycopg.connect(db.url) as connection:
        query = f"SELECT key, id FROM textsim.document_{number}"
        return dict(connection.execute(query.encode()).fetchall())


def test_a_second_call_goes_on_where_one_failed(spark: SparkSession, db: ts.Database) -> None:
    failing = one_partition(spark, MANY).mapInArrow(failing_after_a_commit(db.url, 9), COLUMNS)
    with pytest.raises(PythonException, match="a task that fails after a commit"):
        write(failing, db.url, "c")
    before = keys_and_ids(db, "c")
    assert before
    assert db.corpus("c").check() == []
    report = write(spark.createDataFrame(MANY[::-1], COLUMNS).repartition(3), db.url, "c")
    assert report == AddReport(added=len(MANY) - len(before), unchanged=len(before))
    after = keys_and_ids(db, "c")
    assert after.items() >= before.items()
    assert len(after) == len(MANY)
    assert db.corpus("c").check() == []


def test_two_rows_of_one_key_are_refused_and_named(spark: SparkSession, db: ts.Database) -> None:
    rows = [*MANY[:20], ("k7", "another text"), ("k3", MANY[3][1]), (None, "a"), (None, "b")]
    with pytest.raises(ts.ConfigurationError, match='several rows with the key "k3", "k7";'):
        write(spark.createDataFrame(rows, COLUMNS), db.url, "c")
    assert stored_corpus.names(db.engine) == []


def test_refused_rows_are_reported(spark: SparkSession, db: ts.Database) -> None:
    rows = [*MANY[:3], ("no text", None), (None, "no key"), ("nul", "a\0b")]
    rows += [("k\0", "a NUL in the key"), ("k" * 1001, "a long key")]
    df = spark.createDataFrame(rows, COLUMNS)
    wrong = spark.sql("SELECT 'wrong' AS id, CAST(X'61FF62' AS STRING) AS text")
    report = write(df.union(wrong), db.url, "c")
    assert report.added == 3
    reasons = dict(report.refused)
    assert {key[:20]: reason.split(";")[0] for key, reason in reasons.items()} == {
        "no text": "the text is null",
        "null": "the key is null",
        "nul": "the text has a NUL character at character 2, which PostgreSQL cannot store",
        "k\0": "the key has a NUL character",
        "k" * 20: "the key is 1001 bytes long",
        "wrong": "the text is not UTF-8 at byte 2",
    }
    assert len(db.corpus("c")) == 3
