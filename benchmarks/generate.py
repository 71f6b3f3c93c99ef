"""Documents with planted near-duplicates, seeded: the same arguments give the same documents."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

VOCABULARY = 200_000
EXPONENT = 1.05
_CHUNK = 10_000


def vocabulary(rng: np.random.Generator, size: int = VOCABULARY) -> npt.NDArray[np.object_]:
    """Return distinct made-up words, the frequent ones short: object array of shape (size,)."""
    onsets = [*"bcdfghjklmnprstvwz", "st", "tr", "pl", "gr", "sh", "th"]
    syllables = [
        onset + vowel for onset in onsets for vowel in ["a", "e", "i", "o", "u", "ea", "ou"]
    ]
    words: dict[str, None] = {}
    while len(words) < size:
        length = 1 + min(4, len(words) // 100 + 1) if len(words) < 300 else rng.integers(2, 5)
        words["".join(rng.choice(syllables, int(length)))] = None
    return np.array(list(words), object)


def documents(
    count: int, words: int = 200, planted: float = 0.05, seed: int = 1
) -> Iterator[tuple[str, str]]:
    """Yield (key, text): Zipf-distributed words, a share of them near-copies of earlier documents.

    A planted copy replaces 0 to 20 % of the words of a random document of the same ten thousand.
    """
    rng = np.random.default_rng(seed)
    vocabulary_ = vocabulary(rng)
    weights = 1.0 / np.arange(1, len(vocabulary_) + 1) ** EXPONENT
    cumulative = np.cumsum(weights / weights.sum())
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        numbers = np.searchsorted(cumulative, rng.random((size, words)))
        for i in np.flatnonzero(rng.random(size) < planted)[1:]:
            copy = numbers[rng.integers(0, i)].copy()
            edited = rng.random(words) < rng.uniform(0, 0.2)
            copy[edited] = np.searchsorted(cumulative, rng.random(int(edited.sum())))
            numbers[i] = copy
        for i, row in enumerate(numbers):
            yield f"doc-{start + i:07d}", " ".join(vocabulary_[row])
