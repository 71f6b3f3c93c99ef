"""Normal forms of word ids, and the places of their words in a text."""

from __future__ import annotations

import random

import numpy as np

from tests.support.random_texts import random_text
from textsim_db.read.normal_forms import compose_forms
from textsim_db.text.tokens import words
from textsim_db.text.word_places import word_places


def parts(text: str) -> list[str]:
    """Return the characters of each word."""
    places = word_places(text)
    return [text[i:j] for i, j in zip(places.starts, places.ends, strict=True)]


def test_words_have_their_own_spelling() -> None:
    assert parts("The tenant's  “GARDEN”,\nnaïve!") == ["The", "tenant", "s", "GARDEN", "naïve"]
    assert parts("漢字 and ｶﾞ。") == ["漢", "字", "and", "ｶﾞ"]
    assert parts("½ cup of x½") == ["½", "½", "cup", "of", "x½", "x½"]
    assert parts("") == parts(" ?! —") == []


def test_every_word_of_random_texts_has_a_place(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(2_000):
        text = " ".join(random_text(rng) for _ in range(rng.randrange(1, 3)))
        places, expected = word_places(text), words(text)
        assert len(places.starts) == len(places.ends) == len(expected), ascii(text)
        assert (places.starts < places.ends).all(), ascii(text)
        assert (places.ends <= len(text)).all(), ascii(text)
        before = 0
        for number, (start, end) in enumerate(zip(places.starts, places.ends, strict=True)):
            own = words(text[start:end])
            assert expected[number] in own, ascii((text, start, end))
            # Words of one character have the same place.
            assert start >= before or len(own) > 1, ascii((text, start, end))
            before = end


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
