"""The columns of a DataFrame with key, text, scope and rank, checked before Spark reads a row."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import (
    Column,
    DataFrame,
    functions as F,  # noqa: N812 - the name that PySpark's users know
    types as T,  # noqa: N812
)

from textsim_db.errors import ConfigurationError, suggestion

_COMPARABLE = (
    T.NumericType,
    T.StringType,
    T.BooleanType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


class RankColumn(NamedTuple):
    """Which document of a cluster stays: the one with the lowest value of a column, or the highest."""

    column: str | Column | None = None
    descending: bool = False


class FrameColumns(NamedTuple):
    """The names of the columns with the key, the text and the scope."""

    key: str
    text: str
    scope: str | None = None
    """None if the documents have no scopes."""

    def check(self, frame: DataFrame) -> None:
        """Raise ConfigurationError unless the columns exist and have types that can be compared."""
        if not isinstance(frame, DataFrame):
            raise ConfigurationError(
                f"df has the type {type(frame).__name__}; expected a DataFrame of Spark, which "
                "spark.createDataFrame makes of a list or a frame of pandas"
            )
        _check_column(frame, "key", self.key, (T.StringType, T.IntegralType))
        _check_column(frame, "text", self.text, (T.StringType,))
        if self.scope is not None:
            _check_column(frame, "scope", self.scope, (T.DataType,))

    def key_column(self) -> Column:
        """Return the key as a text."""
        return F.col(quoted(self.key)).cast("string")

    def documents(self) -> list[Column]:
        """Return key, text and scope as texts; the scope is null if the documents have no scopes."""
        scope = F.lit(None) if self.scope is None else F.col(quoted(self.scope))
        return [
            self.key_column().alias("key"),
            F.col(quoted(self.text)).alias("text"),
            scope.cast("string").alias("scope"),
        ]

    def numbered(self, frame: DataFrame, rank: str | Column | None = None) -> DataFrame:
        """Return rows (key, text, scope, number, rank); the number is a hash of the key, of 64 bits."""
        rows = frame.select(
            *self.documents(),
            F.xxhash64(self.key_column()).alias("number"),
            _rank_column(frame, rank).alias("rank"),
        )
        kind = rows.schema["rank"].dataType
        if rank is not None and not isinstance(kind, _COMPARABLE):
            raise ConfigurationError(
                f"rank has the type {kind.simpleString()}; expected numbers, strings, dates or times"
            )
        return rows


def _rank_column(frame: DataFrame, rank: str | Column | None) -> Column:
    if rank is None:
        return F.lit(None).cast("int")
    if not isinstance(rank, str):
        return rank
    if rank in ("first", "last") and rank not in frame.columns:
        raise ConfigurationError(
            f'rank is "{rank}", but a DataFrame has no first and last row; name a column that has the '
            "order, such as a number or a time"
        )
    _check_column(frame, "rank", rank, (T.DataType,))
    return F.col(quoted(rank))


def _check_column(frame: DataFrame, option: str, name: str, types: tuple[Any, ...]) -> None:
    names = frame.columns
    there = [field for field in frame.schema.fields if field.name == name]
    alike = [other for other in names if other.lower() == name.lower()]
    if there and len(alike) > 1 and not _is_case_sensitive(frame):
        both = " and ".join(f'"{other}"' for other in alike)
        raise ConfigurationError(
            f'{option}="{name}" names {len(alike)} columns of the DataFrame, {both}: Spark compares '
            "names without case; rename all but one, or set spark.sql.caseSensitive to true"
        )
    if len(there) != 1:
        count = f"{len(there)} columns" if there else "no column"
        shown = ", ".join(f'"{column}"' for column in names[:8]) + (", ..." if names[8:] else "")
        near = "" if there else suggestion(name, names)
        raise ConfigurationError(
            f'{option}="{name}" names {count} of the DataFrame; expected one of {shown}{near}'
        )
    if not isinstance(there[0].dataType, types):
        expected = "strings" if option == "text" else "strings or integers"
        raise ConfigurationError(
            f'{option}="{name}" is a column of type {there[0].dataType.simpleString()}; expected '
            f'{expected}: cast the column, for example with col("{name}").cast("string")'
        )


def _is_case_sensitive(frame: DataFrame) -> bool:
    return frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"


def quoted(name: str) -> str:
    """Return the name of a column as an expression that means only this column."""
    return f"`{name.replace('`', '``')}`"
