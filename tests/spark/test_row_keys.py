"""join_key() and split_key() of DataFrames: the same keys as in Python."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from uuid import UUID

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import textsim_db as ts
from textsim_db.spark import join_key, split_key

pytestmark = pytest.mark.more


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
