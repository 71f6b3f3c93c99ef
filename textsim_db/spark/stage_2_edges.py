"""Second stage: the buckets of documents in, edges between documents that may be similar out.

A bucket gives the edges from its first document to each other document, so the edges of a bucket are as
many as its documents. Edges only say which documents are compared together: they claim nothing. The
driver spreads the components of the edges over partitions.

In an exact corpus most documents share a row with some other document. So an edge needs as many shared
rows as a match has. A third stage counts them, because the rows of a pair are in several partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from textsim_db.base.numba_compiler import BoolArray, Int32Array, Int64Array
from textsim_db.cluster.spanning_forest import join, roots
from textsim_db.compare.packed_pairs import Listed, Members, left_of, lists, right_of
from textsim_db.errors import ConfigurationError
from textsim_db.sketch.exact_prefix import MOST_SHARED
from textsim_db.sketch.ragged import begins_run, offsets_of
from textsim_db.spark.packed_rows import (
    Entries,
    Message,
    from_arrow,
    joined,
    pack_numbers,
    to_arrow,
    unpack_entries,
    unpack_numbers,
)
from textsim_db.spark.stage_1_buckets import SMALL

LARGEST_COUNTED = 64
"""A bucket of an exact corpus with more documents gives edges without counting shared rows.

The pairs of a bucket grow with the square of its documents. A larger number sends more pairs, and makes
components smaller.
"""


class Edges(NamedTuple):
    """The numbers of the two documents of each edge: (edges,) each."""

    left: Int64Array
    right: Int64Array


class Shared(NamedTuple):
    """Pairs of documents, and how many rows they share at least: (pairs,) each."""

    left: Int64Array
    right: Int64Array
    counts: Int64Array


def find_edges(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the edges of a partition of buckets, and pass on the counts."""
    inbox = sort_by_kind(from_arrow(batches))
    entries = joined([unpack_entries(data) for data in inbox.pop("entries", [])])
    yield to_arrow([*_counts(inbox), _edge_message(stars(entries))])


