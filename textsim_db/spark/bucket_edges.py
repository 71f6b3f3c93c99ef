"""Second stage: the buckets of documents in, edges between documents that may be similar out.

A bucket gives the edges from its first document to each other document, so the edges of a bucket are as
many as its documents. Edges only say which documents are compared together: they claim nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from textsim_db.cluster.spanning_forest import join
from textsim_db.spark.messages import (
    Entries,
    Message,
    from_arrow,
    joined,
    pack_numbers,
    to_arrow,
    unpack_entries,
    unpack_numbers,
)
from textsim_db.text.array_types import Int64Array

Edges = tuple[Int64Array, Int64Array]
"""The numbers of the two documents of each edge."""


def find_edges(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the edges of a partition of buckets, the numbers that occur twice, and the counts."""
    inbox = sort_by_kind(from_arrow(batches))
    numbers = [unpack_numbers(data)[0] for data in inbox.get("numbers", [])]
    entries = joined([unpack_entries(data) for data in inbox.pop("entries", [])])
    yield to_arrow(
        [
            *count_documents(numbers),
            *(Message(0, "refused", data) for data in inbox.get("refused", [])),
            Message(0, "edges", pack_numbers(*spanning_edges(stars(entries)))),
        ]
    )


def sort_by_kind(messages: Iterable[Message]) -> dict[str, list[bytes]]:
    """Return the values of messages by their kinds."""
    inbox: dict[str, list[bytes]] = {}
    for message in messages:
        inbox.setdefault(message.kind, []).append(message.data)
    return inbox


def count_documents(parts: list[Int64Array]) -> Iterator[Message]:
    """Yield the count of documents, and the numbers that several documents have."""
    numbers = np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
    repeated = np.unique(numbers[1:][numbers[1:] == numbers[:-1]])
    yield Message(0, "documents", pack_numbers(np.array([len(numbers)])))
    yield Message(0, "repeated", pack_numbers(repeated))


def stars(entries: Entries) -> Edges:
    """Return the edges from the first document of each bucket to its other documents."""
    keys, numbers = entries
    is_first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    others = np.flatnonzero(~is_first)
    firsts = np.maximum.accumulate(np.where(is_first, np.arange(len(keys)), 0))[others]
    return numbers[firsts], numbers[others]


def spanning_edges(edges: Edges) -> Edges:
    """Return edges that connect the same documents, without edges that close a circle."""
    left, right = edges
    _, ends = np.unique(np.concatenate(edges), return_inverse=True)
    joining = join(np.arange(ends.max(initial=-1) + 1), ends[: len(left)], ends[len(left) :])
    return left[joining], right[joining]
