"""The dictionary of a corpus gives ids to words, in short transactions of its own.

It never adds words inside a transaction that writes documents. Two such transactions that add the same
words in a different order would wait for each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet

from textsim_db.db import statements
from textsim_db.db.engine import read_rows
from textsim_db.db.stored_corpus import named
from textsim_db.errors import DatabaseError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from textsim_db.base.numba_compiler import Int32Array
    from textsim_db.text.utf8 import Tokens
    from textsim_db.text.word_cache import WordCache

MAX_TEXTS = 500_000
"""The words that all dictionaries of a process keep by their ids."""


class Dictionaries:
    """The dictionaries of the corpora of a database, with one bounded cache; threads may share it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.lock = threading.Lock()
        self._cached: dict[int, _Cached] = {}
        """The words of each corpus; the corpus that was used last comes last."""
        _all.add(self)

    def of(self, corpus_id: int) -> StoredDictionary:
        """Return the dictionary of a corpus. A rebuild gives a corpus another id, and new word ids."""
        return StoredDictionary(self, corpus_id)

    def cached(self, corpus_id: int) -> _Cached:
        """Return the cached words of a corpus, without those of others if all are too many.

        The caller holds the lock.
        """
        chosen = self._cached.pop(corpus_id, None) or _Cached()
        self._cached[corpus_id] = chosen
        while len(self._cached) > 1 and self._are_too_many():
            del self._cached[next(iter(self._cached))]
        return chosen

    def _are_too_many(self) -> bool:
        from textsim_db.text.word_cache import MAX_CACHED_WORDS

        each = self._cached.values()
        return (
            sum(len(cached.texts) for cached in each) > MAX_TEXTS
            or sum(len(cached.words) for cached in each if cached.words) > MAX_CACHED_WORDS
        )

    def renew_lock(self) -> None:
        """Replace the lock and the caches in a forked child, if a thread of the parent held the lock."""
        if self.lock.locked():
            self.lock = threading.Lock()
            self._cached = {}


class _Cached:
    """Words of a corpus."""

    def __init__(self) -> None:
        self.words: WordCache | None = None
        """Finds the id of a word; None until kernels look one up."""
        self.texts: dict[int, str] = {}
        """Words by their ids."""


class StoredDictionary:
    """The word ids of a corpus."""

    def __init__(self, dictionaries: Dictionaries, corpus_id: int) -> None:
        self._all = dictionaries
        self._engine = dictionaries.engine
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
        with self._all.lock:
            kept = self._all.cached(self._corpus_id).texts
            texts = {word_id: kept[word_id] for word_id in wanted & kept.keys()}
        if missing := wanted - texts.keys():
            texts |= self._read_texts(missing)
        return texts

    def last(self) -> int:
        """Return the highest id in the dictionary, 0 if it is empty."""
        ((last,),) = read_rows(self._engine, named(statements.LAST_WORD_ID, self._corpus_id))
        return int(last)

    def _read_texts(self, ids: set[int]) -> dict[int, str]:
        from textsim_db.db.word_rows import read_texts

        texts = read_texts(self._engine, self._corpus_id, ids)
        if absent := ids - texts.keys():
            raise unknown_word(min(absent))
        with self._all.lock:
            kept = self._all.cached(self._corpus_id).texts
            if len(kept) + len(texts) > MAX_TEXTS:
                kept.clear()
            kept.update(texts)
        return texts

    def _resolve(self, tokens: Tokens, add: bool) -> Int32Array:
        from textsim_db.db.word_rows import fetch_ids
        from textsim_db.text.word_cache import distinct_missing

        with self._all.lock:
            ids = self._cache().find(tokens)
        if ids.all():
            return ids
        (missing,) = (ids == 0).nonzero()
        words = tokens.take(distinct_missing(tokens, ids))
        # Without the lock, so that no thread waits for the database on behalf of another one.
        ids_of_words = fetch_ids(self._engine, self._corpus_id, words, add)
        (has_id,) = ids_of_words.nonzero()
        with self._all.lock:
            cache = self._cache()
            cache.add(words.take(has_id), ids_of_words[has_id])
            # The cache compares bytes. So a word that only shares its hash with another word, of the
            # dictionary or of this batch, gets no id.
            ids[missing] = cache.find(tokens.take(missing))
        return ids

    def _cache(self) -> WordCache:
        """Return the cache of ids; the caller holds the lock."""
        from textsim_db.text.word_cache import WordCache

        cached = self._all.cached(self._corpus_id)
        if cached.words is None:
            cached.words = WordCache()
        return cached.words


class MemoryDictionary:
    """Ids of words as long as the object lives, for a corpus of characters, which stores none."""

    def __init__(self) -> None:
        from textsim_db.text.word_cache import WordsInMemory

        self._words = WordsInMemory()

    def find(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, 0 if another word has its hash."""
        return self._words.ids(tokens)

    def ensure(self, tokens: Tokens) -> None:
        """Return no ids, because none are stored."""

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        import numpy as np

        return self._words.texts(np.fromiter(ids, np.int32))

    def last(self) -> int:
        return len(self._words)


Dictionary = StoredDictionary | MemoryDictionary

_all: WeakSet[Dictionaries] = WeakSet()


def _renew_locks() -> None:
    for dictionaries in list(_all):
        dictionaries.renew_lock()


os.register_at_fork(after_in_child=_renew_locks)


def unknown_word(word_id: int) -> DatabaseError:
    """Return the error for an id that the dictionary does not have."""
    return DatabaseError(f"word id {word_id} is not in the dictionary; run textsim check")
