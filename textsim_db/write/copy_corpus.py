"""Documents copied from a corpus to another one with other settings, and kept up with changes.

Documents keep their ids and word ids; signatures and buckets are computed from the stored words. The
versions of the rows tell what has changed since the last round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg

from textsim_db.db.binary_format import Array
from textsim_db.db.binary_rows import load_int4_arrays
from textsim_db.db.engine import autocommit, transaction
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read.stored_documents import normal_forms
from textsim_db.sketch.sketches import sketch_tokens
from textsim_db.text.streams import ahead
from textsim_db.text.tokens import tokens_of
from textsim_db.write import statements, write_batch
from textsim_db.write.band_rows import band_rows, copy_band_rows
from textsim_db.write.prepared_batch import Batch
from textsim_db.write.write_batch import Stored

DOCUMENTS_AT_ONCE = 5000
BYTES_AT_ONCE = 16 * 1024 * 1024
"""Bytes of stored words that are copied at once, unless a single document has more."""

Ids = npt.NDArray[np.int64]
Cursor = psycopg.Cursor[Any]

_COPY_HEAD, _COPY_TAIL = 19, 2
"""Bytes before and after the rows of a binary COPY."""
_VERSION_FIELDS = [
    *(("head", "V6"), ("id", ">i8")),
    *(("version length", ">i4"), ("version", ">i8")),
    *(("size length", ">i4"), ("size", ">i4")),
]


class Versions(NamedTuple):
    """Documents in order of their ids, with the version of each and the bytes of its words.

    Arrays of shape (documents,).
    """

    ids: Ids
    versions: Ids
    sizes: Ids

    def gone_since(self, before: Versions) -> Ids:
        """Return the ids of the documents that were there before and are not now."""
        return np.setdiff1d(before.ids, self.ids, assume_unique=True)

    def changed_since(self, before: Versions) -> Versions:
        """Return the documents that are new, or of another version than before."""
        if not len(before.ids):
            return self
        places = np.minimum(np.searchsorted(before.ids, self.ids), len(before.ids) - 1)
        is_same = (before.ids[places] == self.ids) & (before.versions[places] == self.versions)
        return Versions(*(array[~is_same] for array in self))

    def parts(self) -> Iterator[Ids]:
        """Cut the documents into parts of bounded number and bytes."""
        start, ends = 0, np.cumsum(self.sizes)
        while start < len(ends):
            before = ends[start - 1] if start else 0
            fitting = int(np.searchsorted(ends, before + BYTES_AT_ONCE, "right"))
            stop = min(max(fitting, start + 1), start + DOCUMENTS_AT_ONCE)
            yield self.ids[start:stop]
            start = stop


class OldRow(NamedTuple):
    """A document of the old corpus; word_ids as array_send gives them, or a normal form."""

    id: int
    key: str
    source_id: int | None
    word_ids: bytes | None
    normal_form: str | None
    language: str


class Copy(NamedTuple):
    """Documents of the old corpus, and the batch that is made of them for the new one."""

    rows: list[OldRow]
    batch: Batch


class CorpusCopier:
    """Brings a new corpus up to what an old one holds."""

    def __init__(self, old: StoredCorpus, store: Store) -> None:
        """Copy from old to the corpus of the store."""
        self._old = old
        self.new = store.corpus
        self._engine = store.engine
        self._dictionary = store.dictionary
        empty = np.empty(0, np.int64)
        self._copied = Versions(empty, empty, empty)

    def copy_changes(self, progress: Callable[[int, int], None] | None) -> tuple[int, int]:
        """Copy what has changed since the last call, in short transactions.

        Returns how many documents were copied, and how many were removed. progress is called with
        the documents copied so far, and their number.
        """
        with transaction(self._engine) as connection:
            versions = self._versions(connection.cursor(binary=True))
        gone, changed = versions.gone_since(self._copied), versions.changed_since(self._copied)
        for start in range(0, len(gone), DOCUMENTS_AT_ONCE):
            with transaction(self._engine) as connection:
                cursor = connection.cursor(binary=True)
                self._remove(cursor, gone[start : start + DOCUMENTS_AT_ONCE])
        is_first = not len(self._copied.ids)
        done = 0
        with closing(ahead(changed.parts(), self._read_committed)) as copies:
            for copy in copies:
                with transaction(self._engine) as connection:
                    self._write(connection.cursor(binary=True), copy, replaces=not is_first)
                done += len(copy.rows)
                if progress is not None:
                    progress(done, len(changed.ids))
        self._copied = versions
        return done, len(gone)

    def copy_rest(self, cursor: Cursor) -> None:
        """Copy what has changed since the last round, in the caller's transaction."""
        versions = self._versions(cursor)
        self._remove(cursor, versions.gone_since(self._copied))
        for ids in versions.changed_since(self._copied).parts():
            self._write(cursor, self._read(cursor, ids), replaces=True)

    def _versions(self, cursor: Cursor) -> Versions:
        with cursor.copy(self._old.statement(statements.DOCUMENT_VERSIONS)) as copy:
            data = b"".join(bytes(part) for part in copy)
        rows = np.frombuffer(data[_COPY_HEAD:-_COPY_TAIL], _VERSION_FIELDS)
        rows = rows[np.argsort(rows["id"], kind="stable")]
        return Versions(*(rows[name].astype(np.int64) for name in ("id", "version", "size")))

    def _read_committed(self, ids: Ids) -> Copy:
        with autocommit(self._engine) as connection:
            return self._read(connection.cursor(binary=True), ids)

    def _read(self, cursor: Cursor, ids: Ids) -> Copy:
        """Read documents of the old corpus, and compute what the new one stores."""
        fetched = cursor.execute(self._old.statement(statements.DOCUMENTS_TO_COPY), [Array(ids)])
        rows = [OldRow(*fields) for fields in fetched]
        word_ids, offsets = load_int4_arrays([row.word_ids or b"" for row in rows])
        composed = normal_forms(word_ids, offsets, self._dictionary)
        forms = [
            form if row.normal_form is None else row.normal_form
            for row, form in zip(rows, composed, strict=True)
        ]
        tokens = tokens_of([form.encode() for form in forms])
        ids_of_words = np.zeros(len(tokens.starts), np.int32)
        has_ids = np.array([row.normal_form is None for row in rows], np.bool_)
        ids_of_words[np.repeat(has_ids, np.diff(tokens.word_offsets))] = word_ids
        sketches = sketch_tokens(tokens, self.new.config)
        languages = None
        if self.new.config.language is not None:
            languages = [row.language for row in rows]
        keys = [row.key for row in rows]
        return Copy(rows, Batch(keys, [], sketches, [], 0, languages, ids_of_words))

    def _write(self, cursor: Cursor, copy: Copy, replaces: bool) -> None:
        rows, batch = copy
        ids = np.array([row.id for row in rows], np.int64)
        if replaces:
            self._remove(cursor, ids)
        for source_id, numbers in groupby(range(len(rows)), lambda i: rows[i].source_id):
            complete = [i for i in numbers if rows[i].normal_form is None]
            chosen = np.array(complete, np.int64)
            write_batch.insert(cursor, self.new, batch, chosen, ids[chosen], source_id)
        waiting = [i for i, row in enumerate(rows) if row.normal_form is not None]
        self._write_waiting(cursor, copy, np.array(waiting, np.int64))

    def _write_waiting(self, cursor: Cursor, copy: Copy, numbers: Ids) -> None:
        """Write documents whose words have no ids yet; the log of the old corpus still has them."""
        sketches = copy.batch.sketches
        parameters = []
        for i in numbers.tolist():
            row, count = copy.rows[i], int(sketches.shingle_counts[i])
            values = (row.id, row.source_id, row.key, Array(sketches.signatures[i]))
            parameters.append((self.new.id, count, *values, row.normal_form))
        cursor.executemany(self.new.statement(statements.INSERT_WAITING_DOCUMENT), parameters)
        ids = np.array([copy.rows[i].id for i in numbers.tolist()], np.int64)
        copy_band_rows(cursor, self.new, band_rows(sketches.buckets.take(numbers), ids))

    def _remove(self, cursor: Cursor, ids: Ids) -> None:
        if len(ids):
            statement = self.new.statement(statements.STORED_SIGNATURES)
            rows = cursor.execute(statement, [Array(ids)]).fetchall()
            stored = [Stored(id_, None, None, None, None, signature) for id_, signature in rows]
            write_batch.remove_locked(cursor, self.new, stored)
