"""Measures of sets: which items two sequences share, regardless of count and order.

A measure takes sequences of words, characters or integers. A text becomes a bag of words, or n-grams of
characters or words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Set
from operator import eq
from typing import Any, NamedTuple, TypeAlias

from textsim_db.errors import MeasureError
from textsim_db.settings.check_values import (
    items_in_order,
    items_of,
    several_items,
)

Sequence: TypeAlias = Iterable[Hashable]
Counted: TypeAlias = Sequence | Mapping[Any, float]


MAX_COUNT = 2**53
"""The largest count. Sums of squares of counts stay far below the largest float."""


def several_documents(documents: Any, function: str) -> Iterable[Any]:
    """Return documents, each a sequence, in their order."""
    expected = f"{function}() takes several documents in an order, such as [a, b]"
    return items_in_order(documents, expected)


def set_of(a: Sequence) -> Set[Hashable]:
    """Return the distinct items of a sequence."""
    if isinstance(a, Set):
        return a
    try:
        return set(items_of(a))
    except TypeError as error:
        raise MeasureError(f"an item cannot be compared: {error}") from error


def counts_of(a: Counted) -> Mapping[Hashable, float]:
    """Return how often each item occurs; a mapping already holds the counts."""
    if not isinstance(a, Mapping):
        try:
            return Counter(items_of(a))
        except TypeError as error:
            raise MeasureError(f"an item cannot be compared: {error}") from error
    return {item: number_of(count, f"count of {item!r:.100}") for item, count in a.items()}


def number_of(value: object, what: str) -> float:
    """Return a number of 0 or more as int or float, because NumPy's integers wrap."""
    if getattr(value, "ndim", None) == 0:
        value = value.item()  # type: ignore[attr-defined]
    if not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        raise MeasureError(f"the {what} is {value!r:.100}; expected 0 to 2^53")
    return value


def hashable(a: Sequence) -> list[Hashable]:
    """Return the items of a sequence; raise MeasureError if an item cannot be hashed."""
    items = list(items_of(a))
    try:
        for item in items:
            hash(item)
    except TypeError as error:
        raise MeasureError(f"an item cannot be compared: {error}") from error
    return items


def jaccard(a: Sequence, b: Sequence) -> float:
    """Return the Jaccard similarity of two sets, |A & B| / |A | B|: from 0 to 1.

    The result is 0 if both are empty. Raises `MeasureError` for items that cannot be hashed. Jaccard,
    "Étude comparative de la distribution florale", 1901; Leskovec, Rajaraman and Ullman, "Mining of
    Massive Datasets", section 3.1.1.

        >>> jaccard(["the", "cat", "sat"], ["the", "cat", "ran"])
        0.5
    """
    one, other = set_of(a), set_of(b)
    shared = len(one & other)
    return _ratio(shared, len(one) + len(other) - shared)


def containment(a: Sequence, b: Sequence) -> float:
    """Return the share of a's items that are in b, |A & B| / |A|: from 0 to 1.

    The result is 0 if a is empty. Raises `MeasureError` for items that cannot be hashed. Broder, "On
    the resemblance and containment of documents", 1997.

        >>> containment(["the", "cat"], ["the", "cat", "sat", "down"])
        1.0
    """
    one = set_of(a)
    return _ratio(len(one & set_of(b)), len(one))


def overlap(a: Sequence, b: Sequence) -> float:
    """Return the overlap coefficient, |A & B| / min(|A|, |B|): from 0 to 1.

    This is the larger of the two containments, and 0 if a or b is empty. Raises `MeasureError` for
    items that cannot be hashed. Szymkiewicz, 1934; Simpson, "Mammals and the nature of continents",
    1943.
    """
    one, other = set_of(a), set_of(b)
    return _ratio(len(one & other), min(len(one), len(other)))


def dice(a: Sequence, b: Sequence) -> float:
    """Return the Dice coefficient, 2 |A & B| / (|A| + |B|): from 0 to 1.

    The result is 0 if both are empty. Raises `MeasureError` for items that cannot be hashed. Dice,
    "Measures of the amount of ecologic association between species", 1945.

        >>> dice("cat", "cart")
        0.8571428571428571
    """
    one, other = set_of(a), set_of(b)
    return _ratio(2 * len(one & other), len(one) + len(other))


