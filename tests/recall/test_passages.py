"""Passages cut from real texts, and written in another form, are all found, in the right documents."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import textsim_db as ts
from textsim_db.text.tokens import normal_form

pytestmark = pytest.mark.more

DATA = Path(__file__).parents[2].parent / "shared" / "data"
WORDS = 13
PASSAGES = 10_000
LIMITS = {"arxiv": 20_000, "licences": 1500, "articles": 1000, "languages": 7500, "scripture": 866}
"""The documents that are read of each file."""
SEPARATORS = (" ", "\n", ", ", ";\n\n", " -- ", "\t(", "... ")


def texts_of(name: str) -> Iterator[tuple[str, str]]:
    path = DATA / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"needs {path.name} in ../shared/data")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(islice(file, LIMITS[name])):
            yield f"{name} {number}", json.loads(line)["text"]


class Runs:
    """All runs of WORDS words of documents, by a hash of their words."""

    def __init__(self, documents: dict[str, list[str]]) -> None:
        self.keys = list(documents)
        self._ids: dict[str, int] = {}
        hashes = [self._hashes(words) for words in documents.values()]
        owners = np.repeat(np.arange(len(hashes)), [len(each) for each in hashes])
        joined = np.concatenate(hashes)
        order = np.argsort(joined, kind="stable")
        self._hashes_in_order, self._owners = joined[order], owners[order]

    def documents_with(self, words: list[str]) -> set[str]:
        """Return the documents that have any run of a text."""
        hashes = np.unique(self._hashes(words))
        first = np.searchsorted(self._hashes_in_order, hashes, "left")
        last = np.searchsorted(self._hashes_in_order, hashes, "right")
        owners = [self._owners[i:j] for i, j in zip(first, last, strict=True)]
        return {self.keys[i] for i in np.unique(np.concatenate(owners)).tolist()}

    def pairs(self) -> set[tuple[str, str]]:
        """Return all pairs of documents that share a run."""
        shares = np.zeros((len(self.keys), len(self.keys)), np.bool_)
        ends = np.flatnonzero(np.diff(self._hashes_in_order)) + 1
        groups = {np.unique(each).tobytes() for each in np.split(self._owners, ends)}
        for group in groups:
            owners = np.frombuffer(group, self._owners.dtype)
            shares[np.ix_(owners, owners)] = True
        return {(self.keys[a], self.keys[b]) for a, b in np.argwhere(np.triu(shares, 1)).tolist()}

    def _hashes(self, words: list[str]) -> npt.NDArray[np.uint64]:
        ids = [self._ids.setdefault(word, len(self._ids)) for word in words]
        mixed = (np.array(ids, np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        count = max(len(words) - WORDS + 1, 0)
        total = np.zeros(count, np.uint64)
        for k in range(WORDS):
            total = total * np.uint64(0xBF58476D1CE4E5B9) + mixed[k : k + count]
        return total


class Cut(NamedTuple):
    """A passage that was cut from a document, and a text that has it in another form."""

    run: ts.Passage
    words: list[str]
    text: str


def cut(rng: random.Random, key: str, words: list[str]) -> Cut:
    count = rng.randint(WORDS, min(200, len(words)))
    start = rng.randrange(len(words) - count + 1)
    before, after = ([f"qx{rng.randrange(10**9)}" for _ in range(rng.randrange(4))] for _ in "ab")
    text_words = [*before, *words[start : start + count], *after]
    text = "".join(
        (rng.choice((str.upper, str.title, str))(word) if word.isascii() else word)
        + rng.choice(SEPARATORS)
        for word in text_words
    )
    return Cut(ts.Passage(key, count, len(before), start), text_words, text)


def test_every_passage_of_real_texts_is_found(db: ts.Database, seed: int) -> None:
    texts = dict(document for name in LIMITS for document in texts_of(name))
    corpus = db.create_corpus("real", passages=WORDS)
    assert corpus.add_many(texts.items()).added == len(texts)
    documents = {key: normal_form(text).split() for key, text in texts.items()}
    runs = Runs(documents)
    long_enough = [key for key, words in documents.items() if len(words) >= WORDS]
    rng = random.Random(seed)
    for _ in range(PASSAGES):
        key = rng.choice(long_enough)
        expected, words, text = cut(rng, key, documents[key])
        found = corpus.passages(text)
        assert {passage.key for passage in found} == runs.documents_with(words), text
        assert all(is_shared(passage, words, documents) for passage in found), text
        assert any(covers(passage, expected) for passage in found), text


def test_all_passages_that_licences_share_are_listed(db: ts.Database) -> None:
    texts = dict(texts_of("licences"))
    corpus = db.create_corpus("licences", passages=WORDS)
    corpus.add_many(texts.items())
    documents = {key: normal_form(text).split() for key, text in texts.items()}
    pairs = set()
    for passage in corpus.shared_passages():
        a, b, count, in_a, in_b = passage
        assert count >= WORDS
        run = documents[a][in_a : in_a + count]
        assert run == documents[b][in_b : in_b + count], passage
        pairs |= {(a, b), (b, a)}
    expected = Runs(documents).pairs()
    assert len(expected) > 10_000
    assert pairs == expected | {(b, a) for a, b in expected}


def is_shared(passage: ts.Passage, words: list[str], documents: dict[str, Any]) -> bool:
    """Say whether the text and the document have the words of a passage."""
    key, count, in_text, in_document = passage
    document = documents[key][in_document : in_document + count]
    return bool(words[in_text : in_text + count] == document) and count >= WORDS


def covers(passage: ts.Passage, expected: ts.Passage) -> bool:
    """Say whether a passage has the place of the words that were cut from a document.

    Words of the same document before or after them may be in the text by chance.
    """
    key, words, _, start = expected
    return (
        passage.key == key
        and passage.in_document <= start <= passage.in_document + passage.words - words
    )
