"""Documents with planted near-duplicates, seeded: the same arguments give the same documents."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

VOCABULARY = 200_000
EXPONENT = 1.05
SENTENCE = 15
_CHUNK = 10_000
KEYBOARD = string.ascii_lowercase + string.digits + " "


@cache
def vocabulary(size: int = VOCABULARY) -> npt.NDArray[np.object_]:
    """Return distinct invented words, shorter for frequent words: object array of shape (size,).

    Texts of every seed use the same words. Making the words takes half a second.
    """
    rng = np.random.default_rng(1)
    onsets = [*"bcdfghjklmnprstvwz", "st", "tr", "pl", "gr", "sh", "th"]
    syllables = [
        onset + vowel for onset in onsets for vowel in ["a", "e", "i", "o", "u", "ea", "ou"]
    ]
    words: dict[str, None] = {}
    while len(words) < size:
        drawn = rng.integers(0, len(syllables), (size, 4)).tolist()
        lengths = rng.integers(2, 5, size).tolist()
        for syllable, length in zip(drawn, lengths, strict=True):
            # The most frequent words are short.
            wanted = 2 + len(words) // 100 if len(words) < 300 else length
            words["".join(syllables[i] for i in syllable[:wanted])] = None
    array = np.array(list(words)[:size], object)
    array.flags.writeable = False
    return array


def documents(
    count: int,
    words: int = 200,
    planted: float = 0.05,
    seed: int = 1,
    identical: int = 0,
    boilerplate: int = 0,
    moved: float = 0.0,
) -> Iterator[tuple[str, str]]:
    """Yield (key, text) of documents with Zipf-distributed words.

    planted is the share of documents that copy a random earlier document of the same ten thousand. A
    copy has 0 to 20 % of its words replaced. moved is the share of copies with shuffled sentences.
    identical is the number of documents with one text, and boilerplate is the number of documents that
    begin with the first half of that text.
    """
    rng = np.random.default_rng(seed)
    vocabulary_ = vocabulary()
    weights = 1.0 / np.arange(1, len(vocabulary_) + 1) ** EXPONENT
    cumulative = np.cumsum(weights / weights.sum())
    special = np.random.default_rng(seed + 1)
    roles = np.zeros(count, np.int8)
    chosen = special.permutation(count)[: identical + boilerplate]
    roles[chosen[:identical]], roles[chosen[identical:]] = 1, 2
    model = vocabulary_[np.searchsorted(cumulative, special.random(words))]
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        numbers = np.searchsorted(cumulative, rng.random((size, words)))
        for i in np.flatnonzero(rng.random(size) < planted)[1:]:
            copy = numbers[rng.integers(0, i)].copy()
            edited = rng.random(words) < rng.uniform(0, 0.2)
            copy[edited] = np.searchsorted(cumulative, rng.random(int(edited.sum())))
            numbers[i] = copy
            if moved and special.random() < moved:
                numbers[i] = _moved(special, copy)
        for i, row in enumerate(numbers):
            found = vocabulary_[row]
            if roles[start + i] == 1:
                found = model
            elif roles[start + i] == 2:
                found[: words // 2] = model[: words // 2]
            yield f"doc-{start + i:07d}", " ".join(found)


def _moved(rng: np.random.Generator, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the words with their sentences in a random order."""
    sentences = [numbers[i : i + SENTENCE] for i in range(0, len(numbers), SENTENCE)]
    return np.concatenate([sentences[i] for i in rng.permutation(len(sentences))])


def pair_of_similarity(
    rng: np.random.Generator, vocabulary_: Sequence[str], words: int, similarity: float
) -> tuple[str, str, float]:
    """Return two texts and their exact similarity by shingles of three words.

    The similarity is the nearest possible value to the wanted similarity. Words are replaced at places
    three or more apart, so each edit changes three shingles: of s shingles, e edits leave a similarity
    of (s - 3e) / (s + 3e). No word occurs twice.
    """
    shingles = words - 2
    edits = round(shingles * (1 - similarity) / (3 * (1 + similarity)))
    if 3 * edits > shingles:
        raise ValueError(f"{words} words are too few for a similarity of {similarity}")
    drawn = rng.choice(len(vocabulary_), words + edits, replace=False).tolist()
    one = [vocabulary_[i] for i in drawn[:words]]
    other = list(one)
    # The words at places 2, 5, 8, ... are in three shingles each, and no two share a shingle.
    places = 2 + 3 * rng.choice(shingles // 3, edits, replace=False)
    for place, number in zip(places.tolist(), drawn[words:], strict=True):
        other[place] = vocabulary_[number]
    return " ".join(one), " ".join(other), (shingles - 3 * edits) / (shingles + 3 * edits)


def edited(text: str, edits: int, rng: random.Random, letters: str = KEYBOARD) -> str:
    """Return a text with some characters replaced, inserted or removed."""
    for _ in range(edits):
        at = rng.randrange(len(text) + 1)
        kept = at + rng.choice([0, 1])
        text = text[:at] + rng.choice(["", *letters]) + text[kept:]
    return text
