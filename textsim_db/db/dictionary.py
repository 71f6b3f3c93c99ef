"""The dictionary of words: ids given out in short transactions of their own.

Never inside a transaction that writes documents: two of those that add the same words in turn
would wait for each other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from sqlalchemy import Engine

from textsim_db.db.binary import Array
from textsim_db.db.engine import Connection, autocommit
from textsim_db.db.word_cache import WordCache
from textsim_db.errors import DatabaseError
from textsim_db.hashing import hash_spans
from textsim_db.text import Tokens

INSERT_WORDS = 10_000
MAX_TEXTS = 500_000

_SELECT = """
SELECT w.hash, w.id, w.word
FROM unnest(%s::bigint[]) q (hash) JOIN textsim.word w ON w.hash = q.hash
"""
# In the order of the hashes, so that two writers wait for each other in one direction only.
_INSERT = """
INSERT INTO textsim.word (hash, word)
SELECT hash, word FROM unnest(%s::bigint[], %s::text[]) q (hash, word) ORDER BY hash
ON CONFLICT (hash) DO NOTHING
"""
_TEXTS = "SELECT id, word FROM textsim.word WHERE id = ANY (%s::integer[])"


class Dictionary:
    """Word ids of one database, with a bounded cache; safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._cache = WordCache()
        self._texts: dict[int, str] = {}

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
                found = dict(connection.cursor(binary=True).execute(_TEXTS, [Array(array)]).fetchall())
            if unknown := missing - found.keys():
                raise DatabaseError(f"word id {min(unknown)} is not in the dictionary: run textsim verify")
            with self._lock:
                if len(self._texts) + len(found) > MAX_TEXTS:
                    self._texts.clear()
                self._texts.update(found)
            known |= found
        return known

    def _resolve(self, tokens: Tokens, add: bool) -> npt.NDArray[np.int32]:
        hashes = hash_spans(tokens.normal, tokens.starts, tokens.ends)
        with self._lock:
            ids = self._cache.find(tokens, hashes)
            missing = np.flatnonzero(ids == 0)
            if not len(missing):
                return ids
            distinct, first = np.unique(hashes[missing], return_index=True)
            wanted = {int(h): tokens.word(missing[i]) for h, i in zip(distinct, first, strict=True)}
            found = self._fetch(wanted, add)
            self._cache.add(
                np.fromiter((row[0] for row in found), np.int64, len(found)),
                np.fromiter((row[1] for row in found), np.int32, len(found)),
                [row[2].encode() for row in found],
            )
            # Looked up again by bytes: a word that only shares its hash with what was found, or
            # with another one of this batch, stays without an id.
            some = Tokens(
                tokens.normal,
                tokens.normal_offsets,
                tokens.starts[missing],
                tokens.ends[missing],
                tokens.word_offsets,
            )
            ids[missing] = self._cache.find(some, hashes[missing])
            return ids

    def _fetch(self, wanted: dict[int, str], add: bool) -> list[tuple[int, int, str]]:
        rows: list[tuple[int, int, str]] = []
        hashes = np.fromiter(sorted(wanted), np.int64, len(wanted))
        with autocommit(self._engine) as connection:
            for start in range(0, len(hashes), INSERT_WORDS):
                rows += _fetch_some(connection, hashes[start : start + INSERT_WORDS], wanted, add)
        return rows


def _fetch_some(
    connection: Connection, hashes: npt.NDArray[np.int64], wanted: dict[int, str], add: bool
) -> list[tuple[int, int, str]]:
    cursor = connection.cursor(binary=True)
    rows = cursor.execute(_SELECT, [Array(hashes)], prepare=True).fetchall()
    if not add or len(rows) == len(hashes):
        return rows
    found = {row[0] for row in rows}
    missing = np.array([h for h in hashes.tolist() if h not in found], np.int64)
    cursor.execute(_INSERT, [Array(missing), [wanted[h] for h in missing.tolist()]], prepare=True)
    # Selected again, and not returned by the INSERT: another writer may have been first.
    return rows + cursor.execute(_SELECT, [Array(missing)], prepare=True).fetchall()
