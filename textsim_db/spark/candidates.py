"""The candidates of a DataFrame, and the pairs, clusters and duplicates among them."""

from __future__ import annotations

import json
import logging
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark's users know
from pyspark.sql.types import IntegralType, StringType

from textsim_db.errors import ConfigurationError, suggestion
from textsim_db.results import Refusal
from textsim_db.settings import CorpusConfig, CorpusSettings, check_count, check_linkage
from textsim_db.spark import result_rows
from textsim_db.spark.bucket_edges import find_edges, sort_by_kind
from textsim_db.spark.components import find_components
from textsim_db.spark.messages import SCHEMA, from_arrow, unpack_numbers
from textsim_db.spark.result_rows import CLUSTERS, DUPLICATES, PAIRS, Task
from textsim_db.spark.send_buckets import MOST_NAMED, send_buckets
from textsim_db.text.stop_words import with_lists

log = logging.getLogger(__name__)

_SHOWN_KEYS = 3


class Candidates:
    """The documents of a DataFrame that share buckets, which find_candidates() returns.

    The methods return DataFrames that Spark computes when they are used. Cache a DataFrame if you use
    it twice.

    - `config`: the settings, complete.
    - `documents`: the number of documents that were compared.
    - `refused`: the number of rows that cannot be compared.
    - `refusals`: the first thousand of these rows by key, with the reasons.
    - `candidates`: the number of documents that share a bucket with another document.
    """

    def __init__(self, source: DataFrame, columns: _Columns, config: CorpusConfig) -> None:
        self._source = source
        self._columns = columns
        self.config = config
        self._find()

    def pairs(self) -> DataFrame:
        """Return all pairs of similar documents: (a, b, similarity), with a < b.

        The rows are those of Corpus.pairs(), in any order.
        """
        return self._result(result_rows.pairs, PAIRS)

    def clusters(self, linkage: str = "single", rank: str | Column | None = None) -> DataFrame:
        """Return the clusters of similar documents: (keys, weakest, kept).

        The rows are those of Corpus.clusters(), in any order.
        """
        return self._result(result_rows.clusters, CLUSTERS, linkage, rank)

    def duplicates(self, linkage: str = "kept", rank: str | Column | None = None) -> DataFrame:
        """Return the documents to remove so that each cluster keeps one: (key, kept, similarity).

        The rows are those of Corpus.duplicates(), in any order.
        """
        return self._result(result_rows.duplicates, DUPLICATES, linkage, rank)

    def dedupe(self, linkage: str = "kept", rank: str | Column | None = None) -> DataFrame:
        """Return the rows of the DataFrame without the documents to remove."""
        removed = self.duplicates(linkage, rank).select(F.col("key").alias(_REMOVED))
        is_removed = self._columns.key_column() == F.col(_REMOVED)
        return self._source.join(F.broadcast(removed), is_removed, "left_anti")

    def _find(self) -> None:
        config, partitions = self.config, self._columns.partitions
        source = self._columns.numbered(self._source)
        log.info("stage 1 of 2: computing the buckets of all documents")
        messages = source.mapInArrow(
            lambda batches: send_buckets(batches, config, partitions), SCHEMA
        ).repartitionById(partitions, "partition")
        edges = messages.mapInArrow(find_edges, SCHEMA)
        inbox = sort_by_kind(from_arrow(edges.toArrow().to_batches()))
        self.documents = sum(int(unpack_numbers(data)[0][0]) for data in inbox["documents"])
        self._set_refused(inbox.get("refused", []))
        repeated = np.concatenate([unpack_numbers(data)[0] for data in inbox["repeated"]])
        self._check_keys(repeated)
        columns = [unpack_numbers(data, 2) for data in inbox["edges"]]
        left, right = (np.concatenate(column) for column in zip(*columns, strict=True))
        self._components = find_components((left, right), repeated)
        self.candidates = len(self._components.numbers)
        log.info("stage 2 of 2: %s of %s documents are candidates", self.candidates, self.documents)

    def _set_refused(self, parts: list[bytes]) -> None:
        loaded = [json.loads(data) for data in parts]
        self.refused = sum(count for count, _ in loaded)
        named = sorted(Refusal(*row) for _, rows in loaded for row in rows)
        self.refusals = named[:MOST_NAMED]

    def _check_keys(self, repeated: Any) -> None:
        """Raise ConfigurationError if two rows have one key; different keys may have one number."""
        if not len(repeated):
            return
        session = self._source.sparkSession
        numbers = session.createDataFrame(pa.table({"number": repeated}))
        rows = self._columns.numbered(self._source).join(F.broadcast(numbers), "number")
        counted = rows.groupBy("key").count().where("count > 1").orderBy("key")
        keys = [row["key"] for row in counted.limit(_SHOWN_KEYS + 1).collect()]
        if keys:
            shown = ", ".join(f'"{key}"' for key in keys[:_SHOWN_KEYS])
            more = ", ..." if len(keys) > _SHOWN_KEYS else ""
            raise ConfigurationError(
                f'the column "{self._columns.key}" has several rows with the key {shown}{more}; keys '
                "must be unique: remove the other rows, for example with dropDuplicates()"
            )

    def _result(
        self, function: Any, schema: str, linkage: str = "kept", rank: str | Column | None = None
    ) -> DataFrame:
        config, sizes = self.config, self._components.sizes
        task = Task(config, sizes, check_linkage(linkage))
        source = self._columns.numbered(self._source, rank)
        session = self._source.sparkSession
        chosen = session.createDataFrame(
            pa.table({"number": self._components.numbers, "partition": self._components.partitions})
        )
        rows = source.join(F.broadcast(chosen), "number")
        rows = rows.select("key", "text", "number", "partition", "rank")
        rows = rows.repartitionById(max(1, len(sizes)), "partition")
        return rows.mapInArrow(lambda batches: function(batches, task), schema)


