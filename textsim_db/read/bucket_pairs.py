"""Candidate pairs of a whole corpus: the pairs of each bucket, and buckets too large to list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from textsim_db.cluster.spanning_forest import Ids
from textsim_db.db.engine import Connection
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.read.exact_copies import Copies

PAIRS_AT_ONCE = 200_000
LARGE_BUCKET = 256
"""The pairs of a bucket with more documents than that, copies folded, need not all be listed."""


class BucketPairs(NamedTuple):
    """Pairs of documents by id, and the bucket of each pair; all of shape (pairs,)."""

    left: Ids
    right: Ids
    buckets: Ids


class LargeBucket(NamedTuple):
    """The documents of one bucket that has many."""

    ids: Ids
    bucket: int


def candidate_pairs(
    connection: Connection, corpus: StoredCorpus, copies: Copies, parameters: dict[str, Any]
) -> Iterator[BucketPairs | LargeBucket]:
    """Yield the pairs that share a bucket, about PAIRS_AT_ONCE together, and large buckets.

    A pair comes once for each bucket that it shares. parameters has the language that limits the
    documents.
    """
    waiting: list[BucketPairs] = []
    count = 0
    for ids, bucket in _shared_buckets(connection, corpus, parameters):
        ids = copies.without_represented(ids)
        if len(ids) > LARGE_BUCKET:
            yield LargeBucket(ids, bucket)
        elif len(ids) > 1:
            left, right = np.triu_indices(len(ids), 1)
            waiting.append(BucketPairs(ids[left], ids[right], np.full(len(left), bucket)))
            count += len(left)
        if count >= PAIRS_AT_ONCE:
            yield _joined(waiting)
            waiting, count = [], 0
    if waiting:
        yield _joined(waiting)


def pairs_of_large_bucket(large: LargeBucket) -> Iterator[BucketPairs]:
    """Yield all pairs of a large bucket, about PAIRS_AT_ONCE together."""
    count = len(large.ids)
    rows = max(1, PAIRS_AT_ONCE // count)
    for start in range(0, count, rows):
        numbers = np.arange(start, min(start + rows, count))
        left, right = np.nonzero(numbers[:, np.newaxis] < np.arange(count))
        buckets = np.full(len(left), large.bucket)
        yield BucketPairs(large.ids[numbers[left]], large.ids[right], buckets)


def _shared_buckets(
    connection: Connection, corpus: StoredCorpus, parameters: dict[str, Any]
) -> Iterator[tuple[Ids, int]]:
    is_limited = parameters["language"] is not None
    statement = statements.SHARED_BUCKETS_OF_LANGUAGE if is_limited else statements.SHARED_BUCKETS
    with connection.cursor(corpus.label("pairs"), binary=True) as cursor:
        cursor.itersize = 10_000
        cursor.execute(corpus.statement(statement), parameters)
        for bucket, ids in cursor:
            yield np.sort(np.array(ids, np.int64)), bucket


def _joined(parts: list[BucketPairs]) -> BucketPairs:
    return BucketPairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
