"""Surveys a DataFrame before it is written: counts its rows, and refuses two rows of one key."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from textsim_db.errors import ConfigurationError
from textsim_db.spark.columns import FrameColumns, quoted

SHOWN_KEYS = 5


class Survey(NamedTuple):
    """The size of a DataFrame, and a number that its contents determine.

    rows, characters: the number of rows, and the length of all texts. fingerprint: a hash of all keys
    and texts, which does not depend on their order and partitions.
    """

    rows: int
    characters: int
    fingerprint: int


def documents_of(df: DataFrame, key: str, text: str) -> DataFrame:
    """Return the columns of keys and texts, as strings named key and text.

    Raises ConfigurationError if a column is missing or has another type.
    """
    columns = FrameColumns(key, text)
    columns.check(df)
    return df.select(columns.key_column().alias("key"), F.col(quoted(text)).alias("text"))


def survey(documents: DataFrame) -> Survey:
    """Survey the documents that documents_of() returned, in one job that shuffles only their keys.

    Raises ConfigurationError with some keys, if two rows have the same key: a DataFrame has no order, so
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
        raise ConfigurationError(_several_rows([found["key"] for found in doubled], row[3]))
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
