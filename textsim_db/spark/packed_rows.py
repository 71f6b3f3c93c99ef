"""Messages between the tasks of two stages: many rows packed into one binary value.

A shuffle of single rows (bucket, document) costs about three times as much as a shuffle of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from textsim_db.text.array_types import HashArray, Int64Array

SCHEMA = "partition int, kind string, data binary"
_ARROW = pa.schema([("partition", pa.int32()), ("kind", pa.string()), ("data", pa.binary())])
_KEY_BYTES = 6


class Message(NamedTuple):
    """One value that a task sends to the partition of a later stage; kind says how it is packed."""

    partition: int
    kind: str
    data: bytes


def to_arrow(messages: list[Message]) -> pa.RecordBatch:
    """Return messages as rows of SCHEMA."""
    columns = zip(*messages, strict=True) if messages else ([], [], [])
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def from_arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """Yield the messages of rows of SCHEMA."""
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Message(*row)


class Entries(NamedTuple):
    """The buckets of documents: uint64 keys below 2^48 in order, and int64 numbers of documents."""

    keys: HashArray
    numbers: Int64Array


def sorted_entries(keys: HashArray, numbers: Int64Array) -> Entries:
    """Return entries in the order of their keys."""
    order = np.argsort(keys)
    return Entries(keys[order], numbers[order])


def pack_entries(entries: Entries) -> bytes:
    """Pack entries. Keys are stored as differences, byte by byte, so that Spark can compress them."""
    steps = np.diff(entries.keys, prepend=np.uint64(0)).astype("<u8")
    planes = steps.view(np.uint8).reshape(-1, 8)[:, :_KEY_BYTES].T
    return planes.tobytes() + entries.numbers.astype("<i8").tobytes()


def unpack_entries(data: bytes) -> Entries:
    """Return the entries that pack_entries() packed."""
    count = len(data) // (_KEY_BYTES + 8)
    planes = np.frombuffer(data, np.uint8, _KEY_BYTES * count).reshape(_KEY_BYTES, count)
    steps = np.zeros((count, 8), np.uint8)
    steps[:, :_KEY_BYTES] = planes.T
    keys = np.cumsum(steps.view("<u8").ravel(), dtype=np.uint64)
    return Entries(keys, np.frombuffer(data, "<i8", count, _KEY_BYTES * count))


def joined(parts: list[Entries]) -> Entries:
    """Return the entries of all parts in the order of their keys."""
    keys = np.concatenate([np.empty(0, np.uint64), *(part.keys for part in parts)])
    numbers = np.concatenate([np.empty(0, np.int64), *(part.numbers for part in parts)])
    return sorted_entries(keys, numbers)


def pack_numbers(*columns: Int64Array) -> bytes:
    """Pack columns of numbers of the same length."""
    return b"".join(column.astype("<i8").tobytes() for column in columns)


def unpack_numbers(data: bytes, columns: int = 1) -> list[Int64Array]:
    """Return the columns that pack_numbers() packed."""
    return list(np.frombuffer(data, "<i8").reshape(columns, -1))
