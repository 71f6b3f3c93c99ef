"""The words of a normal form have places in the text."""

from __future__ import annotations

import random

from tests.support.random_texts import random_text
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
