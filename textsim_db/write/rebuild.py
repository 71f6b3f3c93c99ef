"""A corpus built anew with other parameters, beside the one that is in use until then.

Documents are copied with their ids and word ids; signatures and buckets are computed from the stored
words. What changes meanwhile is found by comparing, again and again while writers go on, and a last
time while they wait; then the new corpus takes the name, in the same transaction.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db import stored_corpus
from textsim_db.db.binary_format import Array, load_int4_arrays
from textsim_db.db.engine import Connection, autocommit, is_lost, transaction, wait_at_most
from textsim_db.db.retries import repeated
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import (
    ConfigurationError,
    CorpusBusy,
    CorpusChanged,
    CorpusNotFound,
    TextsimError,
)
from textsim_db.read.stored_documents import normal_forms
from textsim_db.settings import CorpusConfig
from textsim_db.sketch.sketches import Sketches, sketch_tokens
from textsim_db.text.streams import ahead
from textsim_db.text.tokens import tokens_of
from textsim_db.write import write_batch
from textsim_db.write.bulk_load import settle
from textsim_db.write.temporary_corpora import locked, temporary_name
from textsim_db.write.write_batch import Stored

log = logging.getLogger(__name__)

CHUNK = 5000
FEW = 2000
"""So many changed documents are copied while writers wait."""
MAX_ROUNDS = 10
PATIENCE = "100ms"
"""How long other writers wait behind this one for one that is at work, before it lets them."""
DROP_PATIENCE = "60s"
"""How long the end of a rebuild waits for who still reads the corpus that was replaced."""
OLDER_SECONDS = 2.0
"""How long the replaced corpus stays for transactions that began before; larger delays rebuild()."""
MAX_WEIGHT = 16 * 1024 * 1024
"""Bytes of stored words that are copied at once, unless a single document has more."""

Ids = npt.NDArray[np.int64]
Cursor = psycopg.Cursor[Any]
Progress = Callable[[int, int], None]

# Every version of a row has another xmin than the one before.
_VERSIONS = """
/* textsim-db: rebuild corpus {id}: versions */
COPY (
    SELECT id, xmin::pg_catalog.text::bigint,
        coalesce(pg_catalog.pg_column_size(word_ids), pg_catalog.octet_length(normal_form))
    FROM {document}
) TO STDOUT (FORMAT binary)
"""
_ROWS = """
/* textsim-db: rebuild corpus {id}: documents */
SELECT id, key, source_id, pg_catalog.array_send(word_ids), normal_form, language
FROM {document} WHERE id = ANY (%s::bigint[]) ORDER BY source_id, id
"""
_STORED = """
/* textsim-db: rebuild corpus {id}: changed documents */
SELECT id, pg_catalog.array_send(signature) FROM {document} WHERE id = ANY (%s::bigint[])
"""
_INSERT_WAITING = """
INSERT INTO {document} (corpus_id, shingle_count, id, source_id, key, signature, normal_form)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""
_WAIT_AS_BEFORE = "SELECT pg_catalog.set_config('lock_timeout', %s, true)"
_LOCK = """
/* textsim-db: rebuild corpus {id}: wait for writers */
LOCK TABLE {document} IN SHARE ROW EXCLUSIVE MODE
"""
_REFUSE_FIXED_VIEWS = "SELECT textsim._refuse_views(%s, true)"
_MOVE_VIEWS = "/* textsim-db: move the views of a corpus */ SELECT textsim._move_views(%s, %s)"
# Sessions that hold an advisory lock are rebuilds, writers and migrations, which look for nothing.
_OPEN_TRANSACTIONS = """
/* textsim-db: transactions that may look for a replaced corpus */
SELECT l.virtualtransaction FROM pg_catalog.pg_locks l
WHERE l.locktype = 'virtualxid' AND l.granted AND l.pid <> pg_catalog.pg_backend_pid()
    AND l.pid NOT IN (
        SELECT a.pid FROM pg_catalog.pg_locks a WHERE a.locktype = 'advisory' AND a.pid IS NOT NULL)
"""
_IS_IN_PLACE = "SELECT EXISTS (SELECT FROM textsim.corpus WHERE id = %s AND name = %s)"
_REPLACE = "/* textsim-db: replace a corpus */ SELECT textsim._replace_corpus(%s, %s)"


