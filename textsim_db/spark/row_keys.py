"""Keys of several columns in DataFrames: joined to one text, and split again."""

from __future__ import annotations

from pyspark.sql import (
    Column,
    functions as F,  # noqa: N812 - the name that PySpark's users know
)


def join_key(*columns: str | Column) -> Column:
    """Return the key of the row whose key columns are these columns.

    It is the key of `textsim_db.join_key`, and null if a column is null. Spark raises an error if a
    column is a timestamp, because its text depends on the time zone of the session.

    Args:
        columns: two or more columns with strings, integers or dates, in the order of `key_columns`.
    """
    slash = F.lit("/")
    first, *others = [_escaped(F.col(c) if isinstance(c, str) else c) for c in columns]
    return F.concat(first, *(part for other in others for part in (slash, other)))


def split_key(key: str | Column) -> Column:
    """Return the values that a key of several columns was joined from, as an array of strings.

    Args:
        key: the column with the keys.
    """
    return F.transform(
        F.split(key, "/", -1),
        lambda part: F.replace(F.replace(part, F.lit("~1"), F.lit("/")), F.lit("~0"), F.lit("~")),
    )


def _escaped(column: Column) -> Column:
    text = F.when(
        F.typeof(column).startswith("timestamp"),
        F.raise_error(
            F.lit("a key column is a timestamp; make it a string, such as 2026-11-25 09:30:00+00")
        ),
    ).otherwise(column.cast("string"))
    return F.replace(F.replace(text, F.lit("~"), F.lit("~0")), F.lit("/"), F.lit("~1"))
