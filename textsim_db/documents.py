"""Documents as rows of integers, word ids or code points, as the similarity kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from textsim_db.db.binary import load_int4_arrays
from textsim_db.db.corpora import StoredCorpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.text import Tokens

Rows = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]
"""All tokens, one document after another, and their offsets of shape (documents + 1,)."""


class Documents:
    """Stored documents as rows of integers, for the similarity kernels.

    rows: (id, key, shingle count, word ids and signature as array_send gives them).
    """

    def __init__(
        self, corpus: StoredCorpus, dictionary: Dictionary, rows: Sequence[tuple[Any, ...]]
    ) -> None:
        self.keys: list[str] = [row[1] for row in rows]
        self.shingle_counts = np.array([row[2] for row in rows], np.int64)
        self.tokens, self.offsets = load_int4_arrays([row[3] for row in rows])
        self._signatures = [row[4] for row in rows]
        if corpus.config.shingle.unit == "char":
            self.tokens, self.offsets = _to_characters(self.tokens, self.offsets, dictionary)

    def signatures(self, numbers: npt.NDArray[np.int64], num_hashes: int) -> npt.NDArray[np.int32]:
        """Return the signatures of some of the documents: int32 of shape (numbers, num_hashes)."""
        values, _ = load_int4_arrays([self._signatures[i] for i in numbers.tolist()])
        return values.reshape(len(numbers), num_hashes)


def characters_of(tokens: Tokens) -> Rows:
    """Return the code points of the normal forms of a batch."""
    offsets = tokens.normal_offsets.tolist()
    return _code_points([tokens.span(start, end) for start, end in pairwise(offsets)])


def _to_characters(
    word_ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], dictionary: Dictionary
) -> Rows:
    texts = dictionary.texts(np.unique(word_ids).tolist())
    ids = word_ids.tolist()
    return _code_points(
        [
            " ".join(map(texts.__getitem__, ids[start:end]))
            for start, end in pairwise(offsets.tolist())
        ]
    )


def _code_points(forms: Sequence[str]) -> Rows:
    offsets = np.zeros(len(forms) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, forms), np.int64, len(forms)), out=offsets[1:])
    return np.frombuffer("".join(forms).encode("utf-32-le"), "<i4").astype(np.int32), offsets
