"""Random short texts of few templates, full of numbers and negations, and the pairs that merge."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import groupby

from tests.support.truth import Pairs, brute_force

GUARD_WORDS = ("draft", "final")
GUARD_FILLER = "mail"
_TEXT = "the bill of may was paid by mail in full not never 4711 4712 1 2 draft final"
_WORDS = _TEXT.split()
_LETTERS = str.maketrans("0123456789", "abcdefghij")
"""A word with a digit is a number, so own words of a group have letters."""


def guarded_texts(rng: random.Random, count: int) -> dict[str, str]:
    """Return texts; some differ in the order of words only, and some are copies."""
    templates = [rng.choices(_WORDS, k=rng.randint(5, 9)) for _ in range(max(2, count // 25))]
    texts = {}
    for number in range(count):
        words = list(rng.choice(templates))
        if rng.random() < 0.6:
            words[rng.randrange(len(words))] = rng.choice(_WORDS)
        if rng.random() < 0.3:
            words.insert(rng.randrange(len(words)), rng.choice(_WORDS))
        if rng.random() < 0.2:
            rng.shuffle(words)
        texts[f"k{number:03}"] = " ".join(words)
    return texts


def many_guarded_texts(rng: random.Random, count: int) -> dict[str, str]:
    """Return as many texts in groups of 25; only texts of one group are similar."""
    texts = {}
    for group in range(0, count, 25):
        own = " ".join(f"{letter}{group}" for letter in "wxyz").translate(_LETTERS)
        for key, text in guarded_texts(rng, min(25, count - group)).items():
            texts[f"g{group:06}{key}"] = f"{own} {text}"
    return texts


def guard_of(text: str, guards: tuple[str, ...]) -> tuple[object, ...]:
    """Return what the guards see in a text, by the plain definition."""
    words = text.split()
    runs = {tuple(run) for is_number, run in groupby(words, str.isdigit) if is_number}
    negations = sum(word in ("not", "never") for word in words)
    seen = {
        "numbers": runs,
        "negations": negations,
        "words": set(words).intersection(GUARD_WORDS),
        "content": [word for word in words if word not in ("the", "of", "was", GUARD_FILLER)]
        or words,
    }
    return tuple(seen[guard] for guard in guards)


def merging(
    texts: Mapping[str, str], shingle: str, threshold: float, guards: tuple[str, ...]
) -> Pairs:
    """Return the pairs that match and have equal guards, with their similarities."""
    seen = {key: guard_of(text, guards) for key, text in texts.items()}
    pairs = brute_force(texts, shingle, threshold)
    return {(a, b): value for (a, b), value in pairs.items() if seen[a] == seen[b]}
