"""Third stage: the texts of candidates in; rows with pairs, clusters or duplicates out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.cluster.join import Join
from textsim_db.cluster.linkages import groups, removals
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare.match_rule import Criterion
from textsim_db.errors import InputError
from textsim_db.measures.by_name import JACCARD
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.settings.named_values import Linkage
from textsim_db.spark.columns import accept
from textsim_db.spark.packed_rows import load
from textsim_db.text.hashing import part_of_scope

PAIR_COLUMNS = "a string, b string, similarity double"
CLUSTER_COLUMNS = "keys array<string>, weakest double, kept string"
DUPLICATE_COLUMNS = "key string, kept string, similarity double"


@dataclass(frozen=True)
class ResultTask:
    config: CorpusConfig
    sizes: Int64Array
    """The number of candidates of each partition."""
    linkage: Linkage = Linkage.KEPT
    descending: bool = False
    """Whether the highest rank is the best."""


class _ResultRow(NamedTuple):
    """A document that is compared."""

    key: bytes
    text: bytes
    part: int
    """0 if the documents have no scopes."""
    rank: Any


class _Partition:
    """The documents of a partition, numbered in the order of their keys."""

    def __init__(
        self, batches: Iterable[pa.RecordBatch], task: ResultTask, for_merges: bool
    ) -> None:
        rows = sorted(_read(batches, task), key=lambda row: row.key)
        self.keys = pa.array([row.key.decode() for row in rows], pa.string())
        parts = np.array([row.part for row in rows], np.int64) if task.config.scoped else None
        documents = load([row.text for row in rows], task.config, parts, for_merges)
        criterion = Criterion(JACCARD, task.config.threshold, for_merges=for_merges)
        self.join = Join(documents, criterion)
        order = _order([row.rank for row in rows], task.descending)
        self._places = np.empty(len(order), np.int64)
        self._places[order] = np.arange(len(order))

    def ranked(self, ids: Ids) -> Ids:
        """Sort documents by rank, the best first."""
        return ids[np.argsort(self._places[ids])]


def pairs(batches: Iterator[pa.RecordBatch], task: ResultTask) -> Iterator[pa.RecordBatch]:
    """Yield the verified pairs of the documents of a partition, as rows of PAIR_COLUMNS."""
    partition = _Partition(batches, task, for_merges=False)
    for left, right, values in partition.join.pairs():
        a, b = np.minimum(left, right), np.maximum(left, right)
        yield _batch(("a", "b", "similarity"), partition.keys, (a, b), values)


def duplicates(batches: Iterator[pa.RecordBatch], task: ResultTask) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a partition to remove, as rows of DUPLICATE_COLUMNS."""
    partition = _Partition(batches, task, for_merges=True)
    for removed, kept, values in removals(partition.join, task.linkage, partition.ranked):
        yield _batch(("key", "kept", "similarity"), partition.keys, (removed, kept), values)


def clusters(batches: Iterator[pa.RecordBatch], task: ResultTask) -> Iterator[pa.RecordBatch]:
    """Yield the clusters of the documents of a partition, as rows of CLUSTER_COLUMNS."""
    partition = _Partition(batches, task, for_merges=True)
    keys, names = partition.keys, ["keys", "weakest", "kept"]
    for ids, weakest, kept in groups(partition.join, task.linkage, partition.ranked):
        arrays = [
            pa.array([keys.take(pa.array(np.sort(ids))).to_pylist()], pa.list_(pa.string())),
            pa.array([weakest], pa.float64()),
            pa.array([None if kept is None else keys[kept].as_py()], pa.string()),
        ]
        yield pa.RecordBatch.from_arrays(arrays, names)


def _read(batches: Iterable[pa.RecordBatch], task: ResultTask) -> Iterator[_ResultRow]:
    """Yield the documents of rows (key, text, scope, number, partition, rank)."""
    numbers: set[int] = set()
    partitions: set[int] = set()
    for batch in batches:
        numbers.update(batch.column(3).to_pylist())
        partitions.update(batch.column(4).unique().to_pylist())
        places, keys, texts, scopes, _ = accept(batch, task.config.scoped)
        ranks = batch.column(5).take(pa.array(places, pa.int64())).to_pylist()
        parts = repeat(0) if scopes is None else map(part_of_scope, scopes)
        yield from map(_ResultRow, keys, texts, parts, ranks)
    expected = sum(int(task.sizes[partition]) for partition in partitions)
    if len(numbers) != expected:
        raise InputError(
            f"a second reading of the DataFrame has {len(numbers)} of {expected} documents of the first "
            "reading; cache the DataFrame, or write it to a table first"
        )


def _order(ranks: list[Any], descending: bool) -> Ids:
    """Return the documents by rank, and then by key; documents without a rank come last."""
    present = [i for i, rank in enumerate(ranks) if not _is_missing(rank)]
    present.sort(key=lambda i: ranks[i], reverse=descending)
    missing = np.setdiff1d(np.arange(len(ranks)), present)
    return np.concatenate((np.array(present, np.int64), missing))


def _is_missing(rank: Any) -> bool:
    return rank is None or (isinstance(rank, float) and math.isnan(rank))


def _batch(
    names: tuple[str, str, str], keys: pa.Array, documents: tuple[Ids, Ids], values: Any
) -> pa.RecordBatch:
    columns = [keys.take(pa.array(side)) for side in documents]
    return pa.RecordBatch.from_arrays([*columns, pa.array(values, pa.float64())], list(names))
