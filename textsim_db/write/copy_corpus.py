"""Copies the documents of a corpus to another corpus with other settings, and then their changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, Int32Array, Int64Array
from textsim_db.base.run_ahead import BATCH_DOCUMENTS, ahead
from textsim_db.db.binary_format import array, load_int8_array
from textsim_db.db.connections import Cursor
from textsim_db.db.dictionary import StoredDictionary, dictionary_of
from textsim_db.db.engine import autocommit, transaction
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read.statements import IDS_OF_KEYS
from textsim_db.read.stored_documents import normal_forms
from textsim_db.sketch.sketch_texts import boilerplate_words, sketch_tokens
from textsim_db.text.hashing import parts_of_scopes
from textsim_db.text.tokens import leave_out, tokenize, tokens_of
from textsim_db.text.utf8 import concatenate
from textsim_db.write import statements, write_batch
from textsim_db.write.copy_rows import copy_new_rows
from textsim_db.write.prepare_batches import Batch, Stored
from textsim_db.write.write_batch import NO_SOURCE

BYTES_AT_ONCE = 16 * 1024 * 1024
"""The bytes of stored words that are copied at once; a longer document is copied alone."""

_COPY_HEAD, _COPY_TAIL = 19, 2
"""Bytes before and after the rows of a binary COPY."""
_VERSION_ROW = np.dtype(
    [
        *(("head", "V6"), ("id", ">i4")),
        *(("version length", ">i4"), ("version", ">i4")),
        *(("size length", ">i4"), ("size", ">i4")),
    ]
)


class Versions(NamedTuple):
    """Documents sorted by id, with the version and the bytes of words of each: (documents,)."""

    ids: Int32Array
    versions: Int32Array
    sizes: Int32Array

    def gone_since(self, before: Versions) -> Int32Array:
        return np.setdiff1d(before.ids, self.ids, assume_unique=True)

    def changed_since(self, before: Versions) -> Versions:
        if not len(before.ids):
            return self
        places = _places(before.ids, self.ids)
        is_same = (before.ids[places] == self.ids) & (before.versions[places] == self.versions)
        return Versions(*(array[~is_same] for array in self))

    def batches(self) -> Iterator[Int32Array]:
        start, ends = 0, np.cumsum(self.sizes, dtype=np.int64)
        while start < len(ends):
            before = ends[start - 1] if start else 0
            fitting = int(np.searchsorted(ends, before + BYTES_AT_ONCE, "right"))
            stop = min(max(fitting, start + 1), start + BATCH_DOCUMENTS)
            yield self.ids[start:stop]
            start = stop


class NewIds(NamedTuple):
    """The ids of documents in the old and the new corpus: (documents,), sorted by the old ids."""

    old: Int32Array
    new: Int32Array

    def find(self, old: Int32Array) -> tuple[Int32Array, BoolArray]:
        """Return the new ids, and which of the documents have a new id: (ids,) each."""
        if not len(self.old):
            return np.zeros(len(old), np.int32), np.zeros(len(old), np.bool_)
        places = _places(self.old, old)
        return self.new[places], self.old[places] == old

    def without(self, old: Int32Array) -> NewIds:
        is_kept = ~np.isin(self.old, old, assume_unique=True)
        return NewIds(self.old[is_kept], self.new[is_kept]) if len(old) else self

    def join(self, others: list[NewIds]) -> NewIds:
        old = np.concatenate([self.old, *(each.old for each in others)])
        new = np.concatenate([self.new, *(each.new for each in others)])
        order = np.argsort(old, kind="stable")
        return NewIds(old[order], new[order])


def _places(sorted_ids: Int32Array, ids: Int32Array) -> Int64Array:
    """Return the place of each id in an array that is not empty; of a missing id, any place."""
    places: Int64Array = np.searchsorted(sorted_ids, ids)
    return np.minimum(places, len(sorted_ids) - 1)


class OldRow(NamedTuple):
    id: int
    key: str
    source_id: int | None
    word_ids: bytes | None
    normal_form: str | None
    language: str | None
    scope: str | None
    expires_at: bytes | None
    """In the format of timestamptz_send; None: never."""
    forced: bool
    cluster_size: int | None
    counted_keys: bytes | None
    """In the format of array_send."""
    rejected: str | None
    """Why it was rejected; a corpus that is not unique gets no copy then."""


class Copy(NamedTuple):
    """Documents of the old corpus, and the batch that the new corpus stores of them."""

    rows: list[OldRow]
    batch: Batch


class CorpusCopier:
    """Copies an old corpus into a new one, in rounds: each copies the changes since the last."""

    def __init__(self, old: StoredCorpus, store: Store) -> None:
        self._old = old
        self.new = store.corpus
        # The old corpus has left out the boilerplate that it knows.
        self._learned = self.new.config.boilerplate_values and not old.config.boilerplate_values
        self._engine = store.engine
        self._old_dictionary = StoredDictionary(store.known_words, old.id)
        self._dictionary = dictionary_of(store)
        self.changed_keys: set[str] | None = None
        """The keys of the documents that are copied from now on, if the caller sets an empty set."""
        empty = np.empty(0, np.int32)
        self._copied = Versions(empty, empty, empty)
        self._ids = NewIds(empty, empty)

    def copy_changes(self, progress: Callable[[int, int], None] | None = None) -> tuple[int, int]:
        """Copy the changes since the last call; return how many documents were copied, and removed."""
        with transaction(self._engine) as connection:
            versions = self._versions(connection.cursor(binary=True))
        gone, changed = versions.gone_since(self._copied), versions.changed_since(self._copied)
        for start in range(0, len(gone), BATCH_DOCUMENTS):
            with transaction(self._engine) as connection:
                cursor = connection.cursor(binary=True)
                self._remove(cursor, gone[start : start + BATCH_DOCUMENTS])
        added: list[NewIds] = []
        done = 0
        with closing(ahead(changed.batches(), self._read_committed)) as copies:
            for copy in copies:
                with transaction(self._engine) as connection:
                    added.append(self._write(connection.cursor(binary=True), copy))
                done += len(copy.rows)
                if progress is not None:
                    progress(done, len(changed.ids))
        self._ids = self._ids.without(gone).join(added)
        self._copied = versions
        return done, len(gone)

    def copy_rest(self, cursor: Cursor) -> None:
        """Copy the changes since the last round, in the caller's transaction, which may be repeated."""
        versions = self._versions(cursor)
        self._remove(cursor, versions.gone_since(self._copied))
        for ids in versions.changed_since(self._copied).batches():
            self._write(cursor, self._read(cursor, ids))

    def batches_of(self, cursor: Cursor, keys: list[str]) -> Iterator[Batch]:
        """Yield documents of the old corpus as batches of the new corpus, a batch at a time."""
        for start in range(0, len(keys), BATCH_DOCUMENTS):
            batch = keys[start : start + BATCH_DOCUMENTS]
            rows = cursor.execute(self._old.statement(IDS_OF_KEYS), [batch]).fetchall()
            yield self._read(cursor, np.array([row[0] for row in rows], np.int32)).batch

    def _versions(self, cursor: Cursor) -> Versions:
        data = bytearray()
        with cursor.copy(self._old.statement(statements.DOCUMENT_VERSIONS)) as copy:
            for row in copy:  # the rows are joined at once, because each comes alone
                data += row
        count = (len(data) - _COPY_HEAD - _COPY_TAIL) // _VERSION_ROW.itemsize
        rows = np.frombuffer(data, _VERSION_ROW, count, _COPY_HEAD)
        order = np.argsort(rows["id"].astype(np.int32))
        columns = (rows[name].astype(np.int32)[order] for name in ("id", "version", "size"))
        return Versions(*columns)

    def _read_committed(self, ids: Int32Array) -> Copy:
        with autocommit(self._engine) as connection:
            return self._read(connection.cursor(binary=True), ids)

    def _read(self, cursor: Cursor, ids: Int32Array) -> Copy:
        fetched = cursor.execute(self._old.statement(statements.DOCUMENTS_TO_COPY), [array(ids)])
        rows = [OldRow(*fields) for fields in fetched]
        rows = [row for row in rows if self.new.config.is_unique or row.rejected is None]
        columns = [row.word_ids for row in rows], [row.normal_form for row in rows]
        forms = normal_forms(*columns, self._old_dictionary)
        encoded = [form.encode() for form in forms]
        is_same_recipe = self._old.config.recipe == self.new.config.recipe
        tokens = tokens_of(encoded) if is_same_recipe else tokenize(encoded)
        scopes = [str(row.scope) for row in rows] if self.new.config.scoped else None
        if self._learned:
            tokens = leave_out(tokens, boilerplate_words(tokens, self.new.config))
            rows = [
                row if row.normal_form is None else row._replace(normal_form=form or None)
                for row, form in zip(rows, tokens.forms(), strict=True)
            ]
        parts = None if scopes is None else parts_of_scopes(scopes)
        sketches = sketch_tokens(tokens, self.new.config, parts)
        languages = None
        if self.new.config.language is not None:
            languages = [row.language or "" for row in rows]
        keys = [row.key for row in rows]
        does_expire = self.new.config.keep_for is not None
        expiries = [row.expires_at for row in rows] if does_expire else None
        word_ids = self._dictionary.ensure(tokens)
        return Copy(
            rows,
            Batch(keys, concatenate([]), sketches, [], [], languages, scopes, expiries, word_ids),
        )

    def _write(self, cursor: Cursor, copy: Copy) -> NewIds:
        """Write documents; return the ids of the documents that are new in the new corpus."""
        rows, batch = copy
        if self.changed_keys is not None:
            self.changed_keys.update(batch.keys)
        old = np.array([row.id for row in rows], np.int32)
        self._remove(cursor, old)
        new, is_there = self._ids.find(old)
        new[~is_there] = write_batch.next_ids(cursor, self.new, int(np.count_nonzero(~is_there)))
        sources = [NO_SOURCE if row.source_id is None else row.source_id for row in rows]
        is_waiting = np.array([self._must_wait(copy, i) for i in range(len(rows))], np.bool_)
        complete, ids = np.flatnonzero(~is_waiting), new.astype(np.int64)
        source_ids = np.array(sources, np.int64)[complete]
        write_batch.insert(cursor, self.new, batch, complete, ids[complete], source_ids)
        self._write_waiting(cursor, copy, np.flatnonzero(is_waiting), ids[is_waiting])
        write_batch.mark_forced(cursor, self.new, [row.key for row in rows if row.forced])
        reasons = {row.key: row.rejected for row in rows if row.rejected is not None}
        if reasons:
            statement = self.new.statement(statements.MARK_REJECTED)
            cursor.execute(statement, [[*reasons], [*reasons.values()]])
        sizes = {row.key: row.cluster_size for row in rows if row.cluster_size is not None}
        counted = [
            (row.key, hash_)
            for row in rows
            if row.key in sizes and row.counted_keys is not None
            for hash_ in load_int8_array(row.counted_keys).tolist()
        ]
        write_batch.set_cluster_sizes(cursor, self.new, sizes, counted)
        return NewIds(old[~is_there], new[~is_there])

    def _must_wait(self, copy: Copy, i: int) -> bool:
        """Say whether a worker must still give the words of a document ids in the new corpus."""
        row, word_ids = copy.rows[i], copy.batch.words_of(i)
        if word_ids is None or row.normal_form is None:
            return False
        if self._old.config.has_dictionary:
            return True
        has_language = self._old.config.language is None or row.language is not None
        return not has_language or not word_ids.all()  # a word may have the hash of another word

    def _write_waiting(
        self, cursor: Cursor, copy: Copy, numbers: Int64Array, ids: Int64Array
    ) -> None:
        """Write documents whose words have no ids yet; the log still has entries for them."""
        sketches = copy.batch.sketches
        parameters = []
        for i, id_ in zip(numbers.tolist(), ids.tolist(), strict=True):
            row, count = copy.rows[i], int(sketches.shingle_counts[i])
            signature = array(sketches.signatures.of(i))
            expiry = write_batch.expiry_parameter(row.expires_at)
            prints = sketches.fingerprints and array(sketches.fingerprints.of(i))
            guard = sketches.guard_of(i)
            columns = (row.source_id, count, row.scope, guard, expiry, signature, prints)
            parameters.append((id_, row.key, *columns, row.normal_form))
        cursor.executemany(self.new.statement(statements.INSERT_WAITING_DOCUMENT), parameters)
        copy_new_rows(cursor, self.new, copy.batch, numbers, ids)

    def _remove(self, cursor: Cursor, old: Int32Array) -> None:
        """Remove documents from the new corpus, if it has them; old: their old ids."""
        new, is_there = self._ids.find(old)
        if is_there.any():
            statement = self.new.statement(statements.STORED_SIGNATURES)
            rows = cursor.execute(statement, [array(new[is_there])]).fetchall()
            stored = [
                Stored(id_, None, None, None, part, None, None, signature)
                for id_, part, signature in rows
            ]
            write_batch.remove_locked(cursor, self.new, stored)
