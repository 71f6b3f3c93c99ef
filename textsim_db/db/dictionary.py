"""The dictionary gives ids to words, in short transactions of its own.

It never adds words inside a transaction that writes documents. Two such transactions that add the same
words in a different order would wait for each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, LiteralString
from weakref import WeakSet

from psycopg import errors as pg
from sqlalchemy import Engine

from textsim_db.db import statements
from textsim_db.db.engine import Connection, autocommit, read_rows, transaction
from textsim_db.db.retries import Attempts
from textsim_db.errors import DatabaseError
from textsim_db.lazy_imports import lazy
from textsim_db.text.run_ahead import ahead

if TYPE_CHECKING:
    import numpy as np

    from textsim_db.db import binary_format, binary_rows, word_cache
    from textsim_db.text.numba_compiler import Int32Array, Int64Array
    from textsim_db.text.tokens import Tokens
else:  # most commands never look up a word
    np = lazy("numpy", globals())
    binary_format = lazy("textsim_db.db.binary_format", globals())
    binary_rows = lazy("textsim_db.db.binary_rows", globals())
    word_cache = lazy("textsim_db.db.word_cache", globals())

WORDS_AT_ONCE = 10_000
"""The words of one transaction."""
WORD_WRITERS = 2
"""The transactions that add the words of one batch at once. The first batch of a load waits for them."""
BULK_WORDS = 1_000
"""From this number on, new words are a bulk, which the server adds a third faster."""
MAX_TEXTS = 500_000


class Dictionary:
    """Word ids of one database, with a bounded cache; safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._cache: word_cache.WordCache | None = None
        self._texts: dict[int, str] = {}
        _dictionaries.add(self)

    def find(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, 0 if the dictionary does not have it; adds no word."""
        return self._resolve(tokens, add=False)

    def ensure(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, after adding the missing words.

        A word gets 0 only if another word of the dictionary has the same 64-bit hash.
        """
        return self._resolve(tokens, add=True)

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the words of ids; raises DatabaseError if an id is not in the dictionary."""
        wanted = set(ids)
        with self._lock:
            texts = {word_id: self._texts[word_id] for word_id in wanted & self._texts.keys()}
        if missing := wanted - texts.keys():
            texts |= self._read_texts(missing)
        return texts

    def last(self) -> int:
        """Return the highest id in the dictionary, 0 if it is empty."""
        ((last,),) = read_rows(self._engine, statements.LAST_WORD_ID)
        return int(last)

    def _read_texts(self, ids: set[int]) -> dict[int, str]:
        parameters = [binary_format.Array(np.array(sorted(ids), np.int32))]
        texts = dict(read_rows(self._engine, statements.WORDS_BY_ID, parameters, binary=True))
        if absent := ids - texts.keys():
            raise unknown_word(min(absent))
        with self._lock:
            if len(self._texts) + len(texts) > MAX_TEXTS:
                self._texts.clear()
            self._texts.update(texts)
        return texts

    def _renew_lock(self) -> None:
        """Replace the lock and the cache in a forked child, if a thread of the parent held the lock."""
        if self._lock.locked():
            self._lock = threading.Lock()
            self._cache = None

    def _resolve(self, tokens: Tokens, add: bool) -> Int32Array:
        with self._lock:
            ids = self._cached().find(tokens)
        if ids.all():
            return ids
        missing = np.flatnonzero(ids == 0)
        words = _part(tokens, word_cache.distinct_missing(tokens, ids))
        # Without the lock, so that no thread waits for the database on behalf of another one.
        ids_of_words = self._fetch(words, add)
        has_id = np.flatnonzero(ids_of_words)
        with self._lock:
            cache = self._cached()
            cache.add(_part(words, has_id), ids_of_words[has_id])
            # The cache compares bytes. So a word that only shares its hash with another word, of the
            # dictionary or of this batch, gets no id.
            ids[missing] = cache.find(_part(tokens, missing))
        return ids

    def _cached(self) -> word_cache.WordCache:
        if self._cache is None:
            self._cache = word_cache.WordCache()
        return self._cache

    def _fetch(self, words: Tokens, add: bool) -> Int32Array:
        """Return the ids of words with different hashes."""
        starts = range(0, len(words.hashes), WORDS_AT_ONCE)
        parts = [_part(words, slice(start, start + WORDS_AT_ONCE)) for start in starts]
        if not add:
            with autocommit(self._engine) as connection:
                return np.concatenate([_select(connection, part) for part in parts])
        if len(parts) == 1:
            return self._add(words)
        return np.concatenate([*ahead(parts, self._add, WORD_WRITERS, WORD_WRITERS)])

    def _add(self, words: Tokens) -> Int32Array:
        """Add the missing words, in halves if that exceeds a time limit of the server."""
        ids = np.zeros(len(words.hashes), np.int32)
        for attempt in Attempts(self._engine, len(ids)):
            with attempt, transaction(self._engine) as connection:
                ids[attempt.part] = _select_or_insert(connection, _part(words, attempt.part))
        return ids


_dictionaries: WeakSet[Dictionary] = WeakSet()


def _renew_locks() -> None:
    for dictionary in list(_dictionaries):
        dictionary._renew_lock()


os.register_at_fork(after_in_child=_renew_locks)


def unknown_word(word_id: int) -> DatabaseError:
    """Return the error for an id that the dictionary does not have."""
    return DatabaseError(f"word id {word_id} is not in the dictionary; run textsim check")


def _part(tokens: Tokens, chosen: slice | Int64Array) -> Tokens:
    """Return the chosen words. The result does not tell which document has which words."""
    return tokens._replace(
        starts=tokens.starts[chosen], ends=tokens.ends[chosen], hashes=tokens.hashes[chosen]
    )


def _select(connection: Connection, words: Tokens) -> Int32Array:
    """Return the id of each word, 0 if the dictionary does not have it."""
    rows = connection.execute(
        statements.SELECT_WORDS, _parameters(words), prepare=True, binary=True
    )
    ((ids,),) = rows.fetchall()
    return binary_format.load_int4_array(ids)


def _select_or_insert(connection: Connection, words: Tokens) -> Int32Array:
    ids = _select(connection, words)
    missing = np.flatnonzero(ids == 0)
    if len(missing):
        connection.execute(statements.DURABLE, prepare=True)
        ids[missing] = _insert(connection, _part(words, missing))
        # Another writer may have added some of the words meanwhile.
        still_missing = np.flatnonzero(ids == 0)
        if len(still_missing):
            ids[still_missing] = _select(connection, _part(words, still_missing))
    return ids


def _insert(connection: Connection, words: Tokens) -> Int32Array:
    """Add words; return the id of each, 0 if the dictionary has a word with the same hash already.

    Another writer rarely adds words of the same bulk. So the server looks for it only after a failure.
    """
    if len(words.hashes) >= BULK_WORDS:
        with suppress(pg.UniqueViolation), connection.transaction():
            return _insert_by(connection, statements.ADD_NEW_WORDS, words)
    return _insert_by(connection, statements.ADD_MISSING_WORDS, words)


def _insert_by(connection: Connection, statement: LiteralString, words: Tokens) -> Int32Array:
    ids = np.zeros(len(words.hashes), np.int32)
    rows = connection.execute(statement, _parameters(words), prepare=True, binary=True)
    ((hashes, added),) = rows.fetchall()
    if hashes is not None:
        new_hashes = binary_format.load_int8_array(hashes)
        is_added = np.isin(words.hashes, new_hashes, assume_unique=True)
        ids[is_added] = binary_format.load_int4_array(added)
    return ids


def _parameters(words: Tokens) -> list[binary_format.Array | binary_format.TextArray]:
    texts = binary_rows.dump_spans(words.normal, words.starts, words.ends)
    return [binary_format.Array(words.hashes), binary_format.TextArray(texts)]
