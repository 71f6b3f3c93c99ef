"""Candidates: documents that share a bucket with a query, found by a join with the band index."""

from __future__ import annotations

from typing import Any, LiteralString, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.db.binary_format import Array
from textsim_db.db.binary_rows import load_int4_arrays
from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.read import statements
from textsim_db.sketch.band_buckets import Buckets

Numbers = npt.NDArray[np.int64]


class Candidates(NamedTuple):
    """The pairs of a query and a stored document that share a bucket.

    rows: each document once, in the form that StoredDocuments expects. queries, documents: int64 of
    shape (pairs,), the places of both sides of each pair, sorted by query.
    """

    rows: list[tuple[Any, ...]]
    queries: Numbers
    documents: Numbers

    @classmethod
    def of_one_query(cls, rows: list[tuple[Any, ...]]) -> Candidates:
        """Return the candidates of a single query."""
        return cls(rows, np.zeros(len(rows), np.int64), np.arange(len(rows)))


def find_candidates(store: Store, buckets: Buckets, language: str | None) -> Candidates:
    """Return the candidates of several queries."""
    if not len(buckets.values):
        return Candidates.of_one_query([])
    if len(buckets.offsets) == 2:  # one query: without a column of queries the join is 10 % faster
        parameters = [Array(buckets.values)]
        rows = _fetch(store, statements.CANDIDATES_OF_ONE, parameters, language)
        return Candidates.of_one_query(rows)
    sizes = np.diff(buckets.offsets)
    numbers = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    parameters = [Array(numbers), Array(buckets.values)]
    rows = _fetch(store, statements.CANDIDATES_OF_MANY, parameters, language)
    queries, offsets = load_int4_arrays([row[-1] for row in rows])
    documents = np.repeat(np.arange(len(rows)), np.diff(offsets))
    order = np.argsort(queries, kind="stable")
    return Candidates(rows, queries[order].astype(np.int64), documents[order])


def count_shared_buckets(
    store: Store, buckets: Buckets, language: str | None
) -> list[tuple[str, int]]:
    """Return the key of each candidate of one query, with the number of buckets they share."""
    parameters = [Array(buckets.values)]
    return _fetch(store, statements.COUNT_SHARED_BUCKETS, parameters, language)


def _fetch(
    store: Store, statement: LiteralString, parameters: list[Any], language: str | None
) -> list[Any]:
    if language is not None:
        statement, parameters = statement + statements.OF_LANGUAGE, [*parameters, language]
    with autocommit(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        return cursor.execute(
            store.corpus.statement(statement), parameters, prepare=True
        ).fetchall()
