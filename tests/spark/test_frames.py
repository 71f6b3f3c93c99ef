"""DataFrames of PySpark where a corpus takes a frame."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import textsim_db as ts

pytestmark = pytest.mark.more

TEXTS = {i: f"the quick brown fox number {i // 2} jumps over the lazy dog" for i in range(300)}


def test_a_data_frame_of_spark_is_indexed_searched_and_deduplicated(
    spark: SparkSession, db: ts.Database
) -> None:
    frame = spark.createDataFrame(list(TEXTS.items()), "id int, body string")
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.95)
    assert corpus.add_many(frame, key="id", text="body").added == len(TEXTS)
    found = {
        (match.query, match.key)
        for match in corpus.query_many(frame.where("id < 4"), key="id", text="body")
    }
    assert found == {(a, str(b)) for a, b in [(0, 0), (0, 1), (1, 0), (1, 1)]} | {
        (a, str(b)) for a, b in [(2, 2), (2, 3), (3, 2), (3, 3)]
    }
    unique, report = ts.dedupe_frame(
        frame, text="body", key="id", database=db, shingle="word:1", threshold=0.95
    )
    kept = unique["id"].to_pylist()
    assert {number // 2 for number in kept} == set(range(150))
    assert len(kept) == 150
    assert {row.key for row in report.removed} == TEXTS.keys() - set(kept)
