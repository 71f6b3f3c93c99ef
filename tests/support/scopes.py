"""Documents with scopes, two of which mix the same bits into buckets, and their true pairs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from tests.support.truth import Pairs, brute_force
from textsim_db.text.hashing import parts_of_scopes

THRESHOLD = 0.5
WORDS = [f"w{i}" for i in range(40)]


class Document(NamedTuple):
    """A document of a scoped corpus."""

    key: str
    text: str
    scope: str


@cache
def scopes_of_equal_bits() -> tuple[str, str]:
    """Return two scopes that mix the same 32 bits into their buckets."""
    names = [f"scope {i}" for i in range(400_000)]
    parts = parts_of_scopes(names)
    bits = parts.astype(np.int32)
    order = np.argsort(bits, kind="stable")
    (first, *_) = np.flatnonzero(np.diff(bits[order]) == 0)
    return names[order[first]], names[order[first + 1]]


def random_documents(seed: int, count: int) -> list[Document]:
    """Return similar texts, of five scopes; two of the scopes mix the same bits into their buckets."""
    rng = random.Random(seed)
    scopes = ["a", "b", "", *scopes_of_equal_bits()]
    originals = [_text(rng) for _ in range(count // 10)]
    keys = map(str, range(count))
    return [Document(k, _changed(rng, rng.choice(originals)), rng.choice(scopes)) for k in keys]


def _text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(4, 9)))


def _changed(rng: random.Random, text: str) -> str:
    words = text.split()
    if rng.random() < 0.5:
        words[rng.randrange(len(words))] = rng.choice(WORDS)
    return " ".join(words)


def true_pairs(documents: Sequence[Document]) -> Pairs:
    """Return the similar pairs of each scope, in shingles of two words."""
    pairs: Pairs = {}
    for scope in {document.scope for document in documents}:
        texts = {key: text for key, text, of in documents if of == scope}
        pairs |= brute_force(texts, "word:2", THRESHOLD)
    return pairs
