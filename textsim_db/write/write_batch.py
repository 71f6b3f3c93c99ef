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
    copy_bands,
    copy_documents,
)
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import DatabaseError
from textsim_db.sketch import band_buckets
from textsim_db.sketch.sketches import Sketches
from textsim_db.write.prepared_batch import Batch

_EXISTING = """
/* textsim-db: find documents of corpus {id} */
SELECT key, id, pg_catalog.array_send(word_ids), normal_form, language, source_id, NULL
FROM {document} WHERE key = ANY (%s::text[])
"""
_LOCK_EXISTING = """
/* textsim-db: lock documents of corpus {id} */
SELECT key, id, pg_catalog.array_send(word_ids), normal_form, language, source_id,
    pg_catalog.array_send(signature)
FROM {document} WHERE key = ANY (%s::text[]) ORDER BY key FOR UPDATE
"""
_LOCK_FREE = _LOCK_EXISTING.rstrip() + " SKIP LOCKED"
_KEYS = "SELECT key FROM {document} WHERE key = ANY (%s::text[])"
_IDS = "SELECT pg_catalog.nextval('textsim.document_id') FROM pg_catalog.generate_series(1, %s)"
_UPDATE = """
UPDATE {document} SET word_ids = %b, normal_form = NULL, signature = %b, shingle_count = %b,
    language = %b, source_id = coalesce(%b::integer, source_id)
WHERE id = %b
"""
_ADOPT = """
/* textsim-db: adopt documents of corpus {id} */
UPDATE {document} SET source_id = %s WHERE id = ANY (%s::bigint[])
"""
_DELETE = """
/* textsim-db: remove documents of corpus {id} */
DELETE FROM {document} WHERE id = ANY (%s::bigint[])
"""
_DELETE_BANDS = """
/* textsim-db: remove band rows of corpus {id} */
DELETE FROM {band} b
USING unnest(%s::smallint[], %s::bigint[], %s::bigint[]) gone (band, bucket, document_id)
WHERE b.band = gone.band AND b.bucket = gone.bucket AND b.document_id = gone.document_id
"""
_COPY_DOCUMENTS = """
/* textsim-db: load documents of corpus {id} */
COPY {document} (corpus_id, shingle_count, id, source_id, key, language, word_ids, signature)
FROM STDIN (FORMAT binary)
"""
_COPY_BANDS = """
/* textsim-db: load band rows of corpus {id} */
COPY {band} (corpus_id, band, bucket, document_id) FROM STDIN (FORMAT binary)
"""

ADDED, REPLACED, UNCHANGED, COMPLETED = range(4)


class Stored(NamedTuple):
    """A stored document; word_ids and signature as array_send gives them."""

    id: int
    word_ids: bytes | None
    normal_form: str | None
    language: str | None
    source_id: int | None
    signature: bytes


Existing = dict[str, Stored]


def find(cursor: psycopg.Cursor[Any], corpus: StoredCorpus, keys: Sequence[str]) -> Existing:
    """Return the documents that there are of some keys, for outcomes(): without signatures."""
    rows = cursor.execute(corpus.statement(_EXISTING), [list(keys)]).fetchall()
    return {row[0]: Stored(*row[1:]) for row in rows}


def lock(cursor: psycopg.Cursor[Any], corpus: StoredCorpus, keys: Sequence[str]) -> Existing:
    """Lock the documents that there are of some keys, in the order of the keys."""
    rows = cursor.execute(corpus.statement(_LOCK_EXISTING), [list(keys)]).fetchall()
    return {row[0]: Stored(*row[1:]) for row in rows}


def lock_free(
    cursor: psycopg.Cursor[Any], corpus: StoredCorpus, keys: Sequence[str]
) -> tuple[Existing, set[str]]:
    """Lock those documents that no other transaction holds; return them and the keys of the others.

    Who holds locks and waits for none cannot be part of a deadlock.
    """
    rows = cursor.execute(corpus.statement(_LOCK_FREE), [list(keys)]).fetchall()
    locked = {row[0]: Stored(*row[1:]) for row in rows}
    there = cursor.execute(corpus.statement(_KEYS), [list(keys)]).fetchall()
    return locked, {key for (key,) in there} - locked.keys()


