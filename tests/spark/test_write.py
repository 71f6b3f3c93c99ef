"""write(): the corpus equals that of add_many(), and nobody sees it before it is complete."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.rebuilds import TEXTS, stored_rows
from tests.support.sampling import sample
from textsim_db.db import stored_corpus
from textsim_db.spark import write, write_corpus
from textsim_db.spark.write_hidden import count_documents
from textsim_db.write.temporary_corpora import temporary_name

pytestmark = pytest.mark.more

DOCUMENTS = [
    *documents(2000, words=30, planted=0.3, seed=8),
    ("empty", ""),
    ("long", "a b " * 5000),
]


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
    assert report == ts.AddReport(added=len(DOCUMENTS))
    added = db.create_corpus("added", **settings)
    added.add_many(DOCUMENTS)
    corpus = db.corpus("c")
    assert corpus.config == db.corpus("added").config
    assert stored_rows(db, "c") == stored_rows(db, "added")
    assert corpus.check() == []
    assert stored_corpus.names(db.engine) == ["added", "c"]
    assert sorted(corpus.pairs()) == sorted(db.corpus("added").pairs())


COLUMNS = "id string, text string"


def test_an_existing_corpus_gets_what_add_many_gives_it(
    spark: SparkSession, db: ts.Database
) -> None:
    items = list(TEXTS.items())
    later = [*items[100:], (items[0][0], "another text"), ("new", "a new text")]
    for name in ("c", "added"):
        db.create_corpus(name, shingle="word:2").add_many(items[:200])
    report = write(spark.createDataFrame(later, COLUMNS).repartition(4), db.url, "c")
    assert report == db.corpus("added").add_many(later)
    assert (report.added, report.replaced, report.unchanged) == (101, 1, 100)
    assert stored_rows(db, "c") == stored_rows(db, "added")
    assert db.corpus("c").check() == []


def test_a_table_stays_attached_to_an_empty_corpus_that_is_filled(
    spark: SparkSession, db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = db.create_corpus("c", threshold=0.6)
    number = stored_corpus.load(db.engine, "c").id
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
        corpus.attach("t", "id", "body")
        connection.execute("INSERT INTO t VALUES (1, 'the words of a row'), (2, 'of another row')")

        def count(*arguments: Any) -> int:
            """Index the table when the hidden corpus is complete, and count its documents."""
            db.worker().run(until_idle=True)
            return stored_count(*arguments)

        stored_count = count_documents
        monkeypatch.setattr(write_corpus, "count_documents", count)
        df = spark.createDataFrame(
            [(1, "other words"), (3, "words of Spark")], "n long, body string"
        )
        report = write(df, db.url, "c", key="n", text="body")
        assert report == ts.AddReport(added=2)
        assert len(db.corpus("c")) == 3
        assert corpus.query("the words of a row")[0].key == "1"
        assert stored_corpus.load(db.engine, "c").id != number
        assert stored_corpus.names(db.engine) == ["c"]
        assert corpus.config.threshold == 0.6
        connection.execute("INSERT INTO t VALUES (3, 'the last words of the row')")
        db.worker().run(until_idle=True)
        assert [m.key for m in corpus.query("the last words of the row")] == ["3"]
    assert list(corpus.drift()) == []
    assert corpus.check() == []
    assert [source.table for source in db.sources()] == ["t"]


def test_a_corpus_with_other_settings_is_refused(spark: SparkSession, db: ts.Database) -> None:
    db.create_corpus("c", threshold=0.6)
    df = spark.createDataFrame([("1", "a text")], COLUMNS)
    with pytest.raises(ts.CorpusExists, match=r"threshold is 0\.6 there, not 0\.7"):
        write(df, db.url, "c", threshold=0.7)
    assert write(df, db.url, "c", threshold=0.6) == ts.AddReport(added=1)


def test_a_unique_corpus_is_refused(spark: SparkSession, db: ts.Database) -> None:
    df = spark.createDataFrame([("1", "a text")], COLUMNS)
    with pytest.raises(ts.ConfigurationError, match='corpus "c" is unique'):
        write(df, db.url, "c", is_unique=True)
    db.create_corpus("c", is_unique=True)
    with pytest.raises(ts.ConfigurationError, match='corpus "c" is unique'):
        write(df, db.url, "c")
    assert len(db.corpus("c")) == 0


def test_a_name_that_is_taken_meanwhile_is_refused(
    spark: SparkSession, db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count(*arguments: Any) -> int:
        db.create_corpus("c").add("1", "a text of another client")
        return 1

    monkeypatch.setattr(write_corpus, "count_documents", count)
    df = spark.createDataFrame([("1", "a text")], COLUMNS)
    with pytest.raises(ts.CorpusExists, match='corpus "c" was created while'):
        write(df, db.url, "c")
    assert db.corpus("c").query("a text of another client")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": "ID"}, 'key="ID" names no column of the DataFrame; expected one of "id", "text"'),
        ({"text": "score"}, 'text="score" is a column of type double; expected strings'),
        ({"writers": 0}, "writers is 0; expected 1 to 10000"),
        ({"threshold": 2}, "threshold is 2; expected above 0"),
    ],
)
def test_wrong_arguments_are_refused(
    spark: SparkSession, db: ts.Database, arguments: dict[str, Any], message: str
) -> None:
    df = spark.sql("SELECT 'a' AS id, 'b' AS text, 1.5D AS score, 1 AS number")
    with pytest.raises(ts.ConfigurationError, match=message.replace("(", r"\(")):
        write(df, db.url, "c", **arguments)
    assert stored_corpus.names(db.engine) == []


def test_wrong_names_are_refused(spark: SparkSession, db: ts.Database) -> None:
    df = spark.sql("SELECT 'a' AS id, 'b' AS text")
    with pytest.raises(ts.ConfigurationError, match=r'"treshold" is not a setting.* "threshold"'):
        write(df, db.url, "c", treshold=0.5)
    with pytest.raises(ts.ConfigurationError, match="reserved"):
        write(df, db.url, "textsim temporary c")
    with pytest.raises(ts.ConfigurationError, match="expected at most 200 bytes"):
        write(df, db.url, "c" * 201)


def test_keys_may_be_numbers_and_columns_may_have_any_name(
    spark: SparkSession, db: ts.Database
) -> None:
    df = spark.sql("SELECT CAST(-7 AS SMALLINT) AS `a.b`, 'the text' AS `the ``text`")
    assert write(df, db.url, "c", key="a.b", text="the `text").added == 1
    assert [match.key for match in db.corpus("c").query("the text")] == ["-7"]


def test_two_calls_cannot_hold_one_name(db: ts.Database) -> None:
    with (
        temporary_name(db.engine, "0" * 16),
        pytest.raises(ts.CorpusBusy, match="another session loads the same documents"),
        temporary_name(db.engine, "0" * 16),
    ):
        pass
