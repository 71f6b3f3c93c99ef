"""The candidates of a DataFrame, and the pairs, clusters and duplicates among them."""

from __future__ import annotations

import json
import logging
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import (
    Column,
    DataFrame,
    functions as F,  # noqa: N812 - the name that PySpark's users know
)

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.errors import ConfigurationError, suggest_settings
from textsim_db.results import Refusal
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import PAIR_SETTINGS, CorpusConfig, CorpusSettings
from textsim_db.settings.named_values import LinkageName, check_linkage
from textsim_db.spark import stage_3_results
from textsim_db.spark.columns import FrameColumns
from textsim_db.spark.packed_rows import SCHEMA, from_arrow, unpack_numbers
from textsim_db.spark.stage_1_buckets import MOST_NAMED, send_buckets, with_common
from textsim_db.spark.stage_2_edges import (
    Edges,
    count_shared_rows,
    find_components,
    find_edges,
    find_shared_rows,
    sort_by_kind,
)
from textsim_db.spark.stage_3_results import (
    CLUSTER_COLUMNS,
    DUPLICATE_COLUMNS,
    PAIR_COLUMNS,
    ResultTask,
)
from textsim_db.text.stop_words import with_lists

log = logging.getLogger(__name__)


PARTITION_BYTES = 128 * 1024 * 1024
"""The bytes of the DataFrame for each partition of buckets. More make fewer tasks, with more memory."""
UNKNOWN_BYTES = 2**60
"""From this estimate on Spark does not know the size of a DataFrame."""
MOST_TASKS = 50
MOST_PARTITIONS = 100_000
_SHOWN_REPEATED = 3
_REMOVED = "textsim_removed_key"


class Candidates:
    """The documents of a DataFrame that share buckets, which find_candidates() returns.

    The methods return DataFrames that Spark computes when they are used; each use reads the
    DataFrame again. Cache a result if you use it twice.
    """

    def __init__(
        self, frame: DataFrame, columns: FrameColumns, config: CorpusConfig, partitions: int
    ) -> None:
        self._frame = frame
        self._columns = columns
        self.config = with_common(columns.numbered(frame), config)
        """The settings, complete."""
        inbox = sort_by_kind(from_arrow(self._edges(partitions).toArrow().to_batches()))
        self.documents = sum(int(unpack_numbers(data)[0][0]) for data in inbox["documents"])
        """The number of documents that were compared."""
        refused = [json.loads(data) for data in inbox.get("refused", [])]
        self.refused = sum(count for count, _ in refused)
        """The number of rows that cannot be compared."""
        self.refusals = sorted(Refusal(*row) for _, rows in refused for row in rows)[:MOST_NAMED]
        """The first thousand of the refused rows by key, with the reasons."""
        repeated = np.concatenate([unpack_numbers(data)[0] for data in inbox["repeated"]])
        self._check_keys(repeated)
        columns_of_edges = zip(*(unpack_numbers(data, 2) for data in inbox["edges"]), strict=True)
        edges = Edges(*(np.concatenate(column) for column in columns_of_edges))
        self._components = find_components(edges, repeated)
        self.candidates = len(self._components.numbers)
        """The number of documents that share a bucket with another document."""
        log.info(
            "%s of %s documents are candidates",
            self.candidates,
            self.documents,
            extra={"candidates": self.candidates, "documents": self.documents},
        )

    def pairs(self) -> DataFrame:
        """Return the pairs of similar documents: (a, b, similarity), with a < b.

        The rows are those of Corpus.pairs(), in any order: with recall=1 every pair, by default 95 % of
        the pairs at the threshold, and more of those above it.
        """
        return self._result(stage_3_results.pairs, PAIR_COLUMNS)

    def clusters(
        self,
        linkage: LinkageName = "single",
        rank: str | Column | None = None,
        descending: bool = False,
    ) -> DataFrame:
        """Return the clusters of similar documents: (keys, weakest, kept).

        The pairs are those of pairs(). The rows are those of Corpus.clusters(), in any order; the keys
        of a cluster are in order.
        """
        return self._result(stage_3_results.clusters, CLUSTER_COLUMNS, linkage, rank, descending)

    def duplicates(
        self,
        linkage: LinkageName = "kept",
        rank: str | Column | None = None,
        descending: bool = False,
    ) -> DataFrame:
        """Return the documents to remove so that each cluster keeps one: (key, kept, similarity).

        The pairs are those of pairs(). The rows are those of Corpus.duplicates(), in any order. The
        document with the lowest rank stays, with descending the one with the highest. Ties go to the
        lowest key in C order. A document whose rank is null or NaN comes last.
        """
        return self._result(
            stage_3_results.duplicates, DUPLICATE_COLUMNS, linkage, rank, descending
        )

    def dedupe(
        self,
        linkage: LinkageName = "kept",
        rank: str | Column | None = None,
        descending: bool = False,
    ) -> DataFrame:
        """Return the rows of the DataFrame without the documents that duplicates() returns.

        Rows that cannot be compared stay.
        """
        duplicates = self.duplicates(linkage, rank, descending)
        removed = F.broadcast(duplicates.select(F.col("key").alias(_REMOVED)))
        is_removed = self._columns.key_column() == F.col(_REMOVED)
        return self._frame.join(removed, is_removed, "left_anti")

    def _edges(self, partitions: int) -> DataFrame:
        """Return messages with the edges between candidates, and the counts of documents."""
        config = self.config
        log.info("computing the buckets of all documents")
        messages = (
            self._columns.numbered(self._frame)
            .mapInArrow(lambda batches: send_buckets(batches, config, partitions), SCHEMA)
            .repartitionById(partitions, "partition")
        )
        if not config.is_exact:
            return messages.mapInArrow(find_edges, SCHEMA)
        return (
            messages.mapInArrow(lambda batches: find_shared_rows(batches, partitions), SCHEMA)
            .repartitionById(partitions, "partition")
            .mapInArrow(count_shared_rows, SCHEMA)
        )

    def _check_keys(self, repeated: Int64Array) -> None:
        """Raise ConfigurationError if two rows have one key; different keys may have one number."""
        if not len(repeated):
            return
        numbers = F.broadcast(self._local_frame(number=repeated))
        check_keys(self._columns.numbered(self._frame).join(numbers, "number"), self._columns.key)

    def _result(
        self,
        function: Any,
        schema: str,
        linkage: LinkageName = "kept",
        rank: str | Column | None = None,
        descending: bool = False,
    ) -> DataFrame:
        """Return the results of a function over the texts of candidates, component by component."""
        numbers, partitions, sizes = self._components
        task = ResultTask(self.config, sizes, check_linkage(linkage), descending)
        chosen = F.broadcast(self._local_frame(number=numbers, partition=partitions))
        return (
            self._columns.numbered(self._frame, rank)
            .join(chosen, "number")
            .select("key", "text", "scope", "number", "partition", "rank")
            .repartitionById(max(1, len(sizes)), "partition")
            .mapInArrow(lambda batches: function(batches, task), schema)
        )

    def _local_frame(self, **columns: Any) -> DataFrame:
        return self._frame.sparkSession.createDataFrame(pa.table(columns))


