"""Impossible arguments are refused before Spark reads a row, and the error says what to do."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from tests.support.spark import frame
from textsim_db.errors import ConfigurationError
from textsim_db.spark import find_candidates

pytestmark = pytest.mark.more


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"key": "ID"},
            'key="ID" names no column .* expected one of "id", "text"; did you mean "id"',
        ),
        ({"text": "texts"}, 'text="texts" names no column .*did you mean "text"'),
        ({"treshold": 0.5}, '"treshold" is not a setting .*did you mean "threshold"'),
        ({"passages": 13}, "compares no passages; textsim_db.spark.shared_passages does"),
        ({"scoped": True}, 'does not compare by "scoped", but a corpus does: .*write'),
        ({"threshold": 2}, "threshold is 2; expected above 0"),
        ({"partitions": 0}, "partitions is 0; expected 1 to"),
    ],
)
def test_arguments(spark: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        find_candidates(frame(spark, []), **arguments)


def test_types_of_columns(spark: Any) -> None:
    df = spark.range(3).select(F.col("id").cast("double").alias("id"), F.lit(b"x").alias("text"))
    with pytest.raises(ConfigurationError, match=r'key="id" is a column of type double; .*cast'):
        find_candidates(df)
    with pytest.raises(ConfigurationError, match=r'text="text" is a column of type binary; .*cast'):
        find_candidates(df.withColumn("id", F.lit("a")))


def test_names_that_differ_in_case_alone(spark: Any) -> None:
    df = spark.createDataFrame([("a", "one", "two")], ["id", "text", "Text"])
    with pytest.raises(
        ConfigurationError, match=r'text="text" names 2 .*, "text" and "Text": Spark'
    ):
        find_candidates(df)
    ranked = spark.createDataFrame([("a", "one", 1, 2)], ["id", "text", "n", "N"])
    with pytest.raises(ConfigurationError, match=r'rank="n" names 2 columns .*"n" and "N"'):
        find_candidates(ranked).duplicates(rank="n")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert find_candidates(df).candidates == 0
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("rank", "message"),
    [
        ("first", "a DataFrame has no first and last row"),
        ("scor", 'rank="scor" names no column'),
        (F.array, "rank has the type array"),
    ],
)
def test_ranks(spark: Any, rank: Any, message: str) -> None:
    found = find_candidates(frame(spark, [("a", "one")]))
    with pytest.raises(ConfigurationError, match=message):
        found.duplicates(rank=rank("id") if callable(rank) else rank)
