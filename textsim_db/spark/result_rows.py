"""Third stage: the texts of candidates in; rows with pairs, clusters or duplicates out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from textsim_db.cluster.spanning_forest import Ids, Links
from textsim_db.compare.jaccard import jaccard_pairs
from textsim_db.errors import InputError
from textsim_db.settings import CorpusConfig, Linkage
from textsim_db.spark.accept_documents import accept
from textsim_db.spark.loaded_documents import LoadedDocuments, load
from textsim_db.spark.verify_documents import (
    Verifier,
    complete_groups,
    components,
    keep_by_rank,
)
from textsim_db.text.array_types import Int64Array

PAIRS = "a string, b string, similarity double"
CLUSTERS = "keys array<string>, weakest double, kept string"
DUPLICATES = "key string, kept string, similarity double"
ROWS_AT_ONCE = 100_000


@dataclass(frozen=True)
class Task:
    """The settings of a task of the third stage."""

    config: CorpusConfig
    sizes: Int64Array
    """The number of candidates of each partition."""
    linkage: Linkage = Linkage.KEPT
    descending: bool = False
    """Whether the highest rank is the best."""


class _Partition:
    """The documents of a partition, in the order of their keys; order: the best rank first."""

    def __init__(self, batches: Iterable[pa.RecordBatch], task: Task) -> None:
        rows = sorted(_read(batches, task.sizes), key=lambda row: row[0])
        self.keys = pa.array([key.decode() for key, _, _ in rows], pa.string())
        self.documents: LoadedDocuments = load([text for _, text, _ in rows], task.config)
        self.order = _order([rank for _, _, rank in rows], task.descending)
        self.verifier = Verifier(self.documents, task.config)
        self.task = task

    def duplicates(self) -> Iterator[tuple[Ids, Ids, Any]]:
        """Yield the documents to remove, the documents kept in their places, and similarities."""
        if self.task.linkage is Linkage.KEPT:
            kept = keep_by_rank(self.documents, self.order, self.task.config.threshold)
            removed = np.flatnonzero(kept.kept_by != np.arange(len(kept.kept_by)))
            yield removed, kept.kept_by[removed], kept.similarity[removed]
            return
        places = np.empty(len(self.order), np.int64)
        places[self.order] = np.arange(len(self.order))
        for ids, _ in self.groups():
            ids = ids[np.argsort(places[ids])]
            first, others = np.full(len(ids) - 1, ids[0]), ids[1:]
            forms, rows = self.documents.forms, self.documents.rows
            yield others, first, jaccard_pairs(rows, forms[first], forms[others])

    def groups(self) -> Iterator[tuple[Ids, float]]:
        """Yield the documents of each cluster of linkage single or complete, and the weakest link."""
        if self.task.linkage is Linkage.COMPLETE:
            yield from complete_groups(self.verifier)
            return
        members, labels, weakest = components(self.verifier)
        order = np.argsort(labels, kind="stable")
        bounds = np.flatnonzero(np.diff(labels[order], prepend=-1, append=-1))
        for number, (start, end) in enumerate(pairwise(bounds.tolist())):
            yield members[order[start:end]], float(weakest[number])


def pairs(batches: Iterator[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Yield the verified pairs of the documents of a partition, as rows of PAIRS."""
    partition = _Partition(batches, task)
    for left, right, values in _pairs(partition.documents, partition.verifier.links()):
        a, b = np.minimum(left, right), np.maximum(left, right)
        yield _batch(("a", "b", "similarity"), partition.keys, (a, b), values)


def duplicates(batches: Iterator[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a partition to remove, as rows of DUPLICATES."""
    partition = _Partition(batches, task)
    for removed, kept, values in partition.duplicates():
        yield _batch(("key", "kept", "similarity"), partition.keys, (removed, kept), values)


def clusters(batches: Iterator[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Yield the clusters of the documents of a partition, as rows of CLUSTERS."""
    partition = _Partition(batches, task)
    if task.linkage is Linkage.KEPT:
        rows = _kept_clusters(partition)
    else:
        rows = ((np.sort(ids), weakest, None) for ids, weakest in partition.groups())
    keys, names = partition.keys, ["keys", "weakest", "kept"]
    for ids, weakest, kept in rows:
        arrays = (
            pa.array([keys.take(pa.array(ids)).to_pylist()], pa.list_(pa.string())),
            pa.array([weakest], pa.float64()),
            pa.array([None if kept is None else keys[kept].as_py()], pa.string()),
        )
        yield pa.RecordBatch.from_arrays(list(arrays), names)


def _kept_clusters(partition: _Partition) -> Iterator[tuple[Ids, float, int | None]]:
    for removed, kept, values in partition.duplicates():
        order = np.argsort(kept, kind="stable")
        removed, kept, values = removed[order], kept[order], values[order]
        bounds = np.flatnonzero(np.diff(kept, prepend=-1, append=-1))
        for start, end in pairwise(bounds.tolist()):
            ids = np.sort(np.append(removed[start:end], kept[start]))
            yield ids, float(values[start:end].min()), int(kept[start])


def _read(
    batches: Iterable[pa.RecordBatch], sizes: Int64Array
) -> Iterator[tuple[bytes, bytes, Any]]:
    """Yield the keys, texts and ranks of rows (key, text, number, partition, rank)."""
    numbers: set[int] = set()
    partitions: set[int] = set()
    for batch in batches:
        numbers.update(batch.column(2).to_pylist())
        partitions.update(batch.column(3).unique().to_pylist())
        accepted = accept(batch.column(0), batch.column(1))
        ranks = batch.column(4).to_pylist()
        for place, key, text in zip(*accepted[:3], strict=True):
            yield key, text, ranks[place]
    expected = sum(int(sizes[partition]) for partition in partitions)
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


def _pairs(documents: LoadedDocuments, links: Iterable[Links]) -> Iterator[tuple[Ids, Ids, Any]]:
    """Yield the pairs of documents of each link of texts, and the pairs of copies."""
    members = documents.members
    for form in np.flatnonzero(members.sizes > 1).tolist():
        copies = members.of(form)
        for place in range(len(copies) - 1):
            others = copies[place + 1 :]
            yield np.full(len(others), copies[place]), others, np.ones(len(others))
    for left, right, values in links:
        lefts = members.take(left)
        of_left = lefts.owners()
        yield from _with_right(members, lefts.values, right[of_left], values[of_left])


def _with_right(members: Any, left: Ids, right: Ids, values: Any) -> Iterator[tuple[Ids, Ids, Any]]:
    """Yield pairs of documents from pairs of a document and a text."""
    ends = np.cumsum(members.sizes[right])
    start = 0
    while start < len(left):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + ROWS_AT_ONCE, "right")))
        rights = members.take(right[start:end])
        owners = start + rights.owners()
        yield left[owners], rights.values, values[owners]
        start = end


def _batch(
    names: tuple[str, str, str], keys: pa.Array, documents: tuple[Ids, Ids], values: Any
) -> pa.RecordBatch:
    columns = [keys.take(pa.array(side)) for side in documents]
    return pa.RecordBatch.from_arrays([*columns, pa.array(values, pa.float64())], list(names))
