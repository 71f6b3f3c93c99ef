"""Finds the documents of a batch that a unique corpus leaves out, in the transaction that writes.

lock the buckets -> (a later statement, with a newer snapshot) candidates -> go through the batch in
order, and keep each document that matches no kept document -> wait for transactions that delete or
change what stands in the way; if one did, again
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import psycopg

from textsim_db.cluster.keep_representatives import keep_representatives
from textsim_db.compare.document_rows import Rows, concatenated
from textsim_db.compare.jaccard import jaccard_pairs
from textsim_db.db.binary_format import Array
from textsim_db.db.store import Store
from textsim_db.read.candidates import CandidateRows, LookUp, look_up_of, read_candidates
from textsim_db.read.stored_documents import StoredDocuments, WordNumbers, rows_of_tokens
from textsim_db.results import Match
from textsim_db.settings import CorpusConfig
from textsim_db.sketch.fast_similarity import estimates
from textsim_db.sketch.ragged import Buckets, Ragged, Signatures, joined
from textsim_db.sketch.sketches import buckets_of
from textsim_db.sketch.smallest_values import first_rows
from textsim_db.text.array_types import Int64Array
from textsim_db.write import statements
from textsim_db.write.prepared_batch import Batch

Cursor = psycopg.Cursor[Any]


class LeftOut(NamedTuple):
    """A document that is left out, by its number in the batch.

    matches: the documents that stand in its way, best first; of documents of the same batch only the
    best.
    """

    number: int
    matches: list[Match]


def lock_buckets(cursor: Cursor, store: Store, batch: Batch, numbers: Int64Array) -> None:
    """Lock the buckets of documents until the end of the transaction, or else the whole corpus.

    No other transaction then writes a document that shares a bucket. In an exact corpus the first rows
    are enough: two documents that match share one of them.
    """
    sketches = batch.sketches
    buckets = _compared_buckets(sketches.buckets, sketches.shingle_counts, store.corpus.config)
    locked = np.unique(buckets.take(numbers).values)
    cursor.execute(statements.LOCK_BUCKETS, [store.corpus.id, Array(locked)])


def find_twins(cursor: Cursor, store: Store, batch: Batch, numbers: Int64Array) -> list[LeftOut]:
    """Return which of these documents match a stored document, or one of the batch before them.

    The caller has locked their buckets. A document is not compared with the stored document that it
    replaces, and neither is any later document of the batch.
    """
    comparison = _Comparison(store, batch, numbers)
    while True:
        candidates = read_candidates(cursor, store.corpus, comparison.look_up, prepare=False)
        left_out, blocking = comparison.with_candidates(candidates)
        if _still_stand(cursor, store, [candidates.rows[i] for i in blocking]):
            return left_out


def _still_stand(cursor: Cursor, store: Store, rows: list[tuple[Any, ...]]) -> bool:
    """Wait for the transactions that delete or change documents; say whether none has."""
    if not rows:
        return True
    ids = Array(np.array([row[0] for row in rows], np.int32))
    locked = cursor.execute(store.corpus.statement(statements.LOCK_STANDING), [ids]).fetchall()
    return {row[0]: row[1:] for row in locked} == {row[0]: (row[3], row[4]) for row in rows}


class _Comparison:
    """Documents of a batch, compared with their candidates and with each other."""

    def __init__(self, store: Store, batch: Batch, numbers: Int64Array) -> None:
        config, sketches = store.corpus.config, batch.sketches
        buckets = _only(sketches.buckets, numbers)
        self.look_up: LookUp = look_up_of(buckets, sketches.shingle_counts, config)
        self._corpus = store.corpus
        self._batch = batch
        self._numbers = numbers
        self._vocabulary = WordNumbers(store.dictionary)
        self._rows = rows_of_tokens(
            sketches.tokens, sketches.shingle_counts, self._vocabulary, config.shingle, True
        )
        self._buckets = _compared_buckets(buckets, sketches.shingle_counts, config)

    def with_candidates(self, candidates: CandidateRows) -> tuple[list[LeftOut], list[int]]:
        """Return the documents to leave out, and the places of the candidates that decide it."""
        config = self._corpus.config
        stored = StoredDocuments(self._corpus, self._vocabulary, candidates.rows)
        settled = len(stored.keys)
        signatures = stored.signatures(np.arange(settled))
        buckets = _compared_buckets(buckets_of(signatures, config), stored.shingle_counts, config)
        compared = _Compared(
            [*stored.keys, *self._batch.keys],
            concatenated(stored.rows(), self._rows),
            joined([signatures, self._batch.sketches.signatures]),
            self._replaced(stored.keys),
        )
        kept_by, similarity = keep_representatives(
            compared.rows,
            joined([buckets, self._buckets]),
            settled,
            config.threshold,
            compared.replaced,
        )
        places = np.flatnonzero(kept_by != np.arange(len(kept_by)))
        matches = {
            place: {int(kept_by[place]): float(similarity[place])} for place in places.tolist()
        }
        for left, right, value in zip(
            *_standing_matches(compared, candidates, kept_by, config.threshold), strict=True
        ):
            matches[left][right] = value
        left_out = [
            LeftOut(place - settled, compared.best_first(place, others, config))
            for place, others in matches.items()
        ]
        deciding = np.unique(kept_by[places])
        return left_out, deciding[deciding < settled].tolist()

    def _replaced(self, stored_keys: list[str]) -> Int64Array:
        """Return the place of the stored document that each compared document replaces, or -1."""
        places = {key: place for place, key in enumerate(stored_keys)}
        replaced = np.full(len(stored_keys) + len(self._batch.keys), -1, np.int64)
        for number in self._numbers.tolist():
            key = self._batch.keys[number]
            replaced[len(stored_keys) + number] = places.get(key, -1)
        return replaced


class _Compared(NamedTuple):
    """The candidates, followed by the documents of the batch; replaced: as keep_representatives()."""

    keys: list[str]
    rows: Rows
    signatures: Signatures
    replaced: Int64Array

    def best_first(self, place: int, others: dict[int, float], config: CorpusConfig) -> list[Match]:
        """Return the matches of a document; others: the places and similarities of the matches."""
        matches = [
            Match(self.keys[other], similarity, self._estimate(place, other, config))
            for other, similarity in others.items()
        ]
        return sorted(matches, key=lambda match: (-match.similarity, match.key))

    def _estimate(self, a: int, b: int, config: CorpusConfig) -> float | None:
        if config.is_exact:
            return None
        of_b = self.signatures.of(b)[np.newaxis]
        return float(estimates(self.signatures.of(a), of_b)[0])


def _standing_matches(
    compared: _Compared, candidates: CandidateRows, kept_by: Int64Array, threshold: float
) -> tuple[list[int], list[int], list[float]]:
    """Return the places of left out documents, of the candidates that they match, and similarities."""
    settled = len(candidates.rows)
    left, right = candidates.queries + settled, candidates.documents
    is_kept = kept_by == np.arange(len(kept_by))
    gone_from = np.full(settled, len(kept_by), np.int64)
    replacing = np.flatnonzero((compared.replaced >= 0) & is_kept)
    gone_from[compared.replaced[replacing]] = replacing
    stands = (compared.replaced[left] != right) & (gone_from[right] > left)
    chosen = stands & ~is_kept[left]
    left, right = left[chosen], right[chosen]
    values = jaccard_pairs(compared.rows, left, right)
    reached = values >= threshold
    return left[reached].tolist(), right[reached].tolist(), values[reached].tolist()


def _compared_buckets(
    buckets: Buckets, shingle_counts: Int64Array, config: CorpusConfig
) -> Buckets:
    """Return the buckets of which two documents that match share one."""
    return first_rows(buckets, shingle_counts, config.threshold) if config.is_exact else buckets


def _only(buckets: Buckets, numbers: Int64Array) -> Buckets:
    """Return the buckets of documents by number; the other documents have none."""
    sizes = np.zeros(len(buckets.sizes), np.int64)
    sizes[numbers] = buckets.sizes[numbers]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    return Ragged(buckets.take(np.sort(numbers)).values, offsets)