@suggest_settings(*PAIR_SETTINGS)
def find_candidates(
    df: DataFrame,
    key: str = "id",
    text: str = "text",
    scope: str | None = None,
    partitions: int | None = None,
    **settings: Any,
) -> Candidates:
    """Compute the buckets of all documents of a DataFrame, and return the documents that share any.

    Its methods return the results: pairs(), clusters(), duplicates() and dedupe().

    Args:
        df: a DataFrame with one row for each document. It is read once here, and once for each
            result; both times it must have the same rows.
        key: the column with the keys: strings or integers, which are unique.
        text: the column with the texts.
        scope: the column with the scopes, such as tenants, as in a scoped corpus: documents of different
            scopes are not compared. Its values become text.
        partitions: the partitions of the buckets. By default two for each core, and more if Spark
            expects more than 128 MB of the DataFrame for each.
        settings: the settings of a corpus: shingle, threshold, recall, num_hashes, bands, rows, seed,
            stop_words, guards, guard_words. Guards keep documents apart in clusters() and duplicates();
            pairs() lists siblings, too.

    Raises:
        ConfigurationError: a setting or a column is not possible, two rows have the same key, or the
            candidates are too many.
    """
    columns = FrameColumns(key, text, scope)
    config = with_lists(CorpusSettings(**settings, scoped=scope is not None)).complete()
    columns.check(df)
    return Candidates(df, columns, config, checked_partitions(df, partitions))


def check_keys(rows: DataFrame, column: str) -> None:
    """Raise ConfigurationError if two rows have one key; rows: with the column key. It runs a job."""
    counted = rows.groupBy("key").count().where("count > 1").orderBy("key")
    keys = [row["key"] for row in counted.limit(_SHOWN_REPEATED + 1).collect()]
    if keys:
        shown = ", ".join(f'"{key}"' for key in keys[:_SHOWN_REPEATED])
        more = ", ..." if len(keys) > _SHOWN_REPEATED else ""
        raise ConfigurationError(
            f'the column "{column}" has several rows with the key {shown}{more}; keys must be unique: '
            "remove the other rows, for example with dropDuplicates()"
        )


def checked_partitions(df: DataFrame, partitions: int | None) -> int:
    """Return how many partitions a call uses, given its argument; raises ConfigurationError.

    By default Spark's estimate of the size decides, without a job. Spark estimates 8 EB if it does not
    know, as for an RDD. The estimate of a join may be far too large, so a core gets at most MOST_TASKS
    partitions.
    """
    if partitions is not None:
        return check_count(partitions, "partitions", 1, MOST_PARTITIONS)
    cores = df.sparkSession.sparkContext.defaultParallelism
    plan: Any = df
    size = int(plan._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())
    wanted = min(size // PARTITION_BYTES, MOST_TASKS * cores) if size < UNKNOWN_BYTES else 0
    return min(max(2 * cores, wanted), MOST_PARTITIONS)
