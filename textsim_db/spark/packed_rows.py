"""Messages between the tasks of two stages: many rows packed into one binary value.

A shuffle of single rows (bucket, document) costs about three times as much as a shuffle of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from textsim_db.text.array_types import HashArray, Int64Array

SCHEMA = "partition int, kind string, data binary"
_ARROW = pa.schema([("partition", pa.int32()), ("kind", pa.string()), ("data", pa.binary())])
_BUCKET_BYTES = 6


class Message(NamedTuple):
    """One value that a task sends to the partition of a later stage; kind says how it is packed."""

    partition: int
    kind: str
    data: bytes


def to_arrow(messages: list[Message]) -> pa.RecordBatch:
    """Return messages as rows of SCHEMA."""
    columns = zip(*messages, strict=True) if messages else ([], [], [])
    return record_batch(columns, _ARROW)


def record_batch(columns: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return columns of values of Python as rows of a schema."""
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def from_arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """Yield the messages of rows of SCHEMA."""
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Message(*row)


class Entries(NamedTuple):
    """The buckets of documents, each bucket with one of its documents: (entries,) each."""

    buckets: HashArray
    """In order: the bucket in 32 bits, followed by 16 bits that tell apart buckets that collide."""
    numbers: Int64Array
    """The number of the document."""


def sorted_entries(buckets: HashArray, numbers: Int64Array) -> Entries:
    """Return entries in the order of their buckets."""
    order = np.argsort(buckets)
    return Entries(buckets[order], numbers[order])


def pack_entries(entries: Entries) -> bytes:
    """Pack entries. Buckets are stored as differences, byte by byte, so that Spark can compress them."""
    steps = np.diff(entries.buckets, prepend=np.uint64(0)).astype("<u8")
    planes = steps.view(np.uint8).reshape(-1, 8)[:, :_BUCKET_BYTES].T
    return planes.tobytes() + entries.numbers.astype("<i8").tobytes()


def unpack_entries(data: bytes) -> Entries:
    """Return the entries that pack_entries() packed."""
    count = len(data) // (_BUCKET_BYTES + 8)
    planes = np.frombuffer(data, np.uint8, _BUCKET_BYTES * count).reshape(_BUCKET_BYTES, count)
    steps = np.zeros((count, 8), np.uint8)
    steps[:, :_BUCKET_BYTES] = planes.T
    buckets = np.cumsum(steps.view("<u8").ravel(), dtype=np.uint64)
    return Entries(buckets, np.frombuffer(data, "<i8", count, _BUCKET_BYTES * count))


def joined(parts: list[Entries]) -> Entries:
    """Return the entries of all parts in the order of their buckets."""
    buckets = np.concatenate([np.empty(0, np.uint64), *(part.buckets for part in parts)])
    numbers = np.concatenate([np.empty(0, np.int64), *(part.numbers for part in parts)])
    return sorted_entries(buckets, numbers)


def pack_numbers(*columns: Int64Array) -> bytes:
    """Pack columns of numbers of the same length."""
    return b"".join(column.astype("<i8").tobytes() for column in columns)


def unpack_numbers(data: bytes, columns: int = 1) -> list[Int64Array]:
    """Return the columns that pack_numbers() packed."""
    return list(np.frombuffer(data, "<i8").reshape(columns, -1))
