"""Impossible arguments are refused before Spark reads a row; keys of columns are those of Python."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pandas as pd
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import (
    SparkSession,
    functions as F,  # noqa: N812
)

import textsim_db as ts
from tests.support.spark import frame
from textsim_db.errors import ConfigurationError
from textsim_db.spark import find_candidates, join_key, shared_passages, split_key, write

pytestmark = pytest.mark.more


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": "ID"}, 'key="ID" names no column .* one of "id", "text"; did you mean "id"'),
        ({"text": "texts"}, 'text="texts" names no column .*did you mean "text"'),
        ({"threshold": 2}, "threshold is 2; expected above 0"),
        ({"partitions": 0}, "partitions is 0; expected 1 to"),
    ],
)
def test_arguments(spark: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        find_candidates(frame(spark, []), **arguments)


def test_a_misspelt_setting_is_refused(spark: Any) -> None:
    df = frame(spark, [])
    with pytest.raises(TypeError, match='no argument "treshold"; did you mean "threshold"'):
        find_candidates(df, treshold=0.5)
    with pytest.raises(TypeError, match='no argument "treshold"; did you mean "threshold"'):
        write(df, "", "c", treshold=0.5)
    with pytest.raises(TypeError, match='no argument "threshold"'):
        shared_passages(df, threshold=0.5)


@pytest.mark.parametrize("df", [[("a", "one")], pd.DataFrame({"id": ["a"], "text": ["one"]}), None])
def test_only_a_dataframe_of_spark_is_taken(df: Any) -> None:
    name = type(df).__name__
    message = f"df has the type {name}; expected a DataFrame of Spark, .*createDataFrame"
    functions: list[Any] = [find_candidates, shared_passages, partial(write, url=None, corpus="c")]
    for function in functions:
        with pytest.raises(ConfigurationError, match=message):
            function(df)


def test_types_of_columns(spark: Any) -> None:
    df = spark.range(3).select(F.col("id").cast("double").alias("id"), F.lit(b"x").alias("text"))
    with pytest.raises(ConfigurationError, match=r'key="id" is a column of type double; .*cast'):
        find_candidates(df)
    with pytest.raises(ConfigurationError, match=r'text="text" is a column of type binary; .*cast'):
        find_candidates(df.withColumn("id", F.lit("a")))


def test_a_name_in_two_cases_is_refused(spark: Any) -> None:
    df = spark.createDataFrame([("a", "one", "two")], "id string, text string, Text string")
    with pytest.raises(ConfigurationError, match=r'text="text" names 2 columns .*"text", "Text"'):
        find_candidates(df)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert find_candidates(df).pairs().collect() == []
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("rank", "message"),
    [
        ("first", 'rank="first" names no column'),
        ("scor", 'rank="scor" names no column'),
        (F.array, "rank has the type array"),
    ],
)
def test_ranks(spark: Any, rank: Any, message: str) -> None:
    found = find_candidates(frame(spark, [("a", "one")]))
    with pytest.raises(ConfigurationError, match=message):
        found.duplicates(rank=rank("id") if callable(rank) else rank)


def test_keys_are_those_of_python(spark: SparkSession, rng: random.Random) -> None:
    rows = [
        (
            date(1990, 1, 1) + timedelta(rng.randrange(20_000)),
            rng.randrange(-5, 2**40),
            "".join(rng.choices('/~01ab é%"\\', k=rng.randrange(6))),
            str(UUID(int=rng.getrandbits(128))),
        )
        for _ in range(200)
    ]
    df = spark.createDataFrame(rows, "day date, id long, name string, number string")
    keys = df.select(join_key("day", "id", df["name"], "number").alias("key"))
    joined = [key for (key,) in keys.collect()]
    assert joined == [ts.join_key(*row) for row in rows]
    parts = [values for (values,) in keys.select(split_key("key")).collect()]
    assert parts == [[str(value) for value in row] for row in rows]


def test_a_null_gives_no_key_and_a_timestamp_an_error(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, None, datetime(2026, 11, 25))], "a int, b string, c timestamp")
    assert df.select(join_key("a", "b")).collect()[0][0] is None
    with pytest.raises(PySparkException, match="a key column is a timestamp"):
        df.select(join_key("a", "c")).collect()
