"""The elements that guards compare, on lists of words; kernels and SQL compute the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from textsim_db.settings.named_values import Guard, GuardRules
from textsim_db.text.distinctions import (
    AFTER_N,
    AFTER_NE,
    CLITICS,
    ENDS_OF_NE,
    FILLERS,
    HOSTS,
    LONGEST_PHRASE,
    MOST_WORDS_INSIDE,
    NEGATION_PHRASES,
    NEGATION_SYLLABLES,
    NEGATIONS,
    WORDS_OF_PHRASES,
    has_digit,
)

ORDINALS = ("st", "nd", "rd", "th", "e", "er", "ère", "ème", "ste", "de")
"""Endings of ordinal numbers; without them "26th" and "26e" are the number 26."""
_UNITS = """
mm cm dm m km ft mg g kg lb lbs oz ml cl dl l gal w kw kwh mw v kv ma mah hz khz mhz ghz kb mb gb tb
kib mib gib
"""
UNITS = frozenset(_UNITS.split())
"""Units that belong to the number before them, with a space or without."""
_SYLLABLES = frozenset(NEGATION_SYLLABLES)
_ORDINAL = re.compile(f"([0-9]+)(?:{'|'.join(ORDINALS)})")
_INTEGER = re.compile("-?[0-9]+")
_INTEGER_WITH_UNIT = re.compile(f"-?[0-9]+({'|'.join(sorted(UNITS))})?")


def guard_lines(words: Sequence[str], rules: GuardRules) -> list[str]:
    """Return what the guards look at: a line "KIND ELEMENT" for each element, in order.

    words: those of a stored normal form. The elements of numbers are the distinct numbers, the element
    of negations is how many there are, those of words are the guard words that occur, and the element of
    content are all words but fillers.
    """
    lines = []
    for guard in rules.guards:
        elements = _elements(words, guard, rules)
        if guard == Guard.CONTENT and elements:
            elements = [" ".join(elements)]
        lines += [f"{guard} {element}" for element in elements]
    return lines


def _elements(words: Sequence[str], guard: str, rules: GuardRules) -> list[str]:
    if guard == Guard.NUMBERS:
        return sorted(set(_numbers(plain_words(words))))
    if guard == Guard.NEGATIONS:
        count = sum(1 for _ in _negations(words)) + _french_negations(words)
        return [str(count)] if count else []
    if guard == Guard.WORDS:
        return sorted(set(words).intersection(rules.words))
    return _content(plain_words(words), rules.fillers)


def elements_apart(
    one: Sequence[str], other: Sequence[str], rules: GuardRules
) -> dict[str, tuple[list[str], list[str]]]:
    """Return the guards that differ between the words of two documents, and what each alone has.

    If the content differs in its order only, it is the words between the first and the last difference.
    """
    apart = {}
    for guard in rules.guards:
        a, b = (_elements(words, guard, rules) for words in (one, other))
        if a != b:
            a, b = _middles(a, b) if guard == Guard.CONTENT else (a, b)
            rests = [*(Counter(a) - Counter(b)).elements()], [*(Counter(b) - Counter(a)).elements()]
            apart[guard] = rests if any(rests) else (a, b)
    return apart


def _middles(a: list[str], b: list[str]) -> tuple[list[str], list[str]]:
    """Return two lists without the beginning and the end that they share."""
    start = _shared(a, b)
    a, b = a[start:], b[start:]
    end = _shared(a[::-1], b[::-1])
    return a[: len(a) - end], b[: len(b) - end]


def _shared(a: Iterable[str], b: Iterable[str]) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


def is_counted(word: str, rules: GuardRules) -> bool:
    """Say whether a guard counts a word, so that it is never left out as a stop word."""
    guards = rules.guards
    return (
        (Guard.NUMBERS in guards and (has_digit(word) or word in UNITS))
        or (Guard.NEGATIONS in guards and (_is_negation(word) or word in WORDS_OF_PHRASES))
        or (Guard.WORDS in guards and word in rules.words)
        or (Guard.CONTENT in guards and not _is_filler(word, rules.fillers))
    )


def plain_words(words: Iterable[str]) -> list[str]:
    """Return words with numbers as one writes them plainly: "26" for "26th", "8w" for "8 W"."""
    plain: list[str] = []
    is_open = False
    for word in words:
        if is_open and word in UNITS:
            plain[-1] += word
            is_open = False
            continue
        ordinal = _ORDINAL.fullmatch(word)
        plain.append(ordinal[1] if ordinal else word)
        is_open = _INTEGER.fullmatch(plain[-1]) is not None
    return plain


def _numbers(words: Iterable[str]) -> Iterator[str]:
    """Yield the numbers of plain words: runs of integers, which a unit ends, and words with a digit."""
    run: list[str] = []
    for word in [*words, ""]:
        integer = _INTEGER_WITH_UNIT.fullmatch(word)
        if integer:
            run.append(word)
        if run and (not integer or integer[1]):
            yield " ".join(run)
            run = []
        if not integer and has_digit(word):
            yield word


def _content(words: Sequence[str], fillers: Sequence[str]) -> list[str]:
    """Return plain words without fillers, or all of them if there are only fillers."""
    content = [
        word
        for before, word in pairwise(["", *words])
        if not (_is_filler(word, fillers) or (word in CLITICS and before in HOSTS))
    ]
    return content or list(words)


def _is_filler(word: str, fillers: Sequence[str]) -> bool:
    return (word in FILLERS or word in fillers) and not has_digit(word)


def _negations(words: Sequence[str]) -> Iterator[int]:
    """Yield the place of each negation; of those that overlap the first counts, and the longest."""
    place = 0
    while place < len(words):
        length = 1
        if words[place] in WORDS_OF_PHRASES:
            lengths = range(LONGEST_PHRASE, 1, -1)
            phrases = (n for n in lengths if " ".join(words[place : place + n]) in NEGATION_PHRASES)
            length = next(phrases, 1)
        if length > 1 or _is_negation(words[place]):
            yield place
        place += length


def _french_negations(words: Sequence[str]) -> int:
    """Return how many n' negate, which are no negations alone, less the "ne" that mean "only"."""
    count = 0
    for place, word in enumerate(words):
        if word in ("n", "ne"):
            inside = words[place + 1 : place + 2 + MOST_WORDS_INSIDE]
            end = next((at for at, each in enumerate(inside) if each in ENDS_OF_NE), 0)
            if end and word == "n":
                count += inside[end] in AFTER_N
            elif end:
                count -= inside[end] in AFTER_NE
    return count


def _is_negation(word: str) -> bool:
    return word in NEGATIONS or not _SYLLABLES.isdisjoint(word)