def find_shared_rows(
    batches: Iterable[pa.RecordBatch], partitions: int
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs that share rows in a partition of the rows of an exact corpus."""
    inbox = sort_by_kind(from_arrow(batches))
    entries = joined([unpack_entries(data) for data in inbox.pop("entries", [])])
    is_large = _run_sizes(entries) > LARGEST_COUNTED
    is_direct = is_large | (entries.buckets & SMALL == SMALL)
    messages = [*_counts(inbox), _edge_message(stars(_chosen(entries, is_direct)))]
    shared = pairs_of_buckets(_chosen(entries, ~is_direct))
    targets = (shared.left ^ shared.right).view(np.uint64) % np.uint64(partitions)
    for partition in np.unique(targets).tolist():
        columns = [column[targets == partition] for column in shared]
        messages.append(Message(int(partition), "pairs", pack_numbers(*columns)))
    yield to_arrow(messages)


def count_shared_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the edges of pairs that share enough rows in all partitions, and pass on the rest."""
    messages = list(from_arrow(batches))
    columns = [unpack_numbers(m.data, 3) for m in messages if m.kind == "pairs"]
    shared = Shared(
        *(np.concatenate([np.empty(0, np.int64), *c]) for c in zip(*columns, strict=True))
        if columns
        else (np.empty(0, np.int64),) * 3
    )
    yield to_arrow([*(m for m in messages if m.kind != "pairs"), _edge_message(enough(shared))])


def sort_by_kind(messages: Iterable[Message]) -> dict[str, list[bytes]]:
    inbox: dict[str, list[bytes]] = {}
    for message in messages:
        inbox.setdefault(message.kind, []).append(message.data)
    return inbox


def _counts(inbox: dict[str, list[bytes]]) -> Iterator[Message]:
    """Yield the count of documents, the numbers that several documents have, and the refused rows."""
    lists = [unpack_numbers(data)[0] for data in inbox.get("numbers", [])]
    numbers = np.sort(np.concatenate([np.empty(0, np.int64), *lists]))
    repeated = np.unique(numbers[1:][numbers[1:] == numbers[:-1]])
    yield Message(0, "documents", pack_numbers(np.array([len(numbers)])))
    yield Message(0, "repeated", pack_numbers(repeated))
    for data in inbox.get("refused", []):
        yield Message(0, "refused", data)


def _edge_message(edges: Edges) -> Message:
    return Message(0, "edges", pack_numbers(*spanning_edges(edges)))


def stars(entries: Entries) -> Edges:
    """Return the edges from the first document of each bucket to its other documents."""
    is_first = begins_run(entries.buckets)
    others = np.flatnonzero(~is_first)
    firsts = np.maximum.accumulate(np.where(is_first, np.arange(len(is_first)), 0))[others]
    return Edges(entries.numbers[firsts], entries.numbers[others])


def pairs_of_buckets(entries: Entries) -> Shared:
    """Return the pairs of all buckets, each once, with the number of buckets that the pair shares."""
    numbers, ids = np.unique(entries.numbers, return_inverse=True)
    order = np.lexsort((ids, entries.buckets))
    starts = np.flatnonzero(begins_run(entries.buckets))
    sizes = np.diff(starts, append=len(entries.buckets))
    members = Members(ids[order].astype(np.int32), offsets_of(sizes)).take(sizes > 1)
    none = Listed(np.empty(0, np.int64), np.empty(0, np.uint8))
    pairs, counts = (np.concatenate(c) for c in zip(none, *lists(members), strict=True))
    return Shared(numbers[left_of(pairs)], numbers[right_of(pairs)], counts.astype(np.int64))


def enough(shared: Shared) -> Edges:
    """Return the pairs that share MOST_SHARED rows; a pair may come several times."""
    left, right, counts = shared
    order = np.lexsort((right, left))
    left, right, counts = left[order], right[order], counts[order]
    starts = np.flatnonzero(begins_run(left, right))
    sums = np.add.reduceat(counts, starts) if len(starts) else counts
    chosen = starts[sums >= MOST_SHARED]
    return Edges(left[chosen], right[chosen])


def spanning_edges(edges: Edges) -> Edges:
    """Return edges that connect the same documents, without edges that close a circle."""
    left, right = edges
    _, ends = np.unique(np.concatenate(edges), return_inverse=True)
    joining = join(np.arange(ends.max(initial=-1) + 1), ends[: len(left)], ends[len(left) :])
    return Edges(left[joining], right[joining])


def _run_sizes(entries: Entries) -> Int64Array:
    starts = np.flatnonzero(begins_run(entries.buckets))
    sizes = np.diff(starts, append=len(entries.buckets))
    return np.repeat(sizes, sizes)


def _chosen(entries: Entries, chosen: BoolArray) -> Entries:
    return Entries(entries.buckets[chosen], entries.numbers[chosen])


MOST_EDGES = 30_000_000
"""The edges that the driver joins: 30 million take 20 s and 4.4 GB."""
PARTITION_DOCUMENTS = 5_000
"""PlacedCandidates of a partition. More take more memory in a task; fewer make more tasks."""


class PlacedCandidates(NamedTuple):
    """The documents that share a bucket with another document, each component in one partition."""

    numbers: Int64Array
    """(candidates,)."""
    partitions: Int32Array
    """The partition of each candidate: (candidates,)."""
    sizes: Int64Array
    """The candidates of each partition: (partitions,)."""


def find_components(edges: Edges, repeated: Int64Array) -> PlacedCandidates:
    """Join edges into components, and spread the components over partitions.

    repeated: numbers that several documents have, which are compared with each other too.
    """
    left, right = edges
    if len(left) > MOST_EDGES:
        raise ConfigurationError(
            f"{len(left):,} edges between candidates are too many to join on the driver; at most "
            f"{MOST_EDGES:,} are possible: use a higher threshold, more rows a band, or leave out "
            "boilerplate that many texts share"
        )
    numbers, ends = np.unique(np.concatenate((left, right, repeated)), return_inverse=True)
    parents = np.arange(len(numbers))
    join(parents, ends[: len(left)], ends[len(left) : 2 * len(left)])
    _, labels = np.unique(roots(parents), return_inverse=True)
    partitions = _spread(labels)
    return PlacedCandidates(numbers, partitions, np.bincount(partitions))


def _spread(labels: Int64Array) -> Int32Array:
    """Return the partition of each document; a component stays whole, and the largest come first."""
    sizes = np.bincount(labels)
    count = max(1, -(-len(labels) // PARTITION_DOCUMENTS))
    order = np.argsort(-sizes, kind="stable")
    starts = np.cumsum(sizes[order]) - sizes[order]
    places = np.empty(len(sizes), np.int64)
    places[order] = starts * count // max(1, len(labels))
    return np.unique(places[labels], return_inverse=True)[1].astype(np.int32)
