"""The dictionary of words: ids given out in short transactions of their own.

Never inside a transaction that writes documents: two of those that add the same words in turn
would wait for each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import psycopg
from sqlalchemy import Engine

from textsim_db.db import statements
from textsim_db.db.engine import Connection, autocommit
from textsim_db.db.retries import is_timeout, repeated
from textsim_db.errors import DatabaseError

if TYPE_CHECKING:
    from textsim_db.db.binary_format import Array
    from textsim_db.db.word_cache import WordCache
    from textsim_db.text.array_types import Int32Array
    from textsim_db.text.tokens import Tokens

INSERT_WORDS = 10_000
MAX_TEXTS = 500_000

Entry = tuple[int, int, str]
"""Hash, id and word."""


class Dictionary:
    """Word ids of one database, with a bounded cache; safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._cache: WordCache | None = None
        self._texts: dict[int, str] = {}
        _dictionaries.add(self)

    def find(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, 0 for those the dictionary does not have; adds none."""
        return self._resolve(tokens, add=False)

    def ensure(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, adding those that are missing.

        0 is left only for a word whose 64-bit hash is that of a different word of the dictionary.
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
        """Return the highest id that has been given out, 0 if none has."""
        with autocommit(self._engine) as connection:
            (last,) = connection.execute(statements.LAST_WORD_ID).fetchone() or (0,)
        return int(last)

    def _read_texts(self, ids: set[int]) -> dict[int, str]:
        parameter = _array(sorted(ids), "int32")
        with autocommit(self._engine) as connection:
            cursor = connection.cursor(binary=True).execute(statements.WORDS_BY_ID, [parameter])
            texts = dict(cursor.fetchall())
        if absent := ids - texts.keys():
            raise unknown_word(min(absent))
        with self._lock:
            if len(self._texts) + len(texts) > MAX_TEXTS:
                self._texts.clear()
            self._texts.update(texts)
        return texts

    def _renew_lock(self) -> None:
        """Drop a lock, and the cache that it protects, if a thread of the parent holds it."""
        if self._lock.locked():
            self._lock = threading.Lock()
            self._cache = None

    def _resolve(self, tokens: Tokens, add: bool) -> Int32Array:
        # Imported here, because most commands open a database and look up no word.
        import numpy as np

        with self._lock:
            if self._cache is None:
                self._cache = _empty_cache()
            ids = self._cache.find(tokens)
            if ids.all():
                return ids
            missing = np.flatnonzero(ids == 0)
            distinct, first = np.unique(tokens.hashes[missing], return_index=True)
            words = tokens.words(missing[first])
            entries = self._fetch(dict(zip(distinct.tolist(), words, strict=True)), add)
            self._cache.add(
                np.fromiter((entry[0] for entry in entries), np.int64, len(entries)),
                np.fromiter((entry[1] for entry in entries), np.int32, len(entries)),
                [entry[2].encode() for entry in entries],
            )
            # Looked up again by bytes: a word that only shares its hash with an entry, or with another
            # word of this batch, stays without an id.
            missing_tokens = tokens._replace(
                starts=tokens.starts[missing],
                ends=tokens.ends[missing],
                hashes=tokens.hashes[missing],
            )
            ids[missing] = self._cache.find(missing_tokens)
            return ids

    def _fetch(self, words: dict[int, str], add: bool) -> list[Entry]:
        """Return the entries of words by their hashes, in the order of the hashes."""
        hashes = list(words)
        chunks = [hashes[i : i + INSERT_WORDS] for i in range(0, len(hashes), INSERT_WORDS)]
        if not add:
            with autocommit(self._engine) as connection:
                return [entry for chunk in chunks for entry in _select(connection, chunk)]
        return [entry for chunk in chunks for entry in self._add(chunk, words)]

    def _add(self, hashes: list[int], words: dict[int, str]) -> list[Entry]:
        """Add the missing words, in halves if that takes longer than the server allows."""

        def add(_: int) -> list[Entry]:
            with autocommit(self._engine) as connection:
                return _select_or_insert(connection, hashes, words)

        try:
            return repeated(add)
        except psycopg.Error as error:
            if len(hashes) < 2 or not is_timeout(self._engine, error):
                raise
        middle = len(hashes) // 2
        return self._add(hashes[:middle], words) + self._add(hashes[middle:], words)


_dictionaries: WeakSet[Dictionary] = WeakSet()


def _renew_locks() -> None:
    for dictionary in list(_dictionaries):
        dictionary._renew_lock()


os.register_at_fork(after_in_child=_renew_locks)


def unknown_word(word_id: int) -> DatabaseError:
    """Return the error for an id that the dictionary does not have."""
    return DatabaseError(f"word id {word_id} is not in the dictionary: run textsim check")


def _select(connection: Connection, hashes: list[int]) -> list[Entry]:
    cursor = connection.cursor(binary=True)
    return cursor.execute(statements.SELECT_WORDS, [_array(hashes)], prepare=True).fetchall()


def _select_or_insert(
    connection: Connection, hashes: list[int], words: dict[int, str]
) -> list[Entry]:
    entries = _select(connection, hashes)
    if missing := _without(hashes, entries):
        parameters = [_array(missing), [words[value] for value in missing]]
        with connection.transaction():
            connection.execute(statements.DURABLE, prepare=True)
            cursor = connection.cursor(binary=True)
            inserted = cursor.execute(statements.INSERT_WORDS, parameters, prepare=True).fetchall()
        entries += [(value, id_, words[value]) for value, id_ in inserted]
        # Another writer may have been first with a few of them.
        if won_by_others := _without(missing, inserted):
            entries += _select(connection, won_by_others)
    return entries


def _without(hashes: list[int], rows: Sequence[tuple[Any, ...]]) -> list[int]:
    """Return the hashes that no row begins with."""
    present = {row[0] for row in rows}
    return [value for value in hashes if value not in present]


def _empty_cache() -> WordCache:
    from textsim_db.db.word_cache import WordCache

    return WordCache()


def _array(values: list[int], dtype: str = "int64") -> Array:
    import numpy as np

    from textsim_db.db.binary_format import Array

    return Array(np.array(values, dtype))
