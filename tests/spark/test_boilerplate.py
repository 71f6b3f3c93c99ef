"""Spark leaves out the boilerplate that a corpus has learned, as add_many() does."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

import textsim_db as ts
from tests.integration.test_boilerplate import templated
from tests.support.rebuilds import stored_rows
from textsim_db.spark import write

pytestmark = pytest.mark.more


@pytest.mark.parametrize("recall", [0.95, 1])
def test_spark_leaves_out_the_boilerplate_of_a_corpus(
    spark: SparkSession, db: ts.Database, rng: random.Random, recall: float
) -> None:
    texts, more = templated(rng, 200), templated(rng, 300)
    for name in ("spark", "added"):
        corpus = db.create_corpus(name, boilerplate=0.2, recall=recall)
        corpus.add_many(texts.items())
        corpus.rebuild()
        corpus.remove(texts)
    assert db.corpus("spark").config.boilerplate_values
    write(spark.createDataFrame([*more.items()], "id string, text string"), db.url, "spark")
    db.corpus("added").add_many(more.items())
    assert db.corpus("spark").config == db.corpus("added").config
    assert stored_rows(db, "spark") == stored_rows(db, "added")
