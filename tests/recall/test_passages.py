"""Passages cut from real texts, and written in another form, are all found, in the right documents."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import textsim_db as ts
from benchmarks.harness import read_corpora
from tests.support.real_corpora import DATA
from textsim_db.results import Passage
from textsim_db.text.tokens import normal_form

pytestmark = pytest.mark.more

WORDS = 13
QUOTATIONS = 500
MOST_WORDS = 200
"""The words of the longest quotation."""
LIMITS = {"arxiv": 1500, "licences": 500, "articles": 300, "languages": 2500, "scripture": 300}
"""The real texts, by file: how many of its documents are read."""
_SEPARATORS = (" ", "\n", ", ", ";\n\n", " -- ", "\t(", "... ")


class Quotation(NamedTuple):
    """A run of words that was cut from a document, and a text that has it in another form."""

    key: str
    """The key of the document."""
    start: int
    """The words of the document before the run."""
    length: int
    """The words of the run."""
    before: int
    """The words of the text before the run."""
    words: list[str]
    """The words of the text."""
    text: str
    """The text."""

    def is_at(self, key: str, words: int, in_document: int) -> bool:
        """Say whether a passage has the place of the run.

        Words of the same document before or after it may be in the text by chance.
        """
        return key == self.key and in_document <= self.start <= in_document + words - self.length


def real_texts(folder: Path) -> dict[str, str]:
    """Return the real texts by key; raises FileNotFoundError if a file is missing."""
    return {
        f"{name} {number}": document["text"]
        for name, most in LIMITS.items()
        for _, documents in read_corpora([folder / f"{name}.jsonl.gz"], most)
        for number, document in enumerate(documents)
    }


def words_of(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the words of the normal form of each text."""
    return {key: normal_form(text).split() for key, text in texts.items()}


def quotations(
    rng: random.Random, documents: Mapping[str, Sequence[str]], least: int, count: int
) -> Iterator[Quotation]:
    """Yield quotations of least to MOST_WORDS words of documents, given as their words."""
    long_enough = [key for key, words in documents.items() if len(words) >= least]
    for _ in range(count):
        key = rng.choice(long_enough)
        yield _quotation(rng, key, documents[key], least)


def _quotation(rng: random.Random, key: str, words: Sequence[str], least: int) -> Quotation:
    count = rng.randint(least, min(MOST_WORDS, len(words)))
    start = rng.randrange(len(words) - count + 1)
    before, after = ([f"qx{rng.randrange(10**9)}" for _ in range(rng.randrange(4))] for _ in "ab")
    text_words = [*before, *words[start : start + count], *after]
    text = "".join(
        (rng.choice((str.upper, str.title, str))(word) if word.isascii() else word)
        + rng.choice(_SEPARATORS)
        for word in text_words
    )
    return Quotation(key, start, count, len(before), text_words, text)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Return the real texts by key."""
    try:
        return real_texts(DATA)
    except FileNotFoundError as error:
        pytest.skip(f"needs {error.filename} in ../shared/data")


def test_every_quotation_of_real_texts_is_found(
    db: ts.Database, texts: dict[str, str], seed: int
) -> None:
    corpus = db.create_corpus("real", passages=WORDS)
    assert corpus.add_many(texts.items()).added == len(texts)
    documents = words_of(texts)
    for quotation in quotations(random.Random(seed), documents, WORDS, QUOTATIONS):
        found = corpus.passages(quotation.text)
        assert all(is_shared(passage, quotation.words, documents) for passage in found), quotation
        assert any(quotation.is_at(p.key, p.words, p.in_document) for p in found), quotation


def is_shared(passage: Passage, words: list[str], documents: dict[str, list[str]]) -> bool:
    """Say whether the text and the document have the words of a passage."""
    key, count, in_text, in_document = passage[:4]
    document = documents[key][in_document : in_document + count]
    return words[in_text : in_text + count] == document and count >= WORDS
