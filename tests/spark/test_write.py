"""write() stores what add_many() does; read() gives it back."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.rebuilds import stored_rows
from tests.support.sampling import sample
from textsim_db.db import stored_corpus
from textsim_db.results import AddReport
from textsim_db.spark import read, write
from textsim_db.spark.stored_frames import PAGE
from textsim_db.text.tokens import normal_form

pytestmark = pytest.mark.more

DOCUMENTS = [*documents(2000, 30, planted=0.3, seed=8), ("empty", ""), ("long", "a b " * 5000)]


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
    df = spark.createDataFrame(DOCUMENTS, "id string, text string").repartition(partitions)
    report = write(df, db.url, "c", **settings)
    added = db.create_corpus("added", **settings)
    assert report == added.add_many(DOCUMENTS)
    assert report.added == len(DOCUMENTS)
    corpus = db.corpus("c")
    assert corpus.config == db.corpus("added").config
    assert stored_rows(db, "c") == stored_rows(db, "added")
    assert corpus.check() == []
    assert stored_corpus.names(db.engine) == ["added", "c"]
    assert sorted(corpus.pairs()) == sorted(db.corpus("added").pairs())


COLUMNS = "id string, text string"


def test_a_table_stays_attached_to_an_empty_corpus_that_is_filled(
    spark: SparkSession, db: ts.Database
) -> None:
    corpus = db.create_corpus("c", recall=1.0, passages=13)
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
        corpus.attach("t", "id", "body")
        df = spark.createDataFrame(DOCUMENTS, COLUMNS)
        assert write(df, db.url, "c") == AddReport(added=len(DOCUMENTS), without_words=1)
        connection.execute("INSERT INTO t VALUES (3, 'the last words of the row')")
        db.worker().run(until_idle=True)
        assert [m.key for m in corpus.query("the last words of the row")] == ["3"]
    assert list(corpus.drift()) == []
    assert corpus.check() == []
    assert corpus.config.common is not None


def test_a_corpus_with_other_settings_is_refused(spark: SparkSession, db: ts.Database) -> None:
    db.create_corpus("c", threshold=0.6)
    df = spark.createDataFrame([("1", "a text")], COLUMNS)
    with pytest.raises(ts.CorpusExists, match=r"threshold is 0\.6 there, not 0\.7"):
        write(df, db.url, "c", threshold=0.7)
    assert write(df, db.url, "c", threshold=0.6) == AddReport(added=1)


def test_a_unique_corpus_is_refused(spark: SparkSession, db: ts.Database) -> None:
    df = spark.createDataFrame([("1", "a text")], COLUMNS)
    with pytest.raises(ts.ConfigurationError, match='corpus "c" is unique'):
        write(df, db.url, "c", is_unique=True)
    db.create_corpus("c", is_unique=True)
    with pytest.raises(ts.ConfigurationError, match='corpus "c" is unique'):
        write(df, db.url, "c")
    assert len(db.corpus("c")) == 0


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("c", {"key": "ID"}, 'key="ID" names no column .* expected one of "id", "text"'),
        ("c", {"text": "score"}, 'text="score" is a column of type double; expected strings'),
        ("c", {"writers": 0}, "writers is 0; expected 1 to 10000"),
        ("textsim temporary c", {}, "reserved"),
        ("c" * 201, {}, "expected at most 200 bytes"),
    ],
)
def test_wrong_arguments_are_refused(
    spark: SparkSession, db: ts.Database, name: str, arguments: dict[str, Any], message: str
) -> None:
    df = spark.sql("SELECT 'a' AS id, 'b' AS text, 1.5D AS score, 1 AS number")
    with pytest.raises(ts.ConfigurationError, match=message):
        write(df, db.url, name, **arguments)
    assert stored_corpus.names(db.engine) == []


def test_keys_may_be_numbers_of_any_column(spark: SparkSession, db: ts.Database) -> None:
    df = spark.sql("SELECT CAST(-7 AS SMALLINT) AS `a.b`, 'the text' AS `the ``text`")
    assert write(df, db.url, "c", key="a.b", text="the `text").added == 1
    assert [match.key for match in db.corpus("c").query("the text")] == ["-7"]


STORED = {f"k{i}": f"The Text {i} of {i % 7}, ÀÉ!" for i in range(2 * PAGE + 10)} | {"empty": ""}


@pytest.mark.parametrize("partitions", [None, 7])
def test_all_documents_are_read_once(
    spark: SparkSession, db: ts.Database, rng: random.Random, partitions: int | None
) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(STORED)
    gone = rng.sample(sorted(STORED.keys() - {"empty"}), 700)
    corpus.remove(gone)
    with db.engine.begin() as connection:
        connection.exec_driver_sql("SELECT textsim.add('c', 'waiting', 'New Words')")
    df = read(spark, db.url, "c", partitions)
    assert df.columns == ["key", "language", "scope", "shingle_count", "normal_form"]
    if partitions is not None:
        assert df.rdd.getNumPartitions() == partitions
    expected = {key: normal_form(text) for key, text in STORED.items() if key not in gone}
    rows = df.collect()
    assert len(rows) == len(expected) + 1
    forms = {row["key"]: row["normal_form"] for row in rows}
    assert forms == expected | {"waiting": "new words"}
    counts = {row["key"]: row["shingle_count"] for row in rows}
    assert {counts[key] for key in forms if key not in ("empty", "waiting")} == {4}
    assert (counts["empty"], counts["waiting"]) == (0, 1)
    assert {(row["language"], row["scope"]) for row in rows} == {(None, None)}


def test_a_corpus_may_have_fewer_documents_than_tasks(spark: SparkSession, db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    assert read(spark, db.url, "c").collect() == []
    corpus.add_many({"1": "a text", "2": "another text"})
    assert {row["key"] for row in read(spark, db.url, "c", 5).collect()} == {"1", "2"}


def test_an_expired_document_is_not_read(spark: SparkSession, db: ts.Database) -> None:
    corpus = db.create_corpus("c", keep_for="30 days")
    corpus.add_many({"1": "a text", "2": "another text"})
    with db.engine.begin() as connection:
        expire = "UPDATE textsim.document_1 SET expires_at = now() WHERE key = '1'"
        connection.exec_driver_sql(expire)
    assert {row["key"] for row in read(spark, db.url, "c").collect()} == {"2"}


def test_the_plan_shows_no_password(spark: SparkSession, db: ts.Database) -> None:
    db.create_corpus("c")
    df = read(spark, db.url, "c")
    plan = df._jdf.queryExecution().toString()
    assert "MapInArrow" in plan
    assert db.url not in plan
    assert db.url.split("/")[-1] not in plan


def test_a_corpus_that_was_rebuilt_must_be_read_again(spark: SparkSession, db: ts.Database) -> None:
    corpus = db.create_corpus("c")
    corpus.add_many(STORED)
    df = read(spark, db.url, "c")
    corpus.rebuild(seed=7)
    with pytest.raises(PythonException, match="was rebuilt since read"):
        df.collect()
    assert read(spark, db.url, "c").count() == len(STORED)


def test_an_unknown_corpus_is_refused(spark: SparkSession, db: ts.Database) -> None:
    with pytest.raises(ts.CorpusNotFound):
        read(spark, db.url, "c")
    db.create_corpus("c")
    with pytest.raises(ts.ConfigurationError, match="partitions is 0; expected 1 to"):
        read(spark, db.url, "c", 0)
