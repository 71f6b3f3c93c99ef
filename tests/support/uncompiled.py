"""Random texts through the kernels; as a program, through kernels that Python runs.

    python -m tests.support.uncompiled SEED [DATABASE_URL]

It prints the results. With an address it compares words, shingles and buckets with SQL, and uses each
kernel of a corpus. It fails if a kernel is compiled.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

import psycopg

import textsim_db as ts
from tests.support import parity
from tests.support.random_texts import random_text
from textsim_db import measures
from textsim_db.base.interpreter import interpreter
from textsim_db.base.numba_compiler import watch_compiler
from textsim_db.cli import warm
from textsim_db.settings.named_values import Linkage
from textsim_db.text.tokens import words

TEXTS = 24
SETTINGS: tuple[Any, ...] = (
    {"threshold": 0.3},
    {"threshold": 0.5, "recall": 0.9},
    {"threshold": 0.3, "shingle": "char:3"},
    {
        "threshold": 0.3,
        "shingle": "word:1",
        "stop_words": ["the"],
        "guards": ["numbers", "content"],
    },
)


def texts_of(seed: int) -> list[str]:
    """Return texts of rare characters, and near-duplicates of words and numbers."""
    rng = random.Random(seed)
    vocabulary = [
        "the",
        "not",
        "Straße",
        "d\u00e9j\u00e0",
        "\u6f22\u5b57",
        "c++",
        "-12",
        "2024",
        *map(str, range(9)),
    ]
    begin = rng.choices(vocabulary, k=12)
    alike = [
        " ".join(begin + rng.choices(vocabulary, k=rng.randrange(9))) for _ in range(TEXTS // 2)
    ]
    return [*alike, *(random_text(rng) for _ in range(TEXTS // 2))]


def results(seed: int) -> Iterator[str]:
    """Yield what a user gets in memory, as text."""
    texts = [text.replace("\0", "") for text in texts_of(seed)]
    yield repr([words(text) for text in texts])
    for settings in SETTINGS:
        yield repr(ts.pairs(texts, **settings))
        yield repr(ts.distinct(texts, **settings))
        for linkage in Linkage:
            yield repr(ts.clusters(texts, linkage.value, **settings))
    document = " ".join(texts)
    yield repr([ts.quote(text.replace("2024", "not"), document) for text in texts[: TEXTS // 2]])
    yield repr([ts.explain(texts[0], text) for text in texts])
    yield repr(measures.edit_table("one two three", "one three two"))


def use_each_kernel(url: str, seed: int) -> None:
    warm._COPIES = 5
    texts = [text for text in texts_of(seed) if "\0" not in text]
    with ts.connect(url) as db, psycopg.connect(url, autocommit=True) as connection:
        corpora = parity.create_corpora(db)
        assert list(parity.differences(connection, corpora, texts)) == []
        for use in warm._uses():
            use(db)


def main() -> None:
    compiled: list[int] = []
    seed, *addresses = sys.argv[1:]
    with watch_compiler(lambda: compiled.append(1)):
        interpreter.seconds, interpreter.elements = float("inf"), sys.maxsize
        for address in addresses:
            use_each_kernel(address, int(seed))
        print(*results(int(seed)), sep="\n")
    assert not compiled


if __name__ == "__main__":
    main()
