"""The documents of the benchmarks have the similarities that the benchmarks state."""

from __future__ import annotations

import random
import statistics
from collections import Counter

import numpy as np
import pytest

from benchmarks.generate import documents, pair_of_similarity, vocabulary
from textsim_db.text.shingles import shingles

pytestmark = pytest.mark.long


def similarity(a: str, b: str) -> float:
    one, other = set(shingles(a, "word:3")), set(shingles(b, "word:3"))
    return len(one & other) / len(one | other)


def test_the_same_arguments_give_the_same_documents() -> None:
    plain = list(documents(300, words=50, seed=4))
    assert plain == list(documents(300, words=50, seed=4))
    assert plain != list(documents(300, words=50, seed=5))
    mixed = list(documents(300, words=50, seed=4, identical=20, boilerplate=40))
    changed = [i for i, (a, b) in enumerate(zip(plain, mixed, strict=True)) if a != b]
    assert len(changed) == 60


def test_documents_are_identical_or_share_boilerplate_as_often_as_asked() -> None:
    texts = [text for _, text in documents(500, words=40, seed=6, identical=50, boilerplate=100)]
    (model, number), *_ = Counter(texts).most_common(1)
    assert number == 50
    start = " ".join(model.split()[:20])
    assert sum(text.startswith(start) for text in texts) == 150


def test_moved_sentences_change_little() -> None:
    plain = [text for _, text in documents(300, words=150, planted=0.5, seed=7)]
    moved = [text for _, text in documents(300, words=150, planted=0.5, seed=7, moved=1.0)]
    pairs = [(a, b) for a, b in zip(plain, moved, strict=True) if a != b]
    assert len(pairs) > 100
    assert 0.7 < statistics.median(similarity(a, b) for a, b in pairs) < 0.9


@pytest.mark.parametrize("requested", [0.3, 0.5, 0.7, 0.8, 0.9, 1.0])
def test_pairs_have_the_stated_similarity(rng: random.Random, requested: float) -> None:
    generator = np.random.default_rng(rng.randrange(2**32))
    words = vocabulary(2000).tolist()
    for _ in range(20):
        a, b, stated = pair_of_similarity(generator, words, 200, requested)
        assert similarity(a, b) == stated == pytest.approx(requested, abs=0.02)


def test_a_similarity_that_the_words_cannot_have_is_refused() -> None:
    generator = np.random.default_rng(1)
    with pytest.raises(ValueError, match="4 words are too few"):
        pair_of_similarity(generator, vocabulary(100).tolist(), 4, 0.0)
