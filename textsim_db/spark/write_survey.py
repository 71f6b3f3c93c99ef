"""Surveys a DataFrame before it is written: counts its rows, and refuses two rows of one key."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812 - its usual name
)

from textsim_db.errors import ConfigurationError

SHOWN_DOUBLED = 5


class FrameSurvey(NamedTuple):
    """The size of a DataFrame, and a hash of its contents."""

    rows: int
    characters: int
    """The length of all texts."""
    contents: int
    """A hash of all keys, texts and scopes, which does not depend on their order and partitions."""


def survey(documents: DataFrame) -> FrameSurvey:
    """Survey rows (key, text, scope) in one job that shuffles no texts.

    Raises ConfigurationError with some keys, if two rows have the same key: a DataFrame has no order, so
    neither of them is the last.
    """
    by_key = documents.groupBy("key").agg(
        F.count("*").alias("rows"),
        F.sum(F.length("text")).alias("characters"),
        F.bit_xor(F.xxhash64("text", "scope")).alias("contents"),
    )
    is_doubled = (F.col("rows") > 1) & F.col("key").isNotNull()
    row = by_key.agg(
        F.sum("rows"),
        F.sum("characters"),
        F.bit_xor(F.xxhash64("key", "contents")),
        F.count_if(is_doubled),
    ).first()
    assert row is not None
    if row[3]:
        doubled = by_key.filter(is_doubled).orderBy("key").limit(SHOWN_DOUBLED).collect()
        raise ConfigurationError(_several_rows([repeated["key"] for repeated in doubled], row[3]))
    return FrameSurvey(row[0] or 0, row[1] or 0, row[2] or 0)


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
