"""write(): the corpus equals that of add_many(), and nobody sees it before it is complete."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.rebuilds import stored_rows
from tests.support.sampling import sample
from textsim_db.db import stored_corpus
from textsim_db.spark import write

pytestmark = pytest.mark.more

TEXTS = [*documents(2000, words=30, planted=0.3, seed=8), ("empty", ""), ("long", "a b " * 5000)]


@pytest.mark.parametrize(
    ("settings", "partitions"),
    sample(
        [
            ({"recall": 1.0, "threshold": 0.5, "passages": 13}, 7),
            ({"passages": 8}, 1),
            ({"language": "auto", "stop_words": "en"}, 2),
            ({"shingle": "char:5", "threshold": 0.7}, 7),
        ],
        2,
    ),
    ids=str,
)
def test_a_written_corpus_equals_an_added_one(
    spark: SparkSession, db: ts.Database, settings: dict[str, Any], partitions: int
) -> None:
    df = spark.createDataFrame(TEXTS, "id string, text string").repartition(partitions)
    report = write(df, db.url, "c", **settings)
    assert report == ts.AddReport(added=len(TEXTS))
    added = db.create_corpus("added", **settings)
    added.add_many(TEXTS)
    corpus = db.corpus("c")
    assert corpus.config == db.corpus("added").config
    assert stored_rows(db, "c") == stored_rows(db, "added")
    assert corpus.check() == []
    assert stored_corpus.names(db.engine) == ["added", "c"]
    assert sorted(corpus.pairs()) == sorted(db.corpus("added").pairs())
