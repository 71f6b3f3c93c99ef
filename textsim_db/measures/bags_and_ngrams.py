"""A text as a bag of words, a multiset of words, or n-grams of characters or words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from textsim_db.errors import MeasureError
from textsim_db.text.tokens import normal_form, words


def bag_of_words(text: str) -> set[str]:
    """Return the distinct words of a text's normal form.

    Raises `DocumentError` for a text with NUL or a lone surrogate, as all functions of texts do.

        >>> sorted(bag_of_words("The cat and the hat"))
        ['and', 'cat', 'hat', 'the']
    """
    return set(words(text))


def without_stop_words(text: str, stop_words: Collection[str]) -> list[str]:
    """Return the words of a text that are not in a list of stop words, in order.

    The stop words are brought into normal form first: "Don't" leaves out "don" and "t".

        >>> without_stop_words("The cat and the hat", ["the", "and"])
        ['cat', 'hat']
    """
    left_out = {word for stop_word in stop_words for word in words(stop_word)}
    return [word for word in words(text) if word not in left_out]


def word_counts(text: str) -> Counter[str]:
    """Return how often each word of a text occurs: its multiset of words."""
    return Counter(words(text))


def character_shingles(text: str, n: int) -> list[str]:
    """Return all n-grams of characters of a text's normal form, repeated ones too.

    A shorter text is one shingle, and an empty text has none. Raises `MeasureError` for n below 1.
    Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", section 3.2.

        >>> character_shingles("Cart", 3)
        ['car', 'art']
    """
    _check(n)
    form = normal_form(text)
    return [form[i : i + n] for i in range(max(len(form) - n + 1, min(len(form), 1)))]


def word_ngrams(text: str, n: int) -> list[tuple[str, ...]]:
    """Return all n-grams of words of a text, repeated ones too.

    A text of fewer words is one n-gram, and a text without words has none. Raises `MeasureError` for n
    below 1. Broder, "On the resemblance and containment of documents", 1997.

        >>> word_ngrams("the cat and the hat", 3)
        [('the', 'cat', 'and'), ('cat', 'and', 'the'), ('and', 'the', 'hat')]
    """
    _check(n)
    row = words(text)
    count = max(len(row) - n + 1, min(len(row), 1))
    return [tuple(row[i : i + n]) for i in range(count)]


def _check(n: int) -> None:
    if not isinstance(n, int) or n < 1:
        raise MeasureError(f"n is {n!r}; expected 1 or more")