class _Versions(NamedTuple):
    """Documents in order of their ids, with the version of each and the bytes of its words.

    Arrays of shape (documents,).
    """

    ids: Ids
    versions: Ids
    sizes: Ids


class _Copied(NamedTuple):
    """Documents of the old corpus, computed for the new one; word ids are None where they wait."""

    rows: list[tuple[Any, ...]]
    made: Sketches


def rebuild(
    store: Store,
    config: CorpusConfig,
    progress: Progress | None = None,
) -> StoredCorpus:
    """Build the corpus anew and put it in the place of the old one; return the new one.

    progress is called with the documents that are done and their number. Where it fails or is
    interrupted, everything is as before. Raises CorpusBusy while another session rebuilds it, and
    ConfigurationError for a view that cannot read the new corpus instead.
    """
    with _only_one(store), temporary_name(store.engine) as name:
        new = stored_corpus.create(store.engine, name, config)
        try:
            copier = _Copier(store, new, progress)
            copier.copy()
            copier.replace()
        except BaseException as error:
            lost = isinstance(error, psycopg.Error) and is_lost(error)
            if not (lost and _is_in_place(store.engine, store.corpus.name, new)):
                # By the name that it has until it is in place, which it may be without our knowing.
                with suppress(TextsimError):
                    stored_corpus.drop_named(store.engine, name)
                raise
        _wait_for_readers(store.engine)
        _drop_replaced(store.engine, store.corpus)
    return StoredCorpus(new.id, store.corpus.name, config, store.corpus.origin)


@contextmanager
def _only_one(store: Store) -> Iterator[None]:
    """Hold the lock of a corpus's rebuild; sessions that create a view over the corpus share it."""
    with locked(store.engine, f"textsim rebuild of corpus {store.corpus.id}") as ours:
        if ours is None:
            raise CorpusBusy(
                f'corpus "{store.corpus.name}" is being rebuilt, or a view of it created, by another '
                "session; try again when that is done"
            )
        with autocommit(store.engine) as connection:
            row = connection.execute(_IS_IN_PLACE, [store.corpus.id, store.corpus.name]).fetchone()
            if row != (True,):
                raise CorpusChanged(
                    f'corpus "{store.corpus.name}" was rebuilt meanwhile; try again'
                )
            try:
                connection.execute(_REFUSE_FIXED_VIEWS, [store.corpus.id])
            except pg.DependentObjectsStillExist as error:
                raise ConfigurationError(str(error.diag.message_primary)) from error
        yield


def _is_in_place(engine: Engine, name: str, new: StoredCorpus) -> bool:
    """Say whether the new corpus has the name, after a connection was lost that was to give it."""

    def look(_: int) -> bool:
        with autocommit(engine) as connection:
            return connection.execute(_IS_IN_PLACE, [new.id, name]).fetchone() == (True,)

    return repeated(look)


def _wait_for_readers(engine: Engine) -> None:
    """Wait for transactions that may have read the old number, and have not locked its tables yet.

    A search in SQL by such a transaction would fail, because the tables are gone.
    """
    end = time.monotonic() + OLDER_SECONDS
    with suppress(psycopg.Error):
        older = _open_transactions(engine)
        while older and time.monotonic() < end:
            time.sleep(0.02)
            older &= _open_transactions(engine)


def _open_transactions(engine: Engine) -> set[str]:
    with autocommit(engine) as connection:
        return {row[0] for row in connection.execute(_OPEN_TRANSACTIONS)}


