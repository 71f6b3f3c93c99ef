"""Removes the near-duplicates of a DataFrame that Spark reads and writes, with a report."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark's users know
from pyspark.sql.types import StringType

from textsim_db.cluster.keep_rule import Preference
from textsim_db.errors import ConfigurationError, InputError
from textsim_db.files.file_kinds import RECORD_KINDS, Kind, is_packed, kind_of
from textsim_db.spark.candidates import Candidates
from textsim_db.spark.columns import RankColumn, quoted

TABLE = "table"
_SEPARATORS = {str(kind): of.separator for kind, of in RECORD_KINDS.items() if of.separator}
_QUOTED: dict[str, Any] = {"header": True, "escape": '"'}
"""CSV as spreadsheets write it; Spark's own defaults differ."""
_JSON = "json"  # Spark's name of JSON lines


class Place(NamedTuple):
    """A folder, a file, or a table of the catalog, that Spark reads or writes."""

    name: str
    format: str

    @classmethod
    def parse(cls, name: str, format_name: str) -> Place:
        """Return a place; the format "auto" follows from the ending of the name."""
        if format_name != "auto":
            return cls(name, _JSON if format_name == Kind.JSONL else format_name)
        path = name.rstrip("/")
        kind = kind_of(path)
        if kind is Kind.JSONL or path.lower().removesuffix(".gz").endswith(".json"):
            return cls(name, _JSON)
        if kind is Kind.TEXT:
            raise ConfigurationError(
                f"the ending of {name} names no format; give --format parquet, json, csv, tsv, "
                f"{TABLE}, or another format that Spark reads, such as delta"
            )
        return cls(name, kind)

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a DataFrame."""
        if self.format == TABLE:
            return spark.read.table(self.name)
        if self.format not in _SEPARATORS:
            return spark.read.format(self.format).load(self.name)
        reader = spark.read.format("csv").options(sep=_SEPARATORS[self.format], multiLine=True)
        return reader.options(**_QUOTED).load(self.name)

    def write(self, rows: DataFrame) -> None:
        """Write rows; the folder or table must not exist."""
        if self.format == TABLE:
            rows.write.saveAsTable(self.name)
            return
        is_csv = self.format in _SEPARATORS
        writer = rows.write.format("csv" if is_csv else self.format)
        if is_csv:
            writer = writer.options(sep=_SEPARATORS[self.format], **_QUOTED)
        if is_packed(self.name.rstrip("/")):
            writer = writer.option("compression", "gzip")
        writer.save(self.name)

    def check_absent(self, spark: SparkSession) -> None:
        """Raise InputError if the folder or table exists; called before long work."""
        if self.format == TABLE:
            exists = spark.catalog.tableExists(self.name)
        else:
            context: Any = spark.sparkContext
            path = context._jvm.org.apache.hadoop.fs.Path(self.name)
            exists = path.getFileSystem(context._jsc.hadoopConfiguration()).exists(path)
        if exists:
            raise InputError(f"{self.name} exists; remove it, or name another place")


class Counts(NamedTuple):
    """The counts of a deduplication."""

    documents: int
    """The documents without the refused rows."""
    refused: int
    removed: int
    clusters: int


def rank_of(rows: DataFrame, text: str, keep: str | None) -> RankColumn:
    """Return the rank for a rule such as "longest" or "max:score"; None: the lowest key stays."""
    if keep is None:
        return RankColumn()
    rule, column = Preference.parse(keep)
    if rule in ("first", "last"):
        raise ConfigurationError(
            f'keep is "{keep}", but the rows of Spark have no first and last; name a column that has '
            "the order, such as min:COLUMN"
        )
    if column is None:
        return RankColumn(F.length(quoted(text)), rule == "longest")
    if column not in rows.columns:
        raise ConfigurationError(f'keep is "{keep}", but there is no column "{column}"')
    if isinstance(rows.schema[column].dataType, StringType):
        return RankColumn(_comparable(rows, column, keep), rule == "max")
    return RankColumn(column, rule == "max")


def _comparable(rows: DataFrame, column: str, keep: str) -> Any:
    """Return a column of texts as numbers if all are numbers, and as texts if none is."""
    value = F.col(quoted(column))
    present = F.when((value != "") & (F.lower(F.trim(value)) != "nan"), value)
    number = present.try_cast("double")
    row = rows.agg(F.count(present).alias("present"), F.count(number).alias("numbers")).first()
    assert row is not None
    if row["numbers"] == row["present"]:
        return number
    if row["numbers"]:
        raise ConfigurationError(
            f'keep is "{keep}", but the column mixes numbers and texts: {row["numbers"]} of '
            f"{row['present']} values are numbers; use only numbers or only texts"
        )
    return present


def count_removed(candidates: Candidates, duplicates: DataFrame) -> Counts:
    """Return the counts of a deduplication."""
    row = duplicates.agg(F.count("key").alias("removed"), F.countDistinct("kept").alias("kept"))
    counted = row.first()
    assert counted is not None
    return Counts(candidates.documents, candidates.refused, counted["removed"], counted["kept"])


def write_report(path: str, candidates: Candidates, duplicates: DataFrame, counts: Counts) -> None:
    """Write JSON lines to a new folder: the clusters, the counts, and the refused rows by name."""
    spark = duplicates.sparkSession
    removed = F.sort_array(F.collect_list(F.struct("key", "similarity")))
    clusters = duplicates.groupBy("kept").agg(removed.alias("removed"))
    clusters.select(F.struct(F.col("kept").alias("key")).alias("kept"), "removed").write.json(
        f"{path}/clusters"
    )
    refused = spark.createDataFrame(candidates.refusals, "key string, reason string").coalesce(1)
    refused.write.json(f"{path}/refused")
    fields = ", ".join(f"{name} long" for name in Counts._fields)
    spark.createDataFrame([counts], fields).coalesce(1).write.json(f"{path}/counts")
