"""Rows of documents between the tasks of two stages, and in the memory of a task.

Many rows are packed into one binary value: a shuffle of single rows (bucket, document) costs about
three times as much. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from textsim_db.base.numba_compiler import HashArray, Int64Array
from textsim_db.cluster.loaded_documents import LoadedDocuments, rows_of
from textsim_db.errors import InputError
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.sketch.ragged import (
    Parts,
    Ragged,
    merge_parts,
    numbered,
)
from textsim_db.sketch.sketch_texts import sketch_tokens, tokens_without
from textsim_db.text.utf8 import Tokens
from textsim_db.text.word_places import word_numbers

SCHEMA = "partition int, kind string, data binary"
_ARROW = pa.schema([("partition", pa.int32()), ("kind", pa.string()), ("data", pa.binary())])
_BUCKET_BYTES = 6


class Message(NamedTuple):
    """One value that a task sends to the partition of a later stage; kind says how it is packed."""

    partition: int
    kind: str
    data: bytes


def to_arrow(messages: list[Message]) -> pa.RecordBatch:
    columns = zip(*messages, strict=True) if messages else ([], [], [])
    return record_batch(columns, _ARROW)


def record_batch(columns: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return columns of values of Python as rows of a schema."""
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def from_arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
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
    order = np.argsort(buckets)
    return Entries(buckets[order], numbers[order])


def pack_entries(entries: Entries) -> bytes:
    """Pack entries. Buckets are stored as differences, byte by byte, so that Spark can compress them."""
    steps = np.diff(entries.buckets, prepend=np.uint64(0)).astype("<u8")
    planes = steps.view(np.uint8).reshape(-1, 8)[:, :_BUCKET_BYTES].T
    return planes.tobytes() + entries.numbers.astype("<i8").tobytes()


def unpack_entries(data: bytes) -> Entries:
    count = len(data) // (_BUCKET_BYTES + 8)
    planes = np.frombuffer(data, np.uint8, _BUCKET_BYTES * count).reshape(_BUCKET_BYTES, count)
    steps = np.zeros((count, 8), np.uint8)
    steps[:, :_BUCKET_BYTES] = planes.T
    buckets = np.cumsum(steps.view("<u8").ravel(), dtype=np.uint64)
    return Entries(buckets, np.frombuffer(data, "<i8", count, _BUCKET_BYTES * count))


def joined(several: list[Entries]) -> Entries:
    buckets = np.concatenate([np.empty(0, np.uint64), *(each.buckets for each in several)])
    numbers = np.concatenate([np.empty(0, np.int64), *(each.numbers for each in several)])
    return sorted_entries(buckets, numbers)


def pack_numbers(*columns: Int64Array) -> bytes:
    return b"".join(column.astype("<i8").tobytes() for column in columns)


def unpack_numbers(data: bytes, columns: int = 1) -> list[Int64Array]:
    return list(np.frombuffer(data, "<i8").reshape(columns, -1))


LOADED_BYTES = 512 * 1024 * 1024
"""The bytes of distinct texts that a task verifies. They take up to ten times as much memory."""


def load(
    texts: Sequence[bytes], config: CorpusConfig, parts: Parts = None, for_merges: bool = False
) -> LoadedDocuments:
    """Prepare documents for comparison; texts: in UTF-8, in the order of the keys.

    Documents with the same words and part are compared once. So a million copies cost as much as one
    document. for_merges: only documents with equal guards are candidates. Raises InputError if the
    distinct texts take too much memory.
    """
    of_text, firsts = _same(texts, parts)
    distinct = [texts[i] for i in firsts.tolist()]
    if (size := sum(map(len, distinct))) > LOADED_BYTES:
        raise InputError(
            f"{len(texts):,} candidates with {size:,} bytes of text are in one task, because shared "
            f"buckets connect them; at most {LOADED_BYTES:,} bytes are possible: use a higher threshold "
            "or more rows a band, or leave out boilerplate that many texts share"
        )
    parts = None if parts is None else parts[firsts]
    tokens = tokens_without(distinct, config)
    spans = pairwise(tokens.normal_offsets.tolist())
    of_form, firsts = _same([tokens.normal[a:b].tobytes() for a, b in spans], parts)
    parts = None if parts is None else parts[firsts]
    chosen = _take(tokens, firsts)
    sketches = sketch_tokens(chosen, config)
    rows = rows_of(chosen, word_numbers(chosen), sketches.shingle_counts, config.shingle)
    if for_merges:
        parts = merge_parts(parts, sketches.guards)
    return LoadedDocuments(of_form[of_text], rows, sketches.buckets, parts, config)


def _same(items: Sequence[bytes], parts: Parts) -> tuple[Int64Array, Int64Array]:
    """Return a number for each item, the same for equal items of one part, and the first of each."""
    owned: Sequence[Any] = items if parts is None else list(zip(items, parts.tolist(), strict=True))
    numbers, _ = numbered(owned)
    return numbers, np.unique(numbers, return_index=True)[1]


def _take(tokens: Tokens, documents: Int64Array) -> Tokens:
    if len(documents) == tokens.documents:
        return tokens
    forms = Ragged(tokens.normal, tokens.normal_offsets).take(documents)
    words = Ragged(np.arange(len(tokens.hashes)), tokens.word_offsets).take(documents)
    shifts = np.repeat(forms.offsets[:-1] - tokens.normal_offsets[documents], words.sizes)
    starts, ends = (
        (column[words.values] + shifts).astype(np.int32) for column in (tokens.starts, tokens.ends)
    )
    hashes = tokens.hashes[words.values]
    return Tokens(forms.values, forms.offsets, starts, ends, words.offsets, hashes)