def _drop_replaced(engine: Engine, old: StoredCorpus) -> None:
    """Drop what was replaced; where others still read it, the next one that rebuilds will."""
    try:
        stored_corpus.drop(engine, old, DROP_PATIENCE)
    except CorpusNotFound:
        pass  # somebody else has cleared it away
    except TextsimError as error:
        log.warning(
            "corpus %s was rebuilt; what it replaced is dropped later: %s",
            *(old.name, error),
            extra={"corpus": old.name},
        )


class _Copier:
    """Brings a new corpus up to what an old one holds."""

    def __init__(
        self,
        store: Store,
        new: StoredCorpus,
        progress: Progress | None,
    ) -> None:
        self._store = store
        self._engine = store.engine
        self._old = store.corpus
        self._new = new
        self._progress = progress
        nothing = np.empty(0, np.int64)
        self._done = _Versions(nothing, nothing, nothing)

    def copy(self) -> None:
        """Copy everything, and then what has changed meanwhile, until that is little."""
        stored_corpus.drop_band_index(self._engine, self._new)
        for number in range(MAX_ROUNDS):
            with transaction(self._engine) as connection:
                found = self._versions(connection.cursor(binary=True))
            gone, changed = _differences(self._done, found)
            self._forget(gone)
            self._copy_some(changed, first=number == 0)
            self._done = found
            copied = len(changed.ids)
            if number == 0:
                stored_corpus.build_band_index(self._engine, self._new)
                settle(replace(self._store, corpus=self._new), copied)
            log.info(
                "corpus %s: round %s of the rebuild, %s documents copied, %s removed",
                *(self._old.name, number + 1, copied, len(gone)),
                extra={"corpus": self._old.name, "documents": copied, "removed": len(gone)},
            )
            if len(gone) + copied < FEW:
                return

    def replace(self) -> None:
        """Copy the rest while writers wait, and take the place, in one transaction.

        Where lock_timeout is set, that is how long this is tried in all.
        """
        start = time.monotonic()
        limit = None
        while True:
            try:
                with transaction(self._engine) as connection:
                    given, limit = wait_at_most(connection, PATIENCE)
                    connection.execute(self._old.statement(_LOCK))
                    # Waits for sessions that read a view; then this is tried again, like the lock.
                    connection.execute(_MOVE_VIEWS, [self._old.id, self._new.id])
                    connection.execute(_WAIT_AS_BEFORE, [given])
                    self._take_place(connection)
                return
            except pg.LockNotAvailable:
                if limit is not None and time.monotonic() - start >= limit:
                    raise
            time.sleep(random.uniform(0, 0.2))  # noqa: S311

    def _take_place(self, connection: Connection) -> None:
        cursor = connection.cursor(binary=True)
        found = self._versions(cursor)
        gone, changed = _differences(self._done, found)
        self._remove(cursor, gone)
        for ids in _parts(changed):
            self._write(cursor, self._read(cursor, ids), first=False)
        connection.execute(_REPLACE, [self._old.id, self._new.id])

    def _versions(self, cursor: Cursor) -> _Versions:
        with cursor.copy(self._old.statement(_VERSIONS)) as copy:
            data = b"".join(bytes(part) for part in copy)
        fields = [
            *(("head", "V6"), ("id", ">i8")),
            *(("length", ">i4"), ("version", ">i8")),
            *(("length of size", ">i4"), ("size", ">i4")),
        ]
        rows = np.frombuffer(data[19:-2], fields)
        rows = rows[np.argsort(rows["id"], kind="stable")]
        return _Versions(*(rows[name].astype(np.int64) for name in ("id", "version", "size")))

    def _forget(self, gone: Ids) -> None:
        for start in range(0, len(gone), CHUNK):
            with transaction(self._engine) as connection:
                self._remove(connection.cursor(binary=True), gone[start : start + CHUNK])

    def _copy_some(self, changed: _Versions, first: bool) -> None:
        done = 0
        with closing(ahead(_parts(changed), self._read_apart)) as parts:
            for copied in parts:
                with transaction(self._engine) as connection:
                    self._write(connection.cursor(binary=True), copied, first)
                done += len(copied.rows)
                if self._progress is not None and first:
                    self._progress(done, len(changed.ids))

    def _read_apart(self, ids: Ids) -> _Copied:
        with autocommit(self._engine) as connection:
            return self._read(connection.cursor(binary=True), ids)

    def _read(self, cursor: Cursor, ids: Ids) -> _Copied:
        rows = cursor.execute(self._old.statement(_ROWS), [Array(ids)]).fetchall()
        forms = [row[4] for row in rows]
        stored = [i for i, form in enumerate(forms) if form is None]
        words = load_int4_arrays([rows[i][3] for i in stored])
        for i, form in zip(stored, normal_forms(*words, self._store.dictionary), strict=True):
            forms[i] = form
        tokens = tokens_of([form.encode() for form in forms])
        return _Copied(rows, sketch_tokens(tokens, self._new.config))

    def _write(self, cursor: Cursor, copied: _Copied, first: bool) -> None:
        rows, made = copied
        if not first:
            self._remove(cursor, np.array([row[0] for row in rows], np.int64))
        waiting = np.array([row[4] is not None for row in rows], np.bool_)
        words, _ = load_int4_arrays([row[3] for row in rows if row[3] is not None])
        counts = np.diff(made.tokens.word_offsets)
        word_ids = np.zeros(len(made.tokens.starts), np.int32)
        word_ids[np.repeat(~waiting, counts)] = words
        for source_id, some in groupby(range(len(rows)), lambda i: rows[i][2]):
            chosen = np.array([i for i in some if not waiting[i]], np.int64)
            ids = np.array([rows[i][0] for i in chosen.tolist()], np.int64)
            keys = [rows[i][1].encode() for i in chosen.tolist()]
            languages = [rows[i][5] for i in chosen.tolist()]
            write_batch.insert(
                cursor,
                self._new,
                ids,
                keys,
                made,
                word_ids,
                chosen,
                source_id,
                None if self._new.config.language is None else languages,
            )
        self._write_waiting(cursor, copied, np.flatnonzero(waiting))

    def _write_waiting(self, cursor: Cursor, copied: _Copied, chosen: Ids) -> None:
        """Write documents whose words have no ids yet, which their log still says."""
        rows, made = copied
        parameters = []
        for i in chosen.tolist():
            id_, key, source_id, _, form, _ = rows[i]
            values = (id_, source_id, key, Array(made.signatures[i]), form)
            parameters.append((self._new.id, int(made.shingle_counts[i]), *values))
        cursor.executemany(self._new.statement(_INSERT_WAITING), parameters)
        ids = np.array([rows[i][0] for i in chosen.tolist()], np.int64)
        bands = write_batch.band_rows(self._new, made.buckets[chosen], ids)
        write_batch.copy_band_rows(cursor, self._new, *bands)

    def _remove(self, cursor: Cursor, ids: Ids) -> None:
        if len(ids):
            found = cursor.execute(self._new.statement(_STORED), [Array(ids)]).fetchall()
            stored = [Stored(id_, None, None, None, None, signature) for id_, signature in found]
            write_batch.remove_locked(cursor, self._new, stored)


def _parts(documents: _Versions) -> Iterator[Ids]:
    """Cut documents into parts of so many, or of so many bytes, at most."""
    start, ends = 0, np.cumsum(documents.sizes)
    while start < len(ends):
        before = ends[start - 1] if start else 0
        fitting = int(np.searchsorted(ends, before + MAX_WEIGHT, "right"))
        stop = min(max(fitting, start + 1), start + CHUNK)
        yield documents.ids[start:stop]
        start = stop


def _differences(before: _Versions, now: _Versions) -> tuple[Ids, _Versions]:
    """Return the ids that are gone, and the documents that are new or of another version."""
    gone = np.setdiff1d(before.ids, now.ids, assume_unique=True)
    if not len(before.ids):
        return gone, now
    places = np.minimum(np.searchsorted(before.ids, now.ids), len(before.ids) - 1)
    same = (before.ids[places] == now.ids) & (before.versions[places] == now.versions)
    return gone, _Versions(*(array[~same] for array in now))
