"""The dictionary gives ids to words, in short transactions of its own.

It never adds words inside a transaction that writes documents. Two such transactions that add the same
words in a different order would wait for each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet

from sqlalchemy import Engine

from textsim_db.db import statements
from textsim_db.db.engine import read_rows
from textsim_db.errors import DatabaseError

if TYPE_CHECKING:
    from textsim_db.db.word_cache import WordCache
    from textsim_db.text.numba_compiler import Int32Array
    from textsim_db.text.tokens import Tokens

MAX_TEXTS = 500_000


class Dictionary:
    """Word ids of one database, with a bounded cache; safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._cache: WordCache | None = None
        self._texts: dict[int, str] = {}
        _dictionaries.add(self)

    def find(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, 0 if the dictionary does not have it; adds no word."""
        return self._resolve(tokens, add=False)

    def ensure(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, after adding the missing words; 0 if another word has its hash."""
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
        ((last,),) = read_rows(self._engine, statements.LAST_WORD_ID)
        return int(last)

    def _read_texts(self, ids: set[int]) -> dict[int, str]:
        from textsim_db.db.word_rows import read_texts

        texts = read_texts(self._engine, ids)
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
        from textsim_db.db.word_cache import WordCache, distinct_missing
        from textsim_db.db.word_rows import fetch_ids, part_of

        with self._lock:
            self._cache = self._cache or WordCache()
            ids = self._cache.find(tokens)
        if ids.all():
            return ids
        (missing,) = (ids == 0).nonzero()
        words = part_of(tokens, distinct_missing(tokens, ids))
        # Without the lock, so that no thread waits for the database on behalf of another one.
        ids_of_words = fetch_ids(self._engine, words, add)
        (has_id,) = ids_of_words.nonzero()
        with self._lock:
            cache = self._cache
            cache.add(part_of(words, has_id), ids_of_words[has_id])
            # The cache compares bytes. So a word that only shares its hash with another word, of the
            # dictionary or of this batch, gets no id.
            ids[missing] = cache.find(part_of(tokens, missing))
        return ids


_dictionaries: WeakSet[Dictionary] = WeakSet()


def _renew_locks() -> None:
    for dictionary in list(_dictionaries):
        dictionary._renew_lock()


os.register_at_fork(after_in_child=_renew_locks)


def unknown_word(word_id: int) -> DatabaseError:
    """Return the error for an id that the dictionary does not have."""
    return DatabaseError(f"word id {word_id} is not in the dictionary; run textsim check")
