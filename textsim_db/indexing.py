"""The write path: documents in batches, each one transaction that is wholly there or not at all.

While one batch is being written, a thread looks up the words of the next and another computes the
one after: the kernels and the waiting for the server both release the GIL.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db import lsh
from textsim_db.db.binary import (
    COPY_HEADER,
    COPY_TRAILER,
    Array,
    copy_bands,
    copy_documents,
    load_int4_array,
)
from textsim_db.db.corpora import StoredCorpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import autocommit, transaction
from textsim_db.errors import DocumentError
from textsim_db.recipe import Sketches, sketch
from textsim_db.results import AddReport, Refusal
from textsim_db.seen import SeenKeys
from textsim_db.text import to_bytes

BATCH_DOCUMENTS = 10_000
BATCH_CHARACTERS = 8 * 1024 * 1024
MAX_KEY_BYTES = 1000
MAX_TRIES = 12
QUEUE_FROM = 2
"""The repetition from which writers of the same keys wait for each other instead of colliding."""
SETTLE_DOCUMENTS = 10_000
SETTLE_SHARE = 0.2
"""A load of so many documents, and of this share of the corpus, is followed by a VACUUM."""

Progress = Callable[[AddReport], None]
Item = tuple[str, str]
Given = TypeVar("Given")
Made = TypeVar("Made")

# What another transaction can cause and a repetition mends: the same key added by someone else,
# a deadlock, a serialization failure.
_PASSING = (pg.UniqueViolation, pg.DeadlockDetected, pg.SerializationFailure)

_EXISTING = """
SELECT key, id, array_send(word_ids) FROM {document} WHERE key = ANY (%s::text[])
"""
_LOCK_EXISTING = """
SELECT key, id, array_send(signature) FROM {document}
WHERE key = ANY (%s::text[]) ORDER BY key FOR UPDATE
"""
_IDS = "SELECT nextval('textsim.document_id') FROM generate_series(1, %s)"
_UPDATE = """
UPDATE {document} SET word_ids = %b, signature = %b, shingle_count = %b WHERE id = %b
"""
_DELETE = "DELETE FROM {document} WHERE id = ANY (%s::bigint[])"
_DELETE_BANDS = """
DELETE FROM {band} b
USING unnest(%s::smallint[], %s::bigint[], %s::bigint[]) gone (band, bucket, document_id)
WHERE b.band = gone.band AND b.bucket = gone.bucket AND b.document_id = gone.document_id
"""
_ESTIMATED_DOCUMENTS = """
SELECT reltuples FROM pg_catalog.pg_class WHERE oid = to_regclass({document_name})
"""
_QUEUE = "SELECT pg_advisory_xact_lock(hashtext('textsim-db writers'), %s)"
_COPY_DOCUMENTS = """
COPY {document} (corpus_id, shingle_count, id, key, word_ids, signature) FROM STDIN (FORMAT binary)
"""
_COPY_BANDS = """
COPY {band} (corpus_id, band, bucket, document_id) FROM STDIN (FORMAT binary)
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents on their way into the database, in order of their keys, each key once."""

    keys: list[str]
    texts: list[bytes]
    sketches: Sketches
    refused: list[Refusal]
    duplicates: int
    word_ids: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))

    def words_of(self, i: int) -> npt.NDArray[np.int32]:
        """Return the word ids of a document."""
        offsets = self.sketches.tokens.word_offsets
        return self.word_ids[int(offsets[i]) : int(offsets[i + 1])]

    def signature_of(self, i: int) -> npt.NDArray[np.int32]:
        """Return the signature of a document as stored: none without shingles."""
        stored: npt.NDArray[np.int32] = self.sketches.signatures[i]
        return stored if self.sketches.shingle_counts[i] else stored[:0]


def add_many(
    engine: Engine,
    dictionary: Dictionary,
    corpus: StoredCorpus,
    documents: Iterable[Item],
    progress: Progress | None = None,
) -> AddReport:
    """Add or replace documents; see Corpus.add_many."""
    report = AddReport()
    seen = SeenKeys()
    sketched = _ahead(_batches(documents), partial(_sketched, corpus=corpus))
    resolve = partial(_with_word_ids, corpus=corpus, dictionary=dictionary)
    for batch in _ahead(sketched, resolve):
        outcome = _with_retries(engine, corpus, batch)
        report.refused += batch.refused
        # A key that an earlier batch of this call has written is a duplicate, not a replacement.
        again = seen.meet(batch.keys)
        report.added += int(np.count_nonzero(outcome == _ADDED))
        report.replaced += int(np.count_nonzero((outcome == _REPLACED) & ~again))
        report.unchanged += int(np.count_nonzero((outcome == _UNCHANGED) & ~again))
        again &= outcome != _ADDED
        report.duplicates += int(np.count_nonzero(again))
        report.duplicates += batch.duplicates
        if progress is not None:
            progress(report)
    if report.added >= SETTLE_DOCUMENTS:
        _settle(engine, corpus, report.added)
    return report


def remove(engine: Engine, corpus: StoredCorpus, keys: Iterable[str]) -> int:
    """Remove documents by key and return how many there were; unknown keys are passed over."""
    removed = 0
    for some in _chunks(dict.fromkeys(keys), BATCH_DOCUMENTS):
        with transaction(engine) as connection:
            cursor = connection.cursor(binary=True)
            rows = cursor.execute(
                corpus.statement(_LOCK_EXISTING), [_storable_keys(some)]
            ).fetchall()
            ids = np.array([row[1] for row in rows], np.int64)
            cursor.execute(corpus.statement(_DELETE), [Array(ids)])
            _delete_bands(cursor, corpus, *_old_bands(corpus, rows))
        removed += len(rows)
    return removed


def _settle(engine: Engine, corpus: StoredCorpus, added: int) -> None:
    """After a large load, do at once what autovacuum would do within minutes.

    Until the new pages are known to be visible to all, each band row of a look-up costs a page of
    the table, and without statistics the plans are guesses. Nothing depends on it: a role that
    does not own the tables is only warned by the server, and a failure is left to autovacuum.
    """
    with suppress(psycopg.Error), autocommit(engine) as connection:
        row = connection.execute(corpus.statement(_ESTIMATED_DOCUMENTS)).fetchone()
        if row is None or row[0] < added / SETTLE_SHARE:
            connection.execute(corpus.statement("VACUUM (ANALYZE, SKIP_LOCKED) {document}"))
            connection.execute(corpus.statement("VACUUM (ANALYZE, SKIP_LOCKED) {band}"))


_ADDED, _REPLACED, _UNCHANGED = range(3)


def _storable_keys(keys: Iterable[str]) -> list[str]:
    """Return the keys that can be in the database at all."""
    return [key for key in keys if isinstance(key, str) and is_possible_key(key)]


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _ahead(items: Iterable[Given], function: Callable[[Given], Made]) -> Iterator[Made]:
    """Apply a function to each item in a thread, one item ahead of what is asked for.

    Where the items end with an error, what came before it is passed on first.
    """
    with ThreadPoolExecutor(1, "textsim-ahead") as pool:
        waiting: Future[Made] | None = None
        for item in (source := _Source(items)):
            submitted = pool.submit(function, item)
            if waiting is not None:
                yield waiting.result()
            waiting = submitted
        if waiting is not None:
            yield waiting.result()
    if source.failure is not None:
        raise source.failure


class _Source(Iterator[Given]):
    """The items of an iterable, which ends where it fails and keeps the failure."""

    def __init__(self, items: Iterable[Given]) -> None:
        self._items = iter(items)
        self.failure: Exception | None = None

    def __next__(self) -> Given:
        try:
            return next(self._items)
        except StopIteration:
            raise
        except Exception as error:
            self.failure = error
            raise StopIteration from None


def _batches(documents: Iterable[Item]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    size = 0
    for item in (source := _Source(documents)):
        batch.append(item)
        with suppress(TypeError, IndexError, KeyError):  # refused when the batch is prepared
            size += len(item[1])
        if len(batch) >= BATCH_DOCUMENTS or size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
    if source.failure is not None:
        raise source.failure


def _sketched(items: list[Any], corpus: StoredCorpus) -> Batch:
    accepted: dict[str, bytes] = {}
    refused: list[Refusal] = []
    for item in items:
        try:
            key, data = _accept(item)
        except DocumentError as error:
            refused.append(Refusal(_shown_key(item), str(error)))
        else:
            accepted[key] = data
    # In order of the keys, so that two writers wait for each other in one direction only.
    keys = sorted(accepted)
    texts = [accepted[key] for key in keys]
    duplicates = len(items) - len(refused) - len(keys)
    return Batch(keys, texts, sketch(texts, corpus.config), refused, duplicates)


def _with_word_ids(batch: Batch, corpus: StoredCorpus, dictionary: Dictionary) -> Batch:
    word_ids = dictionary.ensure(batch.sketches.tokens)
    hidden = np.flatnonzero(word_ids == 0)
    if len(hidden):
        return _with_word_ids(_without(batch, hidden, corpus), corpus, dictionary)
    return replace(batch, word_ids=word_ids)


def _without(batch: Batch, hidden: npt.NDArray[np.int64], corpus: StoredCorpus) -> Batch:
    """Refuse the documents with words that hash like other words of the dictionary."""
    tokens = batch.sketches.tokens
    owners = np.searchsorted(tokens.word_offsets, hidden, "right") - 1
    faults = dict(zip(owners.tolist(), tokens.words(hidden), strict=True))
    refused = [
        Refusal(
            batch.keys[i],
            f'the word "{word[:40]}" has the same 64-bit hash as another word of the dictionary',
        )
        for i, word in faults.items()
    ]
    kept = [i for i in range(len(batch.keys)) if i not in faults]
    texts = [batch.texts[i] for i in kept]
    return replace(
        batch,
        keys=[batch.keys[i] for i in kept],
        texts=texts,
        sketches=sketch(texts, corpus.config),
        refused=batch.refused + refused,
    )


def _accept(item: Any) -> tuple[str, bytes]:
    try:
        key, text = item
    except (TypeError, ValueError):
        raise DocumentError("the item is not a pair of key and text") from None
    if not isinstance(key, str):
        raise DocumentError(f"the key is of type {type(key).__name__}; expected str")
    if fault := _key_fault(key):
        raise DocumentError(fault)
    return key, to_bytes(text)


def is_possible_key(key: str) -> bool:
    """Say whether a document can have this key."""
    return _key_fault(key) is None


def _key_fault(key: str) -> str | None:
    try:
        data = key.encode()
    except UnicodeEncodeError:
        return "the key has a lone surrogate"
    if b"\0" in data:
        return "the key has a NUL character"
    if len(data) > MAX_KEY_BYTES:
        return f"the key is {len(data)} bytes long; at most {MAX_KEY_BYTES} are possible"
    return None


def _shown_key(item: Any) -> str:
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0] if isinstance(item[0], str) else repr(item[0])
    return repr(item)[:80]


def _with_retries(engine: Engine, corpus: StoredCorpus, batch: Batch) -> npt.NDArray[np.int8]:
    for attempt in range(MAX_TRIES):
        try:
            with transaction(engine) as connection:
                cursor = connection.cursor(binary=True)
                if attempt >= QUEUE_FROM:
                    cursor.execute(_QUEUE, [corpus.id])
                return _write(cursor, corpus, batch)
        except _PASSING:
            if attempt == MAX_TRIES - 1:
                raise
            time.sleep(random.uniform(0, min(1, 0.01 * 2**attempt)))  # noqa: S311
    raise AssertionError("unreachable")


def _write(cursor: psycopg.Cursor[Any], corpus: StoredCorpus, batch: Batch) -> npt.NDArray[np.int8]:
    """Write a batch and return what became of each document."""
    outcome = np.full(len(batch.keys), _ADDED, np.int8)
    if not batch.keys:
        return outcome
    number = {key: i for i, key in enumerate(batch.keys)}
    rows = cursor.execute(corpus.statement(_EXISTING), [batch.keys]).fetchall()
    changed = []
    for key, _, stored in rows:
        i = number[key]
        same = np.array_equal(load_int4_array(stored), batch.words_of(i))
        outcome[i] = _UNCHANGED if same else _REPLACED
        if not same:
            changed.append(key)
    if changed:
        _replace(cursor, corpus, batch, number, changed)
    new = np.flatnonzero(outcome == _ADDED)
    if len(new):
        _insert(cursor, corpus, batch, new)
    return outcome


def _insert(
    cursor: psycopg.Cursor[Any], corpus: StoredCorpus, batch: Batch, new: npt.NDArray[np.int64]
) -> None:
    made = batch.sketches
    ids = np.array([row[0] for row in cursor.execute(_IDS, [len(new)]).fetchall()], np.int64)
    with cursor.copy(corpus.statement(_COPY_DOCUMENTS)) as copy:
        copy.write(COPY_HEADER)
        copy.write(
            copy_documents(
                corpus.id,
                ids,
                [batch.keys[i].encode() for i in new.tolist()],
                made.shingle_counts,
                batch.word_ids,
                made.tokens.word_offsets,
                new,
                made.signatures,
            ).data
        )
        copy.write(COPY_TRAILER)
    filled = made.shingle_counts[new] > 0
    bands, buckets, owners = _band_rows(corpus, made.buckets[new[filled]], ids[filled])
    _copy_bands(cursor, corpus, bands, buckets, owners)


def _replace(
    cursor: psycopg.Cursor[Any],
    corpus: StoredCorpus,
    batch: Batch,
    number: dict[str, int],
    keys: list[str],
) -> None:
    """Rewrite documents under the ids they have, and only the band rows that differ."""
    rows = cursor.execute(corpus.statement(_LOCK_EXISTING), [keys]).fetchall()
    if len(rows) < len(keys):
        raise pg.SerializationFailure("a document was removed while it was being replaced")
    numbers = np.array([number[row[0]] for row in rows], np.int64)
    ids = np.array([row[1] for row in rows], np.int64)
    made = batch.sketches
    cursor.executemany(
        corpus.statement(_UPDATE),
        [
            (
                Array(batch.words_of(i)),
                Array(batch.signature_of(i)),
                int(made.shingle_counts[i]),
                int(id_),
            )
            for i, id_ in zip(numbers.tolist(), ids.tolist(), strict=True)
        ],
    )
    filled = made.shingle_counts[numbers] > 0
    old = set(zip(*(part.tolist() for part in _old_bands(corpus, rows)), strict=True))
    fresh = _band_rows(corpus, made.buckets[numbers[filled]], ids[filled])
    new = set(zip(*(part.tolist() for part in fresh), strict=True))
    _delete_bands(cursor, corpus, *_columns(old - new))
    _copy_bands(cursor, corpus, *_columns(new - old))


BandRows = tuple[npt.NDArray[np.int16], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _columns(rows: set[tuple[int, int, int]]) -> BandRows:
    ordered = sorted(rows)
    bands = np.array([row[0] for row in ordered], np.int16)
    buckets = np.array([row[1] for row in ordered], np.int64)
    return bands, buckets, np.array([row[2] for row in ordered], np.int64)


def _band_rows(
    corpus: StoredCorpus, buckets: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]
) -> BandRows:
    """Return band rows in the order of the index, which then grows in one pass."""
    count = corpus.config.bands
    order = np.argsort(buckets, axis=0)
    flat = np.take_along_axis(buckets, order, axis=0).T.ravel()
    return np.repeat(np.arange(count, dtype=np.int16), len(ids)), flat, ids[order].T.ravel()


def _old_bands(corpus: StoredCorpus, rows: list[tuple[Any, ...]]) -> BandRows:
    """Return the band rows that stored documents have, which their signatures give."""
    signatures = [(row[1], load_int4_array(row[2])) for row in rows]
    filled = [(id_, signature) for id_, signature in signatures if len(signature)]
    ids = np.array([id_ for id_, _ in filled], np.int64)
    stacked = np.array([signature for _, signature in filled], np.int32).reshape(
        len(filled), corpus.config.num_hashes
    )
    return _band_rows(corpus, lsh.buckets(stacked, corpus.config.banding), ids)


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


def _copy_bands(
    cursor: psycopg.Cursor[Any],
    corpus: StoredCorpus,
    bands: npt.NDArray[np.int16],
    buckets: npt.NDArray[np.int64],
    ids: npt.NDArray[np.int64],
) -> None:
    if len(ids):
        with cursor.copy(corpus.statement(_COPY_BANDS)) as copy:
            copy.write(COPY_HEADER)
            copy.write(copy_bands(corpus.id, bands, buckets, ids))
            copy.write(COPY_TRAILER)