def write(
    cursor: psycopg.Cursor[Any],
    corpus: StoredCorpus,
    batch: Batch,
    source_id: int | None = None,
    existing: Existing | None = None,
) -> npt.NDArray[np.int8]:
    """Write a batch and return the outcome of each document.

    That is ADDED, REPLACED, UNCHANGED, or COMPLETED where only its words had no ids yet. source_id
    is the attached table that the documents come from; None leaves it as it is. existing: those
    documents that are locked already; a document that came after that is a unique violation.
    """
    if not batch.keys:
        return np.empty(0, np.int8)
    locked = existing
    if existing is None:
        existing = find(cursor, corpus, batch.keys)
    outcome, adopted = outcomes(batch, existing, source_id)
    changed = [
        batch.keys[i] for i in np.flatnonzero((outcome == REPLACED) | (outcome == COMPLETED))
    ]
    if changed:
        if locked is None:
            locked = lock(cursor, corpus, changed)
        if not locked.keys() >= set(changed):
            raise pg.SerializationFailure("a document was removed while it was being replaced")
        _replace(cursor, corpus, batch, [(key, locked[key]) for key in changed], source_id)
    if adopted:
        cursor.execute(corpus.statement(_ADOPT), [source_id, Array(np.array(adopted, np.int64))])
    new = np.flatnonzero(outcome == ADDED)
    if len(new):
        _insert(cursor, corpus, batch, new, source_id)
    return outcome


def outcomes(
    batch: Batch, existing: Existing, source_id: int | None
) -> tuple[npt.NDArray[np.int8], list[int]]:
    """Return what write() would return, and the ids of documents that it would only adopt."""
    outcome = np.full(len(batch.keys), ADDED, np.int8)
    adopted = []
    for i, key in enumerate(batch.keys):
        stored = existing.get(key)
        if stored is None:
            continue
        if stored.word_ids is None:
            outcome[i] = COMPLETED if stored.normal_form == batch.form_of(i) else REPLACED
            continue
        same = stored.language == batch.language_of(i) and np.array_equal(
            load_int4_array(stored.word_ids), batch.words_of(i)
        )
        outcome[i] = UNCHANGED if same else REPLACED
        if same and source_id is not None and stored.source_id != source_id:
            adopted.append(stored.id)
    return outcome, adopted


def remove(cursor: psycopg.Cursor[Any], corpus: StoredCorpus, keys: Sequence[str]) -> int:
    """Remove documents with their band rows and return how many there were."""
    return remove_locked(cursor, corpus, list(lock(cursor, corpus, keys).values()))


def remove_locked(
    cursor: psycopg.Cursor[Any], corpus: StoredCorpus, documents: Sequence[Stored]
) -> int:
    """Remove documents that are locked already."""
    if documents:
        ids = np.array([document.id for document in documents], np.int64)
        cursor.execute(corpus.statement(_DELETE), [Array(ids)])
        _delete_bands(cursor, corpus, *_old_bands(corpus, documents))
    return len(documents)


def _insert(
    cursor: psycopg.Cursor[Any],
    corpus: StoredCorpus,
    batch: Batch,
    new: npt.NDArray[np.int64],
    source_id: int | None,
) -> None:
    made = batch.sketches
    ids = np.array([row[0] for row in cursor.execute(_IDS, [len(new)]).fetchall()], np.int64)
    keys = [batch.keys[i].encode() for i in new.tolist()]
    languages = batch.languages and [batch.languages[i] for i in new.tolist()]
    insert(cursor, corpus, ids, keys, made, batch.word_ids, new, source_id, languages)


def insert(
    cursor: psycopg.Cursor[Any],
    corpus: StoredCorpus,
    ids: npt.NDArray[np.int64],
    keys: Sequence[bytes],
    made: Sketches,
    word_ids: npt.NDArray[np.int32],
    new: npt.NDArray[np.int64],
    source_id: int | None,
    languages: Sequence[str] | None,
) -> None:
    """Insert documents that are not there under ids of their own, with their band rows.

    new: (documents,), which of the sketches they are; ids, keys and languages are those of the
    documents. word_ids: those of all sketches.
    """
    with cursor.copy(corpus.statement(_COPY_DOCUMENTS)) as copy:
        copy.write(COPY_HEADER)
        copy.write(
            copy_documents(
                corpus.id,
                Identities(
                    ids,
                    keys,
                    None if languages is None else [language.encode() for language in languages],
                ),
                Contents(made.shingle_counts, word_ids, made.tokens.word_offsets, made.signatures),
                new,
                source_id,
            ).data
        )
        copy.write(COPY_TRAILER)
    filled = made.shingle_counts[new] > 0
    bands, buckets, owners = band_rows(corpus, made.buckets[new[filled]], ids[filled])
    copy_band_rows(cursor, corpus, bands, buckets, owners)


