"""read(): the documents of a corpus as a DataFrame."""

from __future__ import annotations

import random

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import textsim_db as ts
from textsim_db.spark import read
from textsim_db.spark.read_task import PAGE
from textsim_db.text.tokens import normal_form

pytestmark = pytest.mark.more

TEXTS = {f"k{i}": f"The Text {i} of {i % 7}, ÀÉ!" for i in range(2 * PAGE + 10)} | {"empty": ""}


@pytest.mark.parametrize("partitions", [None, 7])
def test_all_documents_are_read_once(
    spark: SparkSession, db: ts.Database, rng: random.Random, partitions: int | None
) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(TEXTS)
    gone = rng.sample(sorted(TEXTS.keys() - {"empty"}), 700)
    corpus.remove(gone)
    with db.engine.begin() as connection:
        connection.exec_driver_sql("SELECT textsim.add('c', 'waiting', 'New Words')")
    df = read(spark, db.url, "c", partitions)
    assert df.columns == ["key", "language", "scope", "shingle_count", "normal_form"]
    if partitions is not None:
        assert df.rdd.getNumPartitions() == partitions
    expected = {key: normal_form(text) for key, text in TEXTS.items() if key not in gone}
    rows = df.collect()
    assert len(rows) == len(expected) + 1
    forms = {row["key"]: row["normal_form"] for row in rows}
    assert forms == expected | {"waiting": "new words"}
    counts = {row["key"]: row["shingle_count"] for row in rows}
    assert {counts[key] for key in forms if key not in ("empty", "waiting")} == {4}
    assert (counts["empty"], counts["waiting"]) == (0, 1)
    assert {(row["language"], row["scope"]) for row in rows} == {(None, None)}


def test_a_corpus_may_have_fewer_documents_than_partitions(
    spark: SparkSession, db: ts.Database
) -> None:
    corpus = db.create_corpus("c")
    assert read(spark, db.url, "c").collect() == []
    corpus.add_many({"1": "a text", "2": "another text"})
    assert {row["key"] for row in read(spark, db.url, "c", 5).collect()} == {"1", "2"}


def test_an_expired_document_is_not_read(spark: SparkSession, db: ts.Database) -> None:
    corpus = db.create_corpus("c", keep_for="30 days")
    corpus.add_many({"1": "a text", "2": "another text"})
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE textsim.document_1 SET expires_at = now() WHERE key = '1'"
        )
    assert {row["key"] for row in read(spark, db.url, "c").collect()} == {"2"}


def test_languages_are_read(spark: SparkSession, db: ts.Database) -> None:
    pytest.importorskip("py3langid")
    corpus = db.create_corpus("c", language="auto")
    corpus.add_many({"en": "the house by the river is very old", "de": "das alte Haus am Fluss"})
    rows = read(spark, db.url, "c").collect()
    assert {row["key"]: row["language"] for row in rows} == {"en": "en", "de": "de"}


def test_the_plan_shows_no_password(spark: SparkSession, db: ts.Database) -> None:
    db.create_corpus("c")
    df = read(spark, db.url, "c")
    plan = df._jdf.queryExecution().toString()
    assert "MapInArrow" in plan
    assert db.url not in plan
    assert db.url.split("/")[-1] not in plan


def test_a_corpus_that_was_rebuilt_must_be_read_again(spark: SparkSession, db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(TEXTS)
    df = read(spark, db.url, "c")
    corpus.rebuild(seed=7)
    with pytest.raises(PythonException, match="was rebuilt since read"):
        df.collect()
    assert read(spark, db.url, "c").count() == len(TEXTS)


def test_an_unknown_corpus_is_refused(spark: SparkSession, db: ts.Database) -> None:
    with pytest.raises(ts.CorpusNotFound):
        read(spark, db.url, "c")
    db.create_corpus("c")
    with pytest.raises(ts.ConfigurationError, match="partitions is 0; expected 1 to"):
        read(spark, db.url, "c", 0)
