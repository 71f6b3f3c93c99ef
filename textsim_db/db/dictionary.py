"""The dictionary of words: ids given out in short transactions of their own.

Never inside a transaction that writes documents: two of those that add the same words in turn
would wait for each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet

import psycopg
from sqlalchemy import Engine

from textsim_db.db.engine import Connection, autocommit
from textsim_db.db.retries import is_timeout, repeated
from textsim_db.errors import DatabaseError
from textsim_db.lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from textsim_db.db import binary_format, word_cache
    from textsim_db.text import hashing
    from textsim_db.text.tokens import Tokens
else:
    np = lazy("numpy")
    binary_format = lazy("textsim_db.db.binary_format")
    hashing = lazy("textsim_db.text.hashing")
    word_cache = lazy("textsim_db.db.word_cache")

INSERT_WORDS = 10_000
MAX_TEXTS = 500_000

_SELECT = """
/* textsim-db: find words in the dictionary */
SELECT w.hash, w.id, w.word
FROM pg_catalog.unnest(%s::bigint[]) q (hash) JOIN textsim.word w ON w.hash = q.hash
"""
# In the order of the hashes, so that two writers wait for each other in one direction only.
_INSERT = """
/* textsim-db: add words to the dictionary */
INSERT INTO textsim.word (hash, word)
SELECT hash, word FROM unnest(%s::bigint[], %s::text[]) q (hash, word) ORDER BY hash
ON CONFLICT (hash) DO NOTHING
RETURNING hash, id
"""
# An id is remembered, and given to documents later on: the word must not be lost in a crash before
# that, nor its id be given to another one, though the role cares little for its last transactions.
_DURABLE = """
SELECT pg_catalog.set_config('synchronous_commit', 'on', true)
WHERE pg_catalog.current_setting('synchronous_commit') = 'off'
"""
_TEXTS = """
/* textsim-db: read the dictionary */
SELECT id, word FROM textsim.word WHERE id = ANY (%s::integer[])
"""
_LAST = "SELECT coalesce(max(id), 0) FROM textsim.word"

Entry = tuple[int, int, str]
"""Hash, id and word."""


class Dictionary:
    """Word ids of one database, with a bounded cache; safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._cache: word_cache.WordCache | None = None
        self._texts: dict[int, str] = {}
        _dictionaries.add(self)

    def find(self, tokens: Tokens) -> npt.NDArray[np.int32]:
        """Return the id of each word, 0 for those the dictionary does not have; adds none."""
        return self._resolve(tokens, add=False)

    def ensure(self, tokens: Tokens) -> npt.NDArray[np.int32]:
        """Return the id of each word, adding those that are missing.

        0 is left only for a word whose 64-bit hash is that of a different word of the dictionary.
        """
        return self._resolve(tokens, add=True)

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the words of some ids; raises DatabaseError where an id is not in the dictionary."""
        wanted = set(ids)
        with self._lock:
            known = {i: self._texts[i] for i in wanted if i in self._texts}
        missing = wanted - known.keys()
        if missing:
            with autocommit(self._engine) as connection:
                array = np.fromiter(sorted(missing), np.int32, len(missing))
                found = dict(
                    connection.cursor(binary=True)
                    .execute(_TEXTS, [binary_format.Array(array)])
                    .fetchall()
                )
            if unknown := missing - found.keys():
                raise unknown_word(min(unknown))
            with self._lock:
                if len(self._texts) + len(found) > MAX_TEXTS:
                    self._texts.clear()
                self._texts.update(found)
            known |= found
        return known

    def last(self) -> int:
        """Return the highest id that has been given out, 0 where none has."""
        with autocommit(self._engine) as connection:
            (last,) = connection.execute(_LAST).fetchone() or (0,)
        return int(last)

    def _renew_lock(self) -> None:
        """Drop a lock, and the cache that it protects, if a thread of the parent holds it."""
        if self._lock.locked():
            self._lock = threading.Lock()
            self._cache = None

    def _resolve(self, tokens: Tokens, add: bool) -> npt.NDArray[np.int32]:
        hashes = hashing.hash_spans(tokens.normal, tokens.starts, tokens.ends)
        with self._lock:
            if self._cache is None:
                self._cache = word_cache.WordCache()
            ids = self._cache.find(tokens, hashes)
            missing = np.flatnonzero(ids == 0)
            if not len(missing):
                return ids
            distinct, first = np.unique(hashes[missing], return_index=True)
            words = tokens.words(missing[first])
            found = self._fetch(dict(zip(distinct.tolist(), words, strict=True)), add)
            self._cache.add(
                np.fromiter((row[0] for row in found), np.int64, len(found)),
                np.fromiter((row[1] for row in found), np.int32, len(found)),
                [row[2].encode() for row in found],
            )
            # Looked up again by bytes: a word that only shares its hash with what was found, or
            # with another one of this batch, stays without an id.
            some = type(tokens)(
                tokens.normal,
                tokens.normal_offsets,
                tokens.starts[missing],
                tokens.ends[missing],
                tokens.word_offsets,
            )
            ids[missing] = self._cache.find(some, hashes[missing])
            return ids

    def _fetch(self, wanted: dict[int, str], add: bool) -> list[Entry]:
        hashes = list(wanted)  # in order, as np.unique gave them
        chunks = [hashes[i : i + INSERT_WORDS] for i in range(0, len(hashes), INSERT_WORDS)]
        if not add:
            with autocommit(self._engine) as connection:
                return [entry for some in chunks for entry in _fetch_some(connection, some)]
        return [entry for some in chunks for entry in self._ensure_some(some, wanted)]

    def _ensure_some(self, hashes: list[int], wanted: dict[int, str]) -> list[Entry]:
        """Add what is missing, in halves where that takes longer than the server allows."""

        def ensure(_: int) -> list[Entry]:
            with autocommit(self._engine) as connection:
                return _ensure_some(connection, hashes, wanted)

        try:
            return repeated(ensure)
        except psycopg.Error as error:
            if len(hashes) < 2 or not is_timeout(self._engine, error):
                raise
        middle = len(hashes) // 2
        return self._ensure_some(hashes[:middle], wanted) + self._ensure_some(
            hashes[middle:], wanted
        )


_dictionaries: WeakSet[Dictionary] = WeakSet()


def _renew_locks() -> None:
    for dictionary in list(_dictionaries):
        dictionary._renew_lock()


os.register_at_fork(after_in_child=_renew_locks)


def unknown_word(word_id: int) -> DatabaseError:
    """Return the error for an id that the dictionary does not have."""
    return DatabaseError(f"word id {word_id} is not in the dictionary: run textsim check")


def _fetch_some(connection: Connection, hashes: list[int]) -> list[Entry]:
    cursor = connection.cursor(binary=True)
    return cursor.execute(_SELECT, [_array(hashes)], prepare=True).fetchall()


def _ensure_some(connection: Connection, hashes: list[int], wanted: dict[int, str]) -> list[Entry]:
    entries = _fetch_some(connection, hashes)
    if len(entries) == len(hashes):
        return entries
    cursor = connection.cursor(binary=True)
    found = {entry[0] for entry in entries}
    missing = [value for value in hashes if value not in found]
    with connection.transaction():
        connection.execute(_DURABLE, prepare=True)
        values = [_array(missing), [wanted[value] for value in missing]]
        added = cursor.execute(_INSERT, values, prepare=True).fetchall()
    entries += [(value, id_, wanted[value]) for value, id_ in added]
    if len(added) < len(missing):
        # Another writer was first with some of them.
        won = {value for value, _ in added}
        lost = [value for value in missing if value not in won]
        entries += _fetch_some(connection, lost)
    return entries


def _array(hashes: list[int]) -> binary_format.Array:
    return binary_format.Array(np.array(hashes, np.int64))