def _replace(
    cursor: psycopg.Cursor[Any],
    corpus: StoredCorpus,
    batch: Batch,
    documents: Sequence[tuple[str, Stored]],
    source_id: int | None,
) -> None:
    """Rewrite documents under the ids they have, and only the band rows that differ."""
    number = {key: i for i, key in enumerate(batch.keys)}
    numbers = np.array([number[key] for key, _ in documents], np.int64)
    ids = np.array([stored.id for _, stored in documents], np.int64)
    made = batch.sketches
    cursor.executemany(
        corpus.statement(_UPDATE),
        [
            (
                Array(batch.words_of(i)),
                Array(batch.signature_of(i)),
                int(made.shingle_counts[i]),
                batch.language_of(i),
                source_id,
                int(id_),
            )
            for i, id_ in zip(numbers.tolist(), ids.tolist(), strict=True)
        ],
    )
    filled = made.shingle_counts[numbers] > 0
    before = _old_bands(corpus, [stored for _, stored in documents])
    old = set(zip(*(part.tolist() for part in before), strict=True))
    fresh = band_rows(corpus, made.buckets[numbers[filled]], ids[filled])
    new = set(zip(*(part.tolist() for part in fresh), strict=True))
    _delete_bands(cursor, corpus, *_columns(old - new))
    copy_band_rows(cursor, corpus, *_columns(new - old))


BandRows = tuple[npt.NDArray[np.int16], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _columns(rows: set[tuple[int, int, int]]) -> BandRows:
    ordered = sorted(rows)
    bands = np.array([row[0] for row in ordered], np.int16)
    buckets = np.array([row[1] for row in ordered], np.int64)
    return bands, buckets, np.array([row[2] for row in ordered], np.int64)


def band_rows(
    corpus: StoredCorpus, buckets: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]
) -> BandRows:
    """Return band rows in the order of the index, which then grows in one pass."""
    count = corpus.config.bands
    flat = buckets.ravel()
    order = np.argsort(flat)
    bands = (order % count).astype(np.int16)
    return bands, flat[order], ids[order // count]


def _old_bands(corpus: StoredCorpus, documents: Sequence[Stored]) -> BandRows:
    """Return the band rows that stored documents have, which their signatures give."""
    num_hashes = corpus.config.num_hashes
    signatures = [(stored.id, load_int4_array(stored.signature)) for stored in documents]
    filled = [(id_, signature) for id_, signature in signatures if len(signature)]
    for id_, signature in filled:
        if len(signature) != num_hashes:
            raise DatabaseError(
                f"the signature of document {id_} has {len(signature)} values; expected "
                f"{num_hashes}: run textsim check"
            )
    ids = np.array([id_ for id_, _ in filled], np.int64)
    stacked = np.array([signature for _, signature in filled], np.int32).reshape(-1, num_hashes)
    return band_rows(corpus, band_buckets.buckets(stacked, corpus.config.banding), ids)


def _delete_bands(
    cursor: psycopg.Cursor[Any],
    corpus: StoredCorpus,
    bands: npt.NDArray[np.int16],
    buckets: npt.NDArray[np.int64],
    ids: npt.NDArray[np.int64],
) -> None:
    if len(ids):
        parameters = [Array(bands), Array(buckets), Array(ids)]
        cursor.execute(corpus.statement(_DELETE_BANDS), parameters)


def copy_band_rows(
    cursor: psycopg.Cursor[Any],
    corpus: StoredCorpus,
    bands: npt.NDArray[np.int16],
    buckets: npt.NDArray[np.int64],
    ids: npt.NDArray[np.int64],
) -> None:
    """Write band rows, given as band_rows() returns them."""
    if len(ids):
        with cursor.copy(corpus.statement(_COPY_BANDS)) as copy:
            copy.write(COPY_HEADER)
            copy.write(copy_bands(corpus.id, bands, buckets, ids))
            copy.write(COPY_TRAILER)
