"""Texts that quote each other, and their shared runs as brute force finds them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import textsim_db as ts
from tests.support.connections import Connection
from textsim_db.results import Passage

WORDS = 8
"""The words of the shortest passage; its shingles have four words."""
HEADER = "this header of ten words is in each of them"
QUOTATION = "one two three four five six seven eight nine"

Run = tuple[str, int, int, int]
"""The key of a document, the words in the run, and the words before it in the text and the document."""


def create_corpus(db: ts.Database, name: str = "c", **settings: Any) -> ts.Corpus:
    return db.create_corpus(name, **({"passages": WORDS} | settings))


def related_texts(rng: random.Random, count: int) -> dict[str, str]:
    """Return texts that quote each other and themselves, of large and of small vocabularies."""
    words: list[list[str]] = []
    for _ in range(count):
        vocabulary = rng.choice((3, 30, 3000))
        own = [f"w{rng.randrange(vocabulary)}" for _ in range(rng.randrange(80))]
        for _ in range(rng.randrange(3)):
            quoted = rng.choice(words or [own])
            start, place = rng.randrange(len(quoted) + 1), rng.randrange(len(own) + 1)
            own[place:place] = quoted[start : start + rng.choice((WORDS - 1, WORDS, 20))]
        words.append(own)
    return {f"d{i:03}": " ".join(own) for i, own in enumerate(words)}


def with_header(count: int) -> Iterator[tuple[str, str]]:
    return ((f"{n:04}", f"{HEADER} and body{n} number{n} " + f"w{n} " * 3) for n in range(count))


def places(passages: Iterable[Passage]) -> list[Run]:
    """Return keys and words, without the characters."""
    return [passage[:4] for passage in passages]


def maximal_runs(
    text: list[str], document: list[str], least: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the words and the places of each run, by comparing all places that begin alike."""
    last = (0, 0, 0)
    places = defaultdict[tuple[str, ...], list[int]](list)
    for place in range(len(text) - least + 1):
        places[tuple(text[place : place + least])].append(place)
    for start in range(len(document)):
        begun = places.get(tuple(document[start : start + least]))
        if begun is None:
            continue
        runs = ((_common(text, place, document, start), place) for place in begun)
        length, place = max(runs, key=lambda run: run[0])
        if start + length <= last[0] + last[2]:
            continue
        is_repeated = last[:2] == (length, place) and start < last[0] + last[2]
        last = (length, place, start)
        if not is_repeated:
            yield last


def _common(text: list[str], place: int, document: list[str], start: int) -> int:
    """Return how many words are equal from two places on."""
    length = 0
    for a, b in zip(islice(text, place, None), islice(document, start, None), strict=False):
        if a != b:
            break
        length += 1
    return length


def expected(text: str, documents: dict[str, str], least: int = WORDS) -> list[Run]:
    own, split = text.split(), {key: document.split() for key, document in documents.items()}
    runs = [(key, *run) for key in split for run in maximal_runs(own, split[key], least)]
    return sorted(runs, key=lambda run: (-run[1], run[0], run[3]))


def in_sql(connection: Connection, text: str, *arguments: Any) -> list[Run]:
    places = ", ".join(["%s"] * (1 + len(arguments)))
    query = f"SELECT * FROM textsim.passages('c', {places})".encode()
    return [tuple(row) for row in connection.execute(query, [text, *arguments])]


def has_many_places(units: Sequence[str], least: int = WORDS) -> bool:
    """Say whether a text has a run at more than ten places, of which SQL compares only ten."""
    windows = Counter(tuple(units[i : i + least]) for i in range(len(units) - least + 1))
    return max(windows.values(), default=0) > 10