_REMOVED = "textsim_removed"


class _Columns:
    """The columns with the key and the text of a DataFrame, checked; partitions: of the buckets."""

    def __init__(self, source: DataFrame, key: str, text: str, partitions: int | None) -> None:
        _check_column(source, "key", key, (StringType, IntegralType))
        _check_column(source, "text", text, (StringType,))
        self.key = key
        self.text = text
        if partitions is None:
            partitions = source.sparkSession.sparkContext.defaultParallelism * 2
            partitions = max(partitions, source.rdd.getNumPartitions())
        self.partitions = check_count(partitions, "partitions", 1, 100_000)

    def key_column(self) -> Column:
        """Return the key as a text."""
        return F.col(f"`{self.key}`").cast("string")

    def numbered(self, source: DataFrame, rank: str | Column | None = None) -> DataFrame:
        """Return rows (key, text, number, rank); the number is a hash of the key, of 64 bits."""
        key = self.key_column()
        by = F.lit(None) if rank is None else F.col(rank) if isinstance(rank, str) else rank
        return source.select(
            key.alias("key"),
            F.col(f"`{self.text}`").alias("text"),
            F.xxhash64(key).alias("number"),
            by.alias("rank"),
        )


def _check_column(source: DataFrame, option: str, name: str, types: tuple[Any, ...]) -> None:
    there = [field for field in source.schema.fields if field.name == name]
    if len(there) != 1:
        count = f"{len(there)} columns" if there else "no column"
        names = source.columns
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


def find_candidates(
    df: DataFrame,
    key: str = "id",
    text: str = "text",
    partitions: int | None = None,
    **settings: Any,
) -> Candidates:
    """Compare the buckets of all documents of a DataFrame, and return the candidates."""
    try:
        chosen = CorpusSettings(**settings)
    except TypeError as error:
        raise ConfigurationError(str(error)) from None
    config = with_lists(chosen).complete()
    return Candidates(df, _Columns(df, key, text, partitions), config)


def pairs(df: DataFrame, key: str = "id", text: str = "text", **settings: Any) -> DataFrame:
    """Return all pairs of similar documents of a DataFrame: (a, b, similarity), with a < b."""
    return find_candidates(df, key, text, **settings).pairs()
