"""Candidates: the documents that share buckets with a query, found by a join with the band index.

One shared bucket makes a candidate; in an exact corpus, as many as the sizes of both require.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg

from textsim_db.db.binary_format import Array
from textsim_db.db.binary_rows import load_int4_arrays
from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.settings import CorpusConfig
from textsim_db.sketch.ragged import Buckets
from textsim_db.sketch.sketches import Sketches
from textsim_db.sketch.smallest_values import least_needed, share_enough
from textsim_db.text.array_types import Int32Array, Int64Array

Numbers = npt.NDArray[np.int64]


class Keys(NamedTuple):
    """The keys by which several queries are looked up.

    buckets: those of each; needed: int32 of shape (queries,), how many a candidate shares at least.
    """

    buckets: Buckets
    needed: Int32Array


def keys_of(buckets: Buckets, shingle_counts: Int64Array, config: CorpusConfig) -> Keys:
    """Return the keys of queries, of which the configuration has the threshold that they ask for."""
    if config.is_exact:
        return Keys(buckets, least_needed(shingle_counts, config.threshold))
    return Keys(buckets, np.ones(len(shingle_counts), np.int32))


class Candidates(NamedTuple):
    """The pairs of a query and a stored document that share enough buckets.

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


def find_candidates(store: Store, keys: Keys, language: str | None) -> Candidates:
    """Return the documents that share enough buckets with any of several queries."""
    if not len(keys.buckets.values):
        return Candidates.of_one_query([])
    with autocommit(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        return read_candidates(cursor, store.corpus, keys, language)


def read_candidates(
    cursor: psycopg.Cursor[Any],
    corpus: StoredCorpus,
    keys: Keys,
    language: str | None = None,
    prepare: bool = True,
) -> Candidates:
    """Return the candidates that a transaction sees; not prepared, the plan fits the tables' sizes."""
    buckets, needed = keys
    statement = statements.CANDIDATES_OF_MANY
    parameters: list[Any] = [Array(buckets.owners()), Array(buckets.values), Array(needed)]
    if len(needed) == 1:  # without the numbers of the queries the join is a tenth quicker
        statement = statements.CANDIDATES_OF_ONE
        parameters = [Array(buckets.values), int(needed[0])]
    if language is not None:
        statement, parameters = statement + statements.OF_LANGUAGE, [*parameters, language]
    rows = cursor.execute(corpus.statement(statement), parameters, prepare=prepare).fetchall()
    if len(needed) == 1:
        return Candidates.of_one_query(rows)
    queries, offsets = load_int4_arrays([row[-1] for row in rows])
    documents = np.repeat(np.arange(len(rows)), np.diff(offsets))
    order = np.argsort(queries, kind="stable")
    return Candidates(rows, queries[order].astype(np.int64), documents[order])


def count_shared_buckets(
    store: Store, sketches: Sketches, language: str | None
) -> list[tuple[str, int]]:
    """Return the keys of one text's candidates, each with the number of buckets that it shares."""
    config = store.corpus.config
    statement = statements.COUNT_SHARED_BUCKETS
    parameters: list[Any] = [Array(sketches.buckets.values)]
    if language is not None:
        statement, parameters = statement + statements.OF_LANGUAGE, [*parameters, language]
    with autocommit(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        rows = cursor.execute(
            store.corpus.statement(statement), parameters, prepare=True
        ).fetchall()
    if not config.is_exact or not rows:
        return [(key, shared) for key, shared, _ in rows]
    shared, sizes = (np.array([row[i] for row in rows], np.int64) for i in (1, 2))
    own_sizes = np.full(len(rows), sketches.shingle_counts[0])
    enough = share_enough(shared, own_sizes, sizes, config.threshold)
    return [rows[i][:2] for i in np.flatnonzero(enough).tolist()]
