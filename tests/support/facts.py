"""Facts in different words, and whether two texts say the same."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

CHOICES = {
    "who": "Anna Bert Carl Dora Emil Frida Georg Hanna Igor Jana Karim Lena Mona Nils Olga Paul Rosa",
    "city": "Kiel Bonn Bremen Leipzig Hamburg Dresden Rostock Erfurt",
    "month": "January March April May June August October",
}
SENTENCES = (
    "{who} {moved} to {city} in {month} and {works} in the harbour office",
    "{who} {likes} a window seat near the front on {long} flights to {city}",
    "the train of {who} to the office in {city} {leaves} at {hour}:{minute}",
    "{who} does {perhaps}eat peanuts, hazelnuts or anything {made} of soy",
    "{who} wants the {month} report for {city} as a table of {hour} columns",
    "invoice {number} of {who} was {paid} in {month} from the account in {city}",
)
SYNONYMS = {
    "moved": "relocated",
    "works": "is employed",
    "likes": "prefers",
    "long": "lengthy",
    "leaves": "departs",
    "made": "prepared",
    "paid": "settled",
}
BEFORE = ("", "", "Please note: ", "Today: ", "I hear that ")
AFTER = ("", ".", "!", ", as said", " (confirmed)", ", I think")
FILLERS = set(re.findall(r"\w+", " ".join((*BEFORE, *AFTER)).lower()))
"""Words that change no fact."""
_WORD_OF = {
    other: word for word, synonym in SYNONYMS.items() for other in synonym.split() if other != "is"
}


class Note(NamedTuple):
    fact: str
    """Equal notes of one fact have it in common, whatever their words are."""
    text: str


def notes(rng: random.Random, count: int) -> list[Note]:
    """Return notes in any order, of which about a third repeat an earlier fact."""
    facts: list[dict[str, str]] = []
    written: list[Note] = []
    for _ in range(count):
        if facts and rng.random() < 0.35:
            fact = rng.choice(facts)
        elif facts and rng.random() < 0.5:
            fact = _changed(rng, rng.choice(facts))
        else:
            fact = _new(rng)
        facts.append(fact)
        sentence = fact["sentence"]
        same = {**fact, **{word: word for word in SYNONYMS}}
        used = {each: fact[each] for each in fact if f"{{{each}}}" in sentence}
        name = f"{sentence} {sorted(used.items())}"
        other = {word: rng.choice([word, SYNONYMS[word]]) for word in SYNONYMS}
        text = sentence.format(**{**same, **(other if rng.random() < 0.3 else {})})
        if rng.random() < 0.2:
            text = text.upper()
        written.append(Note(name, f"{rng.choice(BEFORE)}{text}{rng.choice(AFTER)}"))
    return written


def _new(rng: random.Random) -> dict[str, str]:
    return {
        "sentence": rng.choice(SENTENCES),
        **{name: rng.choice(words.split()) for name, words in CHOICES.items()},
        "hour": str(rng.randrange(5, 23)),
        "minute": str(rng.randrange(10, 60)),
        "number": str(rng.randrange(1_000, 10_000)),
        "perhaps": rng.choice(["", "not "]),
    }


def _changed(rng: random.Random, fact: dict[str, str]) -> dict[str, str]:
    """Return a fact that differs from another in one word, number or negation."""
    used = [each for each in fact if f"{{{each}}}" in fact["sentence"]]
    name = rng.choice(used)
    return {**fact, name: _new(rng)[name]}


def mean_the_same(differs: dict[str, str]) -> bool:
    """Say whether two texts that differ in these words say the same, as a model would."""
    sides = []
    for text in (*differs.values(), "", "")[:2]:
        words = {_WORD_OF.get(word, word) for word in re.findall(r"\w+", text.lower())}
        sides.append(words - FILLERS - {"is"})
    return sides[0] == sides[1]
