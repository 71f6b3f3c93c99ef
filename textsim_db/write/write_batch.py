"""One transaction of the write path: documents with their band rows, written and removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import errors as pg

from textsim_db.db.binary_format import Array, load_int4_array
from textsim_db.db.binary_rows import (
    COPY_HEADER,
    COPY_TRAILER,
    Contents,
    Identities,
    copy_documents,
)
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import DatabaseError
from textsim_db.sketch import band_buckets
from textsim_db.write import statements
from textsim_db.write.band_rows import BandRows, band_rows, copy_band_rows, delete_band_rows
from textsim_db.write.prepared_batch import Batch

ADDED, REPLACED, UNCHANGED, COMPLETED = range(4)
"""What becomes of a document; COMPLETED: only its words had no ids yet."""

Numbers = npt.NDArray[np.int64]
Outcomes = npt.NDArray[np.int8]
Cursor = psycopg.Cursor[Any]


class Stored(NamedTuple):
    """A stored document; word_ids and signature as array_send gives them."""

    id: int
    word_ids: bytes | None
    normal_form: str | None
    language: str | None
    source_id: int | None
    signature: bytes


Existing = dict[str, Stored]
"""Stored documents by key."""


def find(cursor: Cursor, corpus: StoredCorpus, keys: Sequence[str]) -> Existing:
    """Return the stored documents of several keys, for outcomes(): without signatures."""
    return _fetch(cursor, corpus.statement(statements.FIND_DOCUMENTS), keys)


def lock(cursor: Cursor, corpus: StoredCorpus, keys: Sequence[str]) -> Existing:
    """Lock the stored documents of several keys, in the order of the keys."""
    return _fetch(cursor, corpus.statement(statements.LOCK_DOCUMENTS), keys)


def lock_free(
    cursor: Cursor, corpus: StoredCorpus, keys: Sequence[str]
) -> tuple[Existing, set[str]]:
    """Lock the documents that no other transaction holds; return them and the keys of those held.

    A transaction that holds locks and waits for none cannot be part of a deadlock.
    """
    locked = _fetch(cursor, corpus.statement(statements.LOCK_FREE_DOCUMENTS), keys)
    stored = cursor.execute(corpus.statement(statements.STORED_KEYS), [list(keys)]).fetchall()
    return locked, {key for (key,) in stored} - locked.keys()


def _fetch(cursor: Cursor, statement: str, keys: Sequence[str]) -> Existing:
    rows = cursor.execute(statement, [list(keys)]).fetchall()
    return {key: Stored(*fields) for key, *fields in rows}


def write(
    cursor: Cursor,
    corpus: StoredCorpus,
    batch: Batch,
    source_id: int | None = None,
    existing: Existing | None = None,
) -> Outcomes:
    """Write a batch and return the outcome of each document: int8 of shape (documents,).

    source_id is the attached table that the documents come from; None leaves it as it is. existing:
    the stored documents, if they are locked already; then a document that was added since is a
    unique violation.
    """
    if not batch.keys:
        return np.empty(0, np.int8)
    locked = existing
    if existing is None:
        existing = find(cursor, corpus, batch.keys)
    outcome, adopted = outcomes(batch, existing, source_id)
    changed = np.flatnonzero((outcome == REPLACED) | (outcome == COMPLETED))
    if len(changed):
        keys = [batch.keys[i] for i in changed.tolist()]
        locked = lock(cursor, corpus, keys) if locked is None else locked
        if not locked.keys() >= set(keys):
            raise pg.SerializationFailure("a document was removed while it was being replaced")
        _replace(cursor, corpus, batch, changed, [locked[key] for key in keys], source_id)
    if adopted:
        parameters = [source_id, Array(np.array(adopted, np.int64))]
        cursor.execute(corpus.statement(statements.ADOPT_DOCUMENTS), parameters)
    added = np.flatnonzero(outcome == ADDED)
    if len(added):
        rows = cursor.execute(statements.NEXT_IDS, [len(added)]).fetchall()
        ids = np.array([number for (number,) in rows], np.int64)
        insert(cursor, corpus, batch, added, ids, source_id)
    return outcome


def outcomes(batch: Batch, existing: Existing, source_id: int | None) -> tuple[Outcomes, list[int]]:
    """Return what write() would return, and the ids of documents that it would only adopt.

    A stored document is unchanged if its words and its language are the same.
    """
    outcome = np.full(len(batch.keys), ADDED, np.int8)
    adopted = []
    for i, key in enumerate(batch.keys):
        stored = existing.get(key)
        if stored is None:
            continue
        if stored.word_ids is None:
            outcome[i] = COMPLETED if stored.normal_form == batch.form_of(i) else REPLACED
            continue
        is_same = stored.language == batch.language_of(i) and np.array_equal(
            load_int4_array(stored.word_ids), batch.words_of(i)
        )
        outcome[i] = UNCHANGED if is_same else REPLACED
        if is_same and source_id is not None and stored.source_id != source_id:
            adopted.append(stored.id)
    return outcome, adopted


def remove(cursor: Cursor, corpus: StoredCorpus, keys: Sequence[str]) -> int:
    """Remove documents with their band rows and return how many there were."""
    return remove_locked(cursor, corpus, list(lock(cursor, corpus, keys).values()))


def remove_locked(cursor: Cursor, corpus: StoredCorpus, documents: Sequence[Stored]) -> int:
    """Remove documents that are locked already."""
    if documents:
        ids = np.array([document.id for document in documents], np.int64)
        cursor.execute(corpus.statement(statements.DELETE_DOCUMENTS), [Array(ids)])
        delete_band_rows(cursor, corpus, _stored_band_rows(corpus, documents))
    return len(documents)


def insert(
    cursor: Cursor,
    corpus: StoredCorpus,
    batch: Batch,
    numbers: Numbers,
    ids: Numbers,
    source_id: int | None,
) -> None:
    """Insert documents of a batch under ids of their own, with their band rows.

    numbers, ids: (documents,), which documents of the batch, and their ids.
    """
    sketches, chosen = batch.sketches, numbers.tolist()
    languages = None
    if batch.languages is not None:
        languages = [batch.languages[i].encode() for i in chosen]
    identities = Identities(ids, [batch.keys[i].encode() for i in chosen], languages)
    contents = Contents(
        sketches.shingle_counts,
        batch.word_ids,
        sketches.tokens.word_offsets,
        sketches.signatures,
    )
    with cursor.copy(corpus.statement(statements.COPY_DOCUMENTS)) as copy:
        copy.write(COPY_HEADER)
        copy.write(copy_documents(corpus.id, identities, contents, numbers, source_id).data)
        copy.write(COPY_TRAILER)
    copy_band_rows(cursor, corpus, band_rows(sketches.buckets.take(numbers), ids))


def _replace(
    cursor: Cursor,
    corpus: StoredCorpus,
    batch: Batch,
    numbers: Numbers,
    documents: Sequence[Stored],
    source_id: int | None,
) -> None:
    """Rewrite documents under the ids that they have, and only the band rows that differ."""
    updates = [
        (
            Array(batch.words_of(i)),
            Array(batch.signature_of(i)),
            int(batch.sketches.shingle_counts[i]),
            batch.language_of(i),
            source_id,
            stored.id,
        )
        for i, stored in zip(numbers.tolist(), documents, strict=True)
    ]
    cursor.executemany(corpus.statement(statements.UPDATE_DOCUMENT), updates)
    before = _stored_band_rows(corpus, documents)
    ids = np.array([stored.id for stored in documents], np.int64)
    after = band_rows(batch.sketches.buckets.take(numbers), ids)
    delete_band_rows(cursor, corpus, before.without(after))
    copy_band_rows(cursor, corpus, after.without(before))


def _stored_band_rows(corpus: StoredCorpus, documents: Sequence[Stored]) -> BandRows:
    """Return the band rows that stored documents have: those that their signatures give."""
    num_hashes = corpus.config.num_hashes
    signatures = {stored.id: load_int4_array(stored.signature) for stored in documents}
    filled = {id_: signature for id_, signature in signatures.items() if len(signature)}
    for id_, signature in filled.items():
        if len(signature) != num_hashes:
            raise DatabaseError(
                f"the signature of document {id_} has {len(signature)} values; expected "
                f"{num_hashes}: run textsim check"
            )
    stacked = np.array(list(filled.values()), np.int32).reshape(-1, num_hashes)
    buckets = band_buckets.ragged(band_buckets.buckets(stacked, corpus.config.banding))
    return band_rows(buckets, np.array(list(filled), np.int64))
