"""Integer ids for words in memory, in order of first appearance."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from textsim_db.errors import MeasureError
from textsim_db.measures.sequences import Sequence, hashable, items_of


class Vocabulary:
    """Words with ids from 0 on, in order of first appearance.

    It lives in memory and is independent of the dictionary in the database.

        >>> Vocabulary(["the", "cat"]).encode(["cat", "sat"])
        array([1, 2], dtype=int32)
    """

    def __init__(self, words: Iterable[Hashable] = ()) -> None:
        self._ids: dict[Hashable, int] = {}
        self._words: list[Hashable] = []
        self.encode(words)

    def __len__(self) -> int:
        return len(self._words)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def encode(self, words: Sequence) -> npt.NDArray[np.int32]:
        """Return the ids of words, int32 of shape (words,); new words get the next ids.

        Raises `MeasureError` for a word that cannot be hashed.
        """
        return np.array([self._id(word) for word in hashable(words)], np.int32)

    def decode(self, ids: Sequence) -> list[Hashable]:
        """Return the words of ids; raise `MeasureError` for an id that no word has."""
        words = []
        for word_id in items_of(ids):
            if not isinstance(word_id, int | np.integer) or not 0 <= word_id < len(self._words):
                raise MeasureError(f"no word has the id {word_id!r}; expected 0 to {len(self) - 1}")
            words.append(self._words[int(word_id)])
        return words

    def _id(self, word: Hashable) -> int:
        word_id = self._ids.setdefault(word, len(self._words))
        if word_id == len(self._words):
            self._words.append(word)
        return word_id
