"""Spark finds what a corpus finds, whatever the partitions and the settings."""

from __future__ import annotations

import random
from typing import Any

import pytest

import textsim_db as ts
from tests.support.spark import Documents, frame, near_duplicates, rows

pytest.importorskip("pyspark")

from textsim_db.spark import candidates as engine

pytestmark = pytest.mark.one_server


@pytest.fixture(scope="module")
def documents(seed: int) -> Documents:
    return near_duplicates(random.Random(seed), 600)


@pytest.mark.parametrize("partitions", [1, 7])
def test_pairs_do_not_depend_on_partitions(
    spark: Any, db: ts.Database, documents: Documents, partitions: int
) -> None:
    corpus = db.create_corpus("c", threshold=0.7)
    corpus.add_many(documents)
    df = frame(spark, documents, partitions)
    found = rows(engine.pairs(df, threshold=0.7, partitions=partitions))
    assert found == sorted(corpus.pairs())
    assert len(found) > 50
