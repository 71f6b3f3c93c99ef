"""Spark finds the passages that a corpus finds, whatever the partitions."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import textsim_db as ts
from tests.support.passages import HEADER, QUOTATION, related_texts
from tests.support.spark import frame, rows
from textsim_db.errors import ConfigurationError
from textsim_db.spark import shared_passages

pytestmark = pytest.mark.more


@pytest.mark.parametrize(
    ("settings", "least", "partitions"),
    [
        ({"passages": 8}, None, None),
        ({"passages": 8, "stop_words": ["w1", "w2", "w3"]}, 12, 1),
        ({"passages": 20, "shingle": "char:5"}, 25, 5),
    ],
    ids=str,
)
def test_shared_passages_are_those_of_a_corpus(
    spark: SparkSession, db: ts.Database, seed: int, settings: Any, least: Any, partitions: Any
) -> None:
    documents = [*related_texts(random.Random(seed), 150).items()]
    corpus = db.create_corpus("c", **settings)
    corpus.add_many(documents)
    expected = sorted(corpus.shared_passages(least))
    assert len(expected) > 10
    df = frame(spark, random.Random(seed).sample(documents, len(documents)), 3)
    found = shared_passages(df, min_words=least, partitions=partitions, **settings)
    assert rows(found) == expected


def test_documents_of_different_scopes_share_nothing(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    documents = [(*document, rng.choice("xyz")) for document in related_texts(rng, 100).items()]
    scope_of = {key: scope for key, _, scope in documents}
    df = spark.createDataFrame(documents, "id string, text string, tenant string")
    everything = rows(shared_passages(df, passages=8))
    expected = [row for row in everything if scope_of[row[0]] == scope_of[row[1]]]
    assert 0 < len(expected) < len(everything)
    assert rows(shared_passages(df, scope="tenant", passages=8)) == expected


def test_a_run_that_thousands_have_is_left_out(spark: SparkSession) -> None:
    documents = [(f"{number:04}", f"{HEADER} w{number}") for number in range(1100)]
    documents += [("a", f"it said {QUOTATION}"), ("b", f"they say {QUOTATION} too")]
    found = shared_passages(frame(spark, documents), passages=8)
    assert rows(found) == [("a", "b", 9, 2, 2)]


def test_rows_that_cannot_be_compared_share_nothing(spark: SparkSession) -> None:
    text = "one two three four five six seven eight"
    refused: list[Any] = [("b", None), ("b", None), (None, text), (None, text), ("d", "x\0y")]
    df = frame(spark, [("a", text), *refused, ("c", text.upper())])
    assert rows(shared_passages(df, passages=6)) == [("a", "c", 8, 0, 0)]


def test_wrong_arguments_are_refused(spark: SparkSession) -> None:
    df = frame(spark, [("a", "one"), ("a", "two")])
    with pytest.raises(ConfigurationError, match='has several rows with the key "a"; keys must'):
        shared_passages(df)
    with pytest.raises(ConfigurationError, match="min_words is 12; expected 13"):
        shared_passages(df, min_words=12)
    with pytest.raises(ConfigurationError, match="passages is 3"):
        shared_passages(df, passages=3)
