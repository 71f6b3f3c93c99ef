"""Fingerprints equal those of a slow reference, and golden values, which stored rows depend on."""

from __future__ import annotations

import random

import pytest

from tests.support import reference
from textsim_db.sketch.fingerprints import fingerprints_of, window_of
from textsim_db.sketch.sketch_texts import GOLDEN_TEXT
from textsim_db.text.tokens import tokenize

GOLDEN = [-2146757830, -2063575466, -2020580243, -1520447165, 716691761, 893099795, 917844098]


def computed(texts: list[str], words: int) -> list[list[int]]:
    fingerprints = fingerprints_of(tokenize([text.encode() for text in texts]), words)
    return [fingerprints.of(i).tolist() for i in range(len(texts))]


def by_reference(text: str, words: int) -> list[int]:
    hashes = [reference.text_hash(word) for word in reference.words(text)]
    n, width = window_of(words)
    values = [reference.array_hash(hashes[i : i + n], 0) for i in range(len(hashes) - n + 1)]
    halves = [(reference.signed(value, 64) >> 32, -place) for place, value in enumerate(values)]
    chosen = [min(halves[i : i + width]) for i in range(len(values) - width + 1)]
    return sorted({reference.signed(values[-place], 32) for _, place in chosen})


def test_a_window_covers_the_words_of_a_passage() -> None:
    for words in range(4, 101):
        n, width = window_of(words)
        assert n + width - 1 == words
        assert min(n, width) >= 2
    assert window_of(13) == (6, 8)


def test_fingerprints_are_the_golden_values() -> None:
    assert computed([GOLDEN_TEXT], 13) == [GOLDEN]


@pytest.mark.parametrize("words", [4, 5, 13, 40])
def test_fingerprints_equal_those_of_the_reference(words: int, seed: int) -> None:
    rng = random.Random(seed)
    texts = [GOLDEN_TEXT, "", "one", "again " * 100]
    texts += [
        " ".join(f"w{rng.randrange(rng.choice((2, 10, 1000)))}" for _ in range(rng.randrange(90)))
        for _ in range(60)
    ]
    assert computed(texts, words) == [by_reference(text, words) for text in texts]


def test_two_texts_that_share_a_run_share_a_fingerprint(seed: int) -> None:
    rng = random.Random(seed)
    for words in (4, 13, 30):
        for _ in range(200):
            run = [f"w{rng.randrange(50)}" for _ in range(words)]
            one, other = (
                " ".join(
                    [
                        *(f"w{rng.randrange(50)}" for _ in range(rng.randrange(40))),
                        *run,
                        *(f"w{rng.randrange(50)}" for _ in range(rng.randrange(40))),
                    ]
                )
                for _ in range(2)
            )
            left, right = computed([one, other], words)
            assert set(left) & set(right), (words, one, other)
