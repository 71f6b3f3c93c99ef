"""Normal forms composed of word ids, against joined strings."""

from __future__ import annotations

import random

import numpy as np

from textsim_db.read.normal_forms import compose_forms


def test_a_form_is_its_words_joined_by_spaces(rng: random.Random) -> None:
    texts = {i: rng.choice(["a", "naïve", "漢", "word"]) * (i % 3 + 1) for i in range(1, 50)}
    documents = [rng.choices(range(1, 50), k=rng.randrange(30)) for _ in range(100)]
    requested_ids: list[list[int]] = []

    def texts_of(ids: list[int]) -> dict[int, str]:
        requested_ids.append(sorted(ids))
        return texts

    word_ids = np.array([i for document in documents for i in document], np.int32)
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    forms = compose_forms(word_ids, offsets, texts_of)
    assert [form.decode() for form in forms] == [
        " ".join(texts[i] for i in document) for document in documents
    ]
    assert requested_ids == [np.unique(word_ids).tolist()]


def test_unknown_ids_become_empty_words() -> None:
    ids, offsets = np.array([3, -7, 2**31 - 1], np.int32), np.array([0, 0, 3, 3])
    assert compose_forms(ids, offsets, lambda _: {3: "a"}) == [b"", b"a  ", b""]
    assert compose_forms(ids[:0], offsets[:1], lambda _: {}) == []
