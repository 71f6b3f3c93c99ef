"""The stages of textsim_db.spark in this process, one task after another, without Spark."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.spark.packed_rows import Message, from_arrow, to_arrow, unpack_numbers
from textsim_db.spark.stage_1_buckets import send_buckets
from textsim_db.spark.stage_2_edges import (
    Edges,
    PlacedCandidates,
    count_shared_rows,
    find_components,
    find_edges,
    find_shared_rows,
    sort_by_kind,
)
from textsim_db.spark.stage_3_results import ResultTask

KeyedTexts = Sequence[tuple[str, ...]]
"""Documents as (key, text), or in a scoped corpus as (key, text, scope)."""
Function = Callable[[Iterator[pa.RecordBatch], ResultTask], Iterator[pa.RecordBatch]]


def number_of(key: str) -> int:
    """Return a hash of a key: a signed integer of 64 bits."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), signed=True)


def rows_of(documents: KeyedTexts) -> pa.RecordBatch:
    """Return documents as rows (key, text, scope, number)."""
    keys, texts, *scopes = zip(*documents, strict=True)
    columns = [keys, texts, scopes[0] if scopes else [None] * len(keys)]
    arrays = [pa.array(column, pa.string()) for column in columns]
    numbers = pa.array([number_of(key) for key in keys], pa.int64())
    return pa.RecordBatch.from_arrays([*arrays, numbers], [*"ktsn"])


def receive(
    tasks: list[KeyedTexts], config: CorpusConfig, partitions: int
) -> dict[str, list[bytes]]:
    """Return what the driver receives, if each list of documents is one task."""
    sent = [
        message
        for documents in tasks
        for message in from_arrow(send_buckets(iter([rows_of(documents)]), config, partitions))
    ]
    if config.is_exact:
        shuffled = _shuffle(sent, partitions)
        sent = [m for task in shuffled for m in from_arrow(find_shared_rows(task, partitions))]
    last = count_shared_rows if config.is_exact else find_edges
    shuffled = _shuffle(sent, partitions)
    return sort_by_kind(message for task in shuffled for message in from_arrow(last(task)))


def find(documents: KeyedTexts, config: CorpusConfig, partitions: int) -> PlacedCandidates:
    """Return the candidates of documents."""
    inbox = receive([documents[i::3] for i in range(3) if documents[i::3]], config, partitions)
    parts = [unpack_numbers(data, 2) for data in inbox["edges"]]
    edges = Edges(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return find_components(edges, np.empty(0, np.int64))


def results(
    function: Function,
    documents: KeyedTexts,
    found: PlacedCandidates,
    config: CorpusConfig,
    **task: Any,
) -> list[Any]:
    """Return the rows of a result in order; lists become tuples."""
    numbers = {number_of(document[0]): document for document in documents}
    rows: list[Any] = []
    for partition in range(len(found.sizes)):
        chosen = found.numbers[found.partitions == partition].tolist()
        batch = rows_of([numbers[number] for number in chosen])
        constant = [pa.array([value] * len(chosen), pa.int32()) for value in (partition, 0)]
        batch = pa.RecordBatch.from_arrays([*batch.columns, *constant], [*"ktsnpr"])
        for result in function(iter([batch]), ResultTask(config, found.sizes, **task)):
            for row in zip(*(column.to_pylist() for column in result.columns), strict=True):
                rows.append(tuple(tuple(v) if isinstance(v, list) else v for v in row))
    return sorted(rows)


def _shuffle(messages: list[Message], partitions: int) -> Iterator[list[pa.RecordBatch]]:
    for number in range(partitions):
        yield [to_arrow([m for m in messages if m.partition == number])]
