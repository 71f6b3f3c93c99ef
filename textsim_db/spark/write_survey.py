"""Surveys a DataFrame before it is written: counts its rows, and refuses two rows of one key."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import (
    ByteType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from textsim_db.errors import ConfigurationError, DocumentError, suggestion

SHOWN_KEYS = 5
_WHOLE_NUMBERS = (ByteType, ShortType, IntegerType, LongType)


class Survey(NamedTuple):
    """What a DataFrame holds.

    rows, characters: the number of rows, and the length of all texts. fingerprint: a number that all
    keys and texts determine, whatever their order and partitions.
    """

    rows: int
    characters: int
    fingerprint: int


def documents_of(df: DataFrame, key: str, text: str) -> DataFrame:
    """Return the columns of keys and texts, as strings named key and text.

    Raises ConfigurationError if a column is missing or has another type.
    """
    for option, name in (("key", key), ("text", text)):
        if df.columns.count(name) != 1:
            near = suggestion(name, df.columns)
            expected = ", ".join(df.columns[:8])
            raise ConfigurationError(
                f"{option}={name!r} names {df.columns.count(name)} columns of the DataFrame; expected "
                f"one of {expected}{near}"
            )
    _check_type(df, key, (StringType, *_WHOLE_NUMBERS), "a string or a whole number")
    _check_type(df, text, (StringType,), "a string")
    quoted = [F.col("`" + name.replace("`", "``") + "`") for name in (key, text)]
    return df.select(quoted[0].cast("string").alias("key"), quoted[1].alias("text"))


def _check_type(df: DataFrame, column: str, types: tuple[type, ...], expected: str) -> None:
    type_ = df.schema[column].dataType
    if not isinstance(type_, types):
        raise ConfigurationError(
            f"the column {column!r} is of type {type_.simpleString()}; expected {expected}: cast it"
        )


def survey(documents: DataFrame) -> Survey:
    """Survey the documents that documents_of() returned, in one job that shuffles only their keys.

    Raises DocumentError with some keys, if two rows have the same key: a DataFrame has no order, so
    neither of them is the last.
    """
    by_key = documents.groupBy("key").agg(
        F.count("*").alias("rows"),
        F.sum(F.length("text")).alias("characters"),
        F.bit_xor(F.xxhash64("text")).alias("texts"),
    )
    is_doubled = (F.col("rows") > 1) & F.col("key").isNotNull()
    row = by_key.agg(
        F.sum("rows"),
        F.sum("characters"),
        F.bit_xor(F.xxhash64("key", "texts")),
        F.count_if(is_doubled),
    ).first()
    assert row is not None
    if row[3]:
        doubled = by_key.filter(is_doubled).orderBy("key").limit(SHOWN_KEYS).collect()
        raise DocumentError(_several_rows([found["key"] for found in doubled], row[3]))
    return Survey(row[0] or 0, row[1] or 0, row[2] or 0)


def _several_rows(keys: list[str], count: int) -> str:
    shown = ", ".join(f'"{key[:40]}"' for key in keys) + (", ..." if count > len(keys) else "")
    return (
        f"{count} keys have several rows: {shown}; a DataFrame has no order, so none of the rows is the "
        "last: keep one row of each key, for example with dropDuplicates"
    )


def sample(documents: DataFrame, share: float) -> DataFrame:
    """Return a share of the documents, chosen by the hashes of their keys: the same in each run."""
    if share >= 1:
        return documents
    return documents.filter(F.xxhash64("key") < F.lit(int(share * 2**64) - 2**63))
