"""Finds the twins of a batch, in the transaction that writes to a unique corpus.

- A match of a document is another document with which it merges (textsim_db.compare.match_rule): it is
  as similar as twins are in this corpus, or in this call, and nobody judged the two different.
- A twin is a document of the batch with a match that is stored or that precedes it. It is left out.
- A candidate is a stored document that shares a bucket with a document of the batch.
- A document of the batch replaces the stored document that has its key. The replaced document is no
  match of this document, and no match of later documents of the batch.

lock the buckets -> (a later statement, with a newer snapshot) candidates -> go through the batch in
order, and keep each document without a match -> wait for transactions that delete or change the matches
of twins; if one did, again
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.cluster.kept_linkage import keep_representatives
from textsim_db.compare.match_rule import (
    NOTHING_SEPARATES,
    Separation,
    form_hash,
    is_stale,
    which_merge,
)
from textsim_db.compare.packed_pairs import pack
from textsim_db.compare.pair_values import Rows, concatenated, jaccard_pairs
from textsim_db.db.binary_format import array
from textsim_db.db.connections import Cursor
from textsim_db.db.dictionary import dictionary_of
from textsim_db.db.store import Store
from textsim_db.read.find_candidates import CandidateRows, LookUp, look_up_of, read_candidates
from textsim_db.read.statements import DIFFERENT_TEXTS
from textsim_db.read.stored_documents import StoredDocuments, WordNumbers, rows_of_tokens
from textsim_db.results import Match
from textsim_db.sketch.exact_prefix import first_rows
from textsim_db.sketch.ragged import (
    Buckets,
    Parts,
    Ragged,
    apart,
    in_parts,
    joined,
    merge_parts,
    offsets_of,
)
from textsim_db.sketch.sketch_texts import buckets_of
from textsim_db.write import statements
from textsim_db.write.prepare_batches import Batch


class TwinInBatch(NamedTuple):
    place: int
    """The place in the batch."""
    matches: list[Match]
    """Best first; of documents of the same batch only the best."""


def lock_buckets(cursor: Cursor, store: Store, batch: Batch, places: Int64Array) -> None:
    """Lock the buckets of documents until the end of the transaction, or else the whole corpus.

    No other transaction then writes a document that shares a bucket. In an exact corpus the first rows
    are enough: two documents that match share one of them. places: those of the documents in the batch.
    Documents with different guards are no twins, and so have different locks.
    """
    if not len(places):
        return
    sketches, config = batch.sketches, store.corpus.config
    buckets = sketches.buckets
    if config.is_exact:
        buckets = first_rows(buckets, sketches.shingle_counts, config.threshold)
    locked = np.unique(in_parts(buckets, sketches.guards).take(places).values)
    parts = None if sketches.parts is None else array(np.unique(sketches.parts[places]))
    cursor.execute(statements.LOCK_BUCKETS, [store.corpus.id, array(locked), parts])


def find_twins(
    cursor: Cursor, store: Store, batch: Batch, places: Int64Array, unique_from: float = 0
) -> list[TwinInBatch]:
    """Return the twins among documents of a batch, whose buckets the caller has locked."""
    twins_from = max(unique_from, store.corpus.config.twins_from)
    keys = {"origin": store.corpus.origin, "keys": [batch.keys[i] for i in places.tolist()]}
    rows = cursor.execute(DIFFERENT_TEXTS, keys).fetchall()
    different = [JudgedTexts(row[:2], row[2:4], row[4:]) for row in rows]
    comparison = _BatchComparison(store, batch, places, different)
    while True:
        candidates = read_candidates(cursor, store.corpus, comparison.look_up, in_write=True)
        twins, matched = comparison.with_candidates(candidates, twins_from)
        if not matched:
            return twins
        # This waits for the transactions that delete or change matches.
        rows = [candidates.rows[i] for i in matched]
        ids = array(np.array([row[0] for row in rows], np.int32))
        locked = cursor.execute(store.corpus.statement(statements.LOCK_MATCHES), [ids]).fetchall()
        if {row[0]: row[1:] for row in locked} == {row[0]: (row[3], row[4]) for row in rows}:
            return twins


class JudgedTexts(NamedTuple):
    """Two documents that were judged different: their keys, and the hashes of their normal forms."""

    keys: tuple[str, str]
    judged: tuple[str | None, str | None]
    """Of the texts that were judged; None: any text."""
    stored: tuple[str | None, str | None]
    """Of the stored texts; None: there is none."""


class _BatchComparison:
    """Documents of a batch, compared with their candidates and with each other."""

    def __init__(
        self, store: Store, batch: Batch, places: Int64Array, different: list[JudgedTexts]
    ) -> None:
        config, sketches = store.corpus.config, batch.sketches
        self._buckets = _only(sketches.buckets, places)
        self.look_up: LookUp = look_up_of(
            self._buckets, sketches.shingle_counts, config, sketches.parts
        )._replace(guards=sketches.guards)
        self._corpus = store.corpus
        self._batch = batch
        self._places = places
        self._different = different
        self._vocabulary = WordNumbers(dictionary_of(store))
        self._rows = rows_of_tokens(
            sketches.tokens, sketches.shingle_counts, self._vocabulary, config.shingle, True
        )

    def with_candidates(
        self, candidates: CandidateRows, twins_from: float
    ) -> tuple[list[TwinInBatch], list[int]]:
        """Return the twins, and the places of the candidates because of which they are left out."""
        config = self._corpus.config
        stored = StoredDocuments(self._corpus, self._vocabulary, candidates.rows)
        count = len(stored.keys)
        signatures = stored.signatures(np.arange(count))
        buckets = in_parts(buckets_of(signatures, config), stored.parts)
        own = self._batch.sketches
        parts, guards = _both(stored.parts, own.parts), _both(stored.guards, own.guards)
        compared = _Compared(
            [*stored.keys, *self._batch.keys],
            concatenated(stored.rows(), self._rows),
            self._replaced(stored.keys),
            Separation(
                self._apart(stored.keys), NOTHING_SEPARATES.guards if guards is None else guards
            ),
        )
        kept_by, similarity = keep_representatives(
            compared.rows,
            apart(joined([buckets, self._buckets]), merge_parts(parts, guards)),
            count,
            twins_from,
            compared.replaced,
            compared.separation,
            prefix_threshold=config.prefix_threshold,
        )
        places = np.flatnonzero(kept_by != np.arange(len(kept_by)))
        matches = {
            place: {int(kept_by[place]): float(similarity[place])} for place in places.tolist()
        }
        for left, right, value in zip(
            *_stored_matches(compared, candidates, kept_by, twins_from), strict=True
        ):
            matches[left][right] = value
        twins = [
            TwinInBatch(place - count, compared.best_first(others))
            for place, others in matches.items()
        ]
        matched = np.unique(kept_by[places])
        return twins, matched[matched < count].tolist()

    def _replaced(self, stored_keys: list[str]) -> Int64Array:
        """Return the place of the stored document that each compared document replaces, or -1."""
        places = {key: place for place, key in enumerate(stored_keys)}
        replaced = np.full(len(stored_keys) + len(self._batch.keys), -1, np.int64)
        for place in self._places.tolist():
            key = self._batch.keys[place]
            replaced[len(stored_keys) + place] = places.get(key, -1)
        return replaced

    def _apart(self, stored_keys: list[str]) -> Int64Array:
        """Return the pairs of places that were judged different, for keep_representatives()."""
        if not self._different:
            return NOTHING_SEPARATES.apart
        count = len(stored_keys)
        judged = {key for each in self._different for key in each.keys}
        places: dict[str, list[int]] = {}
        for place, key in enumerate([*stored_keys, *self._batch.keys]):
            if key in judged:
                places.setdefault(key, []).append(place)

        def hash_at(place: int, stored: str | None) -> str | None:
            return stored if place < count else form_hash(self._batch.form_of(place - count))

        apart = [
            (max(x, y), min(x, y))
            for (a, b), hashes, (of_a, of_b) in self._different
            for x in places.get(a, ())
            for y in places.get(b, ())
            if not is_stale(hashes, (hash_at(x, of_a), hash_at(y, of_b)))
        ]
        later, earlier = np.array(apart, np.int64).reshape(-1, 2).T
        return np.sort(pack(later, earlier))


def _both(stored: Parts, own: Parts) -> Parts:
    return None if stored is None or own is None else np.concatenate([stored, own])


class _Compared(NamedTuple):
    """The candidates, followed by the documents of the batch."""

    keys: list[str]
    rows: Rows
    replaced: Int64Array
    """The place of the document that each document replaces, or -1: (documents,)."""
    separation: Separation
    """The reasons that keep matches from being twins; pairs have the later document on the left."""

    def best_first(self, others: dict[int, float]) -> list[Match]:
        """Return the matches of a document; others: their places and similarities."""
        matches = [Match(self.keys[other], similarity) for other, similarity in others.items()]
        return sorted(matches, key=lambda match: (-match.similarity, match.key))


def _stored_matches(
    compared: _Compared, candidates: CandidateRows, kept_by: Int64Array, threshold: float
) -> tuple[list[int], list[int], list[float]]:
    """Return the places of twins, the places of candidates that they match, and the similarities."""
    count = len(candidates.rows)
    left, right = candidates.queries + count, candidates.documents
    is_kept = kept_by == np.arange(len(kept_by))
    replaced_by = np.full(count, len(kept_by), np.int64)
    replacing = np.flatnonzero((compared.replaced >= 0) & is_kept)
    replaced_by[compared.replaced[replacing]] = replacing
    is_comparable = (compared.replaced[left] != right) & (replaced_by[right] > left)
    chosen = is_comparable & ~is_kept[left]
    left, right = left[chosen], right[chosen]
    values = jaccard_pairs(compared.rows, left, right)
    reached = which_merge(values, threshold, left, right, compared.separation)
    return left[reached].tolist(), right[reached].tolist(), values[reached].tolist()


def _only(buckets: Buckets, places: Int64Array) -> Buckets:
    """Return the buckets of some documents; the other documents have none."""
    sizes = np.zeros(len(buckets.sizes), np.int64)
    sizes[places] = buckets.sizes[places]
    return Ragged(buckets.take(np.sort(places)).values, offsets_of(sizes))