def weighted_jaccard(
    a: Sequence, b: Sequence, weights: Mapping[Hashable, float], default: float = 1.0
) -> float:
    """Return the weight of the shared items divided by the weight of all items: from 0 to 1.

    `weights` are numbers from 0 to 2^53, such as the result of `idf_weights()`. An item without a weight
    has the default. The result is 0 if all weights are 0. Raises `MeasureError` for other weights and
    for items that cannot be hashed. Ioffe, "Improved consistent sampling, weighted minhash and L1
    sketching", 2010, section 1, on sets.

        >>> weighted_jaccard("ab", "bc", {"b": 2.0})
        0.5
    """
    one, other = set_of(a), set_of(b)
    either = {
        item: number_of(weights.get(item, default), f"weight of {item!r:.100}")
        for item in one | other
    }
    # fsum() is exact, so the order of a set does not change the result.
    shared = math.fsum(either[item] for item in one & other)
    return _ratio(shared, math.fsum(either.values()))


def _ratio(shared: float, whole: float) -> float:
    return shared / whole if whole else 0.0


class Estimate(NamedTuple):
    """An estimated Jaccard similarity."""

    similarity: float
    """From 0 to 1."""
    standard_error: float


def signature_estimate(a: Sequence, b: Sequence) -> Estimate:
    """Return the share s of equal values of two signatures, and the standard error of the estimate.

    `a` and `b` are one-dimensional and have the same length. The standard error is
    sqrt(s (1 - s) / length) for classic MinHash, and at most this for signatures of a corpus. An empty
    signature belongs to a text without words and gives 0. A signature does not tell its settings: of
    two corpora with other seeds or shingles the estimate is near 0 and says nothing. Raises
    `MeasureError` for signatures of different lengths. Broder, "On the resemblance and containment of
    documents", 1997; Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", section 3.3.3.

        >>> signature_estimate([3, 1, 4, 1], [3, 1, 4, 2])
        Estimate(similarity=0.75, standard_error=0.21650635094610965)
    """
    one, other = [*items_of(a)], [*items_of(b)]
    if not (one and other):
        return Estimate(0.0, 0.0)
    if len(one) != len(other):
        raise MeasureError(
            f"signatures have {len(one)} and {len(other)} values; expected equal lengths"
        )
    share = sum(map(eq, one, other)) / len(one)
    return Estimate(share, math.sqrt(share * (1 - share) / len(one)))


def bag_of_words(text: str) -> set[str]:
    """Return the distinct words of a text's normal form.

    Raises `DocumentError` for a text with NUL or a lone surrogate, as all functions of texts do.

        >>> sorted(bag_of_words("The cat and the hat"))
        ['and', 'cat', 'hat', 'the']
    """
    return set(_words(text))


def without_stop_words(text: str, stop_words: Iterable[str]) -> list[str]:
    """Return the words of a text that are not in a list of stop words, in order.

    The stop words are brought into normal form first: "Don't" leaves out "don" and "t".

        >>> without_stop_words("The cat and the hat", ["the", "and"])
        ['cat', 'hat']
    """
    several = several_items(
        stop_words, "without_stop_words() takes several stop words, such as [word]"
    )
    left_out = {word for stop_word in several for word in _words(stop_word)}
    return [word for word in _words(text) if word not in left_out]


def word_counts(text: str) -> Counter[str]:
    """Return how often each word of a text occurs: its multiset of words."""
    return Counter(_words(text))


def character_shingles(text: str, n: int) -> list[str]:
    """Return all n-grams of characters of a text's normal form, repeated ones too.

    A shorter text is one shingle, and an empty text has none. Raises `MeasureError` for n below 1.
    Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", section 3.2.

        >>> character_shingles("Cart", 3)
        ['car', 'art']
    """
    _check(n)
    form = " ".join(_words(text))
    return [form[i : i + n] for i in range(max(len(form) - n + 1, min(len(form), 1)))]


def word_ngrams(text: str, n: int) -> list[tuple[str, ...]]:
    """Return all n-grams of words of a text, repeated ones too.

    A text of fewer words is one n-gram, and a text without words has none. Raises `MeasureError` for n
    below 1. Broder, "On the resemblance and containment of documents", 1997.

        >>> word_ngrams("the cat and the hat", 3)
        [('the', 'cat', 'and'), ('cat', 'and', 'the'), ('and', 'the', 'hat')]
    """
    _check(n)
    row = _words(text)
    count = max(len(row) - n + 1, min(len(row), 1))
    return [tuple(row[i : i + n]) for i in range(count)]


def _words(text: str) -> list[str]:
    from textsim_db.text.tokens import words

    return words(text)


def _check(n: int) -> None:
    if not isinstance(n, int) or n < 1:
        raise MeasureError(f"n is {n!r}; expected 1 or more")
