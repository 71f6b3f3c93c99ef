"""Counts of words over the documents of a corpus, a batch at a time; pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from textsim_db.text.compiler import kernel

Numbers = npt.NDArray[np.int64]


class Tally:
    """How often each word occurs, in how many documents, and how the vocabulary grows.

    counts, documents: int64 by the word's place, which places() gives; growth: for each document
    so far the number of distinct words up to it.
    """

    def __init__(self) -> None:
        self.counts: Numbers = np.zeros(0, np.int64)
        self.documents: Numbers = np.zeros(0, np.int64)
        self._last: Numbers = np.zeros(0, np.int64)
        self._growth: list[Numbers] = []
        self._lengths: list[Numbers] = []
        self._done = 0

    def add(self, words: npt.NDArray[np.int32], offsets: Numbers) -> None:
        """Count the words of some documents, numbers other than 0; offsets: (documents + 1,)."""
        places = places_of(words)
        size = int(places.max(initial=-1)) + 1
        if size > len(self.counts):
            more = max(size, 2 * len(self.counts)) - len(self.counts)
            self.counts = np.concatenate((self.counts, np.zeros(more, np.int64)))
            self.documents = np.concatenate((self.documents, np.zeros(more, np.int64)))
            self._last = np.concatenate((self._last, np.zeros(more, np.int64)))
        new = _tally(places, offsets, self._done, self.counts, self.documents, self._last)
        self._growth.append(self.distinct + np.cumsum(new))
        self._lengths.append(np.diff(offsets))
        self._done += len(offsets) - 1

    @property
    def distinct(self) -> int:
        """The number of distinct words so far."""
        return int(self._growth[-1][-1]) if self._growth and len(self._growth[-1]) else 0

    @property
    def growth(self) -> Numbers:
        """The distinct words up to each document: int64 of shape (documents,)."""
        return np.concatenate([np.zeros(0, np.int64), *self._growth])

    @property
    def lengths(self) -> Numbers:
        """The words of each document: int64 of shape (documents,)."""
        return np.concatenate([np.zeros(0, np.int64), *self._lengths])


def places_of(words: npt.NDArray[np.int32]) -> Numbers:
    """Return where words are counted: those with negative numbers in between the others."""
    wide = words.astype(np.int64)
    return np.where(wide >= 0, 2 * wide, -2 * wide - 1)


def words_at(places: Numbers) -> Numbers:
    """Return the numbers of the words that are counted at some places."""
    return np.where(places % 2 == 0, places // 2, -(places + 1) // 2)


@kernel
def _tally(
    places: Numbers,
    offsets: Numbers,
    done: int,
    counts: Numbers,
    documents: Numbers,
    last: Numbers,
) -> Numbers:
    """Add to the counts; return for each document how many of its words are new."""
    new = np.zeros(len(offsets) - 1, np.int64)
    for i in range(len(new)):
        for k in range(offsets[i], offsets[i + 1]):
            place = places[k]
            if not counts[place]:
                new[i] += 1
            counts[place] += 1
            if last[place] != done + i + 1:
                last[place] = done + i + 1
                documents[place] += 1
    return new
