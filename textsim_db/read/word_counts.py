"""Counts the words of the documents of a corpus, a batch at a time; pure."""

from __future__ import annotations

import numpy as np

from textsim_db.text.array_types import Int32Array, Int64Array
from textsim_db.text.numba_compiler import kernel


class WordCounts:
    """Counts how often each word occurs, in how many documents, and how the vocabulary grows.

    A word is a number other than 0, counted at the place that places_of() returns.
    """

    def __init__(self) -> None:
        self._by_place: Int64Array = np.zeros((3, 0), np.int64)
        self._growth: list[Int64Array] = []
        self._lengths: list[Int64Array] = []
        self._documents = 0

    @property
    def occurrences(self) -> Int64Array:
        """The number of occurrences of each word: int64 by place."""
        counts: Int64Array = self._by_place[0]
        return counts

    @property
    def documents(self) -> Int64Array:
        """The number of documents that each word occurs in: int64 by place."""
        counts: Int64Array = self._by_place[1]
        return counts

    @property
    def distinct(self) -> int:
        """The number of distinct words so far."""
        return int(self._growth[-1][-1]) if self._growth and len(self._growth[-1]) else 0

    @property
    def growth(self) -> Int64Array:
        """The number of distinct words up to each document: int64 of shape (documents,)."""
        return np.concatenate([np.zeros(0, np.int64), *self._growth])

    @property
    def lengths(self) -> Int64Array:
        """The number of words of each document: int64 of shape (documents,)."""
        return np.concatenate([np.zeros(0, np.int64), *self._lengths])

    def add(self, words: Int32Array, offsets: Int64Array) -> None:
        """Count the words of documents; offsets: (documents + 1,)."""
        places = places_of(words)
        self._make_room(int(places.max(initial=-1)) + 1)
        new = _count_words(places, offsets, self._documents, self._by_place)
        self._growth.append(self.distinct + np.cumsum(new))
        self._lengths.append(np.diff(offsets))
        self._documents += len(offsets) - 1

    def _make_room(self, places: int) -> None:
        size = self._by_place.shape[1]
        if places > size:
            added = np.zeros((3, max(places, 2 * size) - size), np.int64)
            self._by_place = np.concatenate((self._by_place, added), axis=1)


def places_of(words: Int32Array) -> Int64Array:
    """Return the place of each word: even for positive numbers, odd for negative ones."""
    wide = words.astype(np.int64)
    return np.where(wide >= 0, 2 * wide, -2 * wide - 1)


def words_at(places: Int64Array) -> Int64Array:
    """Return the numbers of the words at places."""
    return np.where(places % 2 == 0, places // 2, -(places + 1) // 2)


@kernel
def _count_words(
    places: Int64Array, offsets: Int64Array, documents_before: int, by_place: Int64Array
) -> Int64Array:
    """Add to the counts, and return the number of new words of each document.

    by_place: (3, places), the occurrences, the documents, and the number of the document that had the
    word last.
    """
    occurrences, documents, last = by_place
    new = np.zeros(len(offsets) - 1, np.int64)
    for i in range(len(new)):
        document = documents_before + i + 1
        for k in range(offsets[i], offsets[i + 1]):
            place = places[k]
            new[i] += occurrences[place] == 0
            occurrences[place] += 1
            if last[place] != document:
                last[place] = document
                documents[place] += 1
    return new
