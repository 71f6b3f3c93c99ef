"""The dictionary of a corpus gives ids to words, in short transactions of its own.

It never adds words inside a transaction that writes documents. Two such transactions that add the same
words in a different order would wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from psycopg import errors as pg

from textsim_db.base.numba_compiler import Int32Array
from textsim_db.base.run_ahead import ahead
from textsim_db.db import binary_format, statements
from textsim_db.db.engine import Connection, autocommit, read_rows, transaction
from textsim_db.db.retries import Attempts
from textsim_db.db.store import MAX_TEXTS, KnownWords, Store
from textsim_db.db.stored_corpus import named
from textsim_db.errors import DatabaseError
from textsim_db.text.utf8 import Tokens
from textsim_db.text.word_cache import WordCache, WordsInMemory, distinct_missing

if TYPE_CHECKING:
    from sqlalchemy import Engine

WORDS_AT_ONCE = 10_000
"""The words of one transaction."""
WORD_WRITERS = 2
"""The transactions that add the words of one batch at once. The first batch of a load waits for them."""
BULK_WORDS = 1_000
"""From this number on, new words are a bulk, which the server adds a third faster."""


class StoredDictionary:
    """The word ids of a corpus."""

    def __init__(self, known_words: KnownWords, corpus_id: int) -> None:
        self._known = known_words
        self._engine = known_words.engine
        self._corpus_id = corpus_id

    def find(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, 0 if the dictionary does not have it; adds no word."""
        return self._resolve(tokens, add=False)

    def ensure(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, after adding the missing words; 0 if another word has its hash."""
        return self._resolve(tokens, add=True)

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the words of ids; raises DatabaseError if an id is not in the dictionary."""
        wanted = set(ids)
        with self._known.lock:
            kept = self._known.cached(self._corpus_id).texts
            texts = {word_id: kept[word_id] for word_id in wanted & kept.keys()}
        if missing := wanted - texts.keys():
            texts |= self._read_texts(missing)
        return texts

    def last(self) -> int:
        """Return the highest id in the dictionary, 0 if it is empty."""
        ((last,),) = read_rows(self._engine, named(statements.LAST_WORD_ID, self._corpus_id))
        return int(last)

    def _read_texts(self, ids: set[int]) -> dict[int, str]:
        statement = named(statements.WORDS_BY_ID, self._corpus_id)
        parameters = [binary_format.array(np.array(sorted(ids), np.int32))]
        texts = dict(read_rows(self._engine, statement, parameters, binary=True))
        if absent := ids - texts.keys():
            raise unknown_word(min(absent))
        with self._known.lock:
            kept = self._known.cached(self._corpus_id).texts
            if len(kept) + len(texts) > MAX_TEXTS:
                kept.clear()
            kept.update(texts)
        return texts

    def _resolve(self, tokens: Tokens, add: bool) -> Int32Array:
        with self._known.lock:
            ids = self._cache().find(tokens)
        if ids.all():
            return ids
        (missing,) = (ids == 0).nonzero()
        words = tokens.take(distinct_missing(tokens, ids))
        # Without the lock, so that no thread waits for the database on behalf of another one.
        ids_of_words = _fetch_ids(self._engine, self._corpus_id, words, add)
        (has_id,) = ids_of_words.nonzero()
        with self._known.lock:
            cache = self._cache()
            cache.add(words.take(has_id), ids_of_words[has_id])
            # The cache compares bytes. So a word that only shares its hash with another word, of the
            # dictionary or of this batch, gets no id.
            ids[missing] = cache.find(tokens.take(missing))
        return ids

    def _cache(self) -> WordCache:
        """Return the cache of ids; the caller holds the lock."""
        cached = self._known.cached(self._corpus_id)
        if cached.words is None:
            cached.words = WordCache()
        return cached.words


class MemoryDictionary:
    """Ids of words as long as the object lives, for a corpus of characters, which stores none."""

    def __init__(self) -> None:
        self._words = WordsInMemory()

    def find(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, 0 if another word has its hash."""
        return self._words.ids(tokens)

    def ensure(self, tokens: Tokens) -> None:
        """Return no ids, because none are stored."""

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        return self._words.texts(np.fromiter(ids, np.int32))

    def last(self) -> int:
        return len(self._words)


Dictionary = StoredDictionary | MemoryDictionary


def dictionary_of(store: Store) -> Dictionary:
    """Return the dictionary of a corpus. A rebuild gives a corpus another id, and new word ids."""
    if store.corpus.config.has_dictionary:
        return StoredDictionary(store.known_words, store.corpus.id)
    return MemoryDictionary()


def unknown_word(word_id: int) -> DatabaseError:
    """Return the error for an id that the dictionary does not have."""
    return DatabaseError(f"word id {word_id} is not in the dictionary; run textsim check")


def _fetch_ids(engine: Engine, corpus_id: int, words: Tokens, add: bool) -> Int32Array:
    """Return the ids of words with different hashes, 0 for a word that the dictionary does not have."""
    starts = range(0, len(words.hashes), WORDS_AT_ONCE)
    slices = [words.take(slice(start, start + WORDS_AT_ONCE)) for start in starts]
    if not add:
        with autocommit(engine) as connection:
            return np.concatenate([_select(connection, corpus_id, some) for some in slices])
    if len(slices) == 1:
        return _add(engine, corpus_id, words)
    add_slice = partial(_add, engine, corpus_id)
    return np.concatenate([*ahead(slices, add_slice, WORD_WRITERS, WORD_WRITERS)])


def _add(engine: Engine, corpus_id: int, words: Tokens) -> Int32Array:
    """Add the missing words, in halves if that exceeds a time limit of the server."""
    ids = np.zeros(len(words.hashes), np.int32)
    for attempt in Attempts(engine, len(ids)):
        with attempt, transaction(engine) as connection:
            some = words.take(attempt.slice)
            ids[attempt.slice] = _select_or_insert(connection, corpus_id, some)
    return ids


def _select(connection: Connection, corpus_id: int, words: Tokens) -> Int32Array:
    statement = named(statements.SELECT_WORDS, corpus_id)
    rows = connection.execute(statement, _parameters(words), prepare=True, binary=True)
    ((ids,),) = rows.fetchall()
    return binary_format.load_int4_array(ids)


def _select_or_insert(connection: Connection, corpus_id: int, words: Tokens) -> Int32Array:
    ids = _select(connection, corpus_id, words)
    missing = np.flatnonzero(ids == 0)
    if len(missing):
        connection.execute(statements.DURABLE, prepare=True)
        ids[missing] = _insert(connection, corpus_id, words.take(missing))
        # Another writer may have added some of the words meanwhile.
        still_missing = np.flatnonzero(ids == 0)
        if len(still_missing):
            ids[still_missing] = _select(connection, corpus_id, words.take(still_missing))
    return ids


def _insert(connection: Connection, corpus_id: int, words: Tokens) -> Int32Array:
    """Add words; return the id of each, 0 if the dictionary has a word with the same hash already.

    Another writer rarely adds words of the same bulk. So the server looks for it only after a failure.
    """
    if len(words.hashes) >= BULK_WORDS:
        with suppress(pg.UniqueViolation), connection.transaction():
            return _insert_by(connection, named(statements.ADD_NEW_WORDS, corpus_id), words)
    return _insert_by(connection, named(statements.ADD_MISSING_WORDS, corpus_id), words)


def _insert_by(connection: Connection, statement: str, words: Tokens) -> Int32Array:
    ids = np.zeros(len(words.hashes), np.int32)
    rows = connection.execute(statement, _parameters(words), prepare=True, binary=True)
    ((hashes, added),) = rows.fetchall()
    if hashes is not None:
        new_hashes = binary_format.load_int8_array(hashes)
        is_added = np.isin(words.hashes, new_hashes, assume_unique=True)
        ids[is_added] = binary_format.load_int4_array(added)
    return ids


def _parameters(words: Tokens) -> list[binary_format.Parameter]:
    texts = binary_format.dump_spans(words.normal, words.starts, words.ends)
    return [binary_format.array(words.hashes), binary_format.Parameter(texts, binary_format.TEXTS)]
