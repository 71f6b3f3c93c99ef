"""Passages cut from real texts, and written in another form, are all found, in the right documents."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest

import textsim_db as ts
from tests.support.quotations import quotations, real_texts, words_of
from tests.support.real_corpora import DATA

pytestmark = pytest.mark.more

WORDS = 13
QUOTATIONS = 10_000


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Return the real texts by key."""
    try:
        return real_texts(DATA)
    except FileNotFoundError as error:
        pytest.skip(f"needs {error.filename} in ../shared/data")


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

    def _hashes(self, words: list[str]) -> npt.NDArray[np.uint64]:
        ids = [self._ids.setdefault(word, len(self._ids)) for word in words]
        mixed = (np.array(ids, np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        count = max(len(words) - WORDS + 1, 0)
        total = np.zeros(count, np.uint64)
        for k in range(WORDS):
            total = total * np.uint64(0xBF58476D1CE4E5B9) + mixed[k : k + count]
        return total


def test_every_quotation_of_real_texts_is_found(
    db: ts.Database, texts: dict[str, str], seed: int
) -> None:
    corpus = db.create_corpus("real", passages=WORDS)
    assert corpus.add_many(texts.items()).added == len(texts)
    documents = words_of(texts)
    runs = Runs(documents)
    for quotation in quotations(random.Random(seed), documents, WORDS, QUOTATIONS):
        found = corpus.passages(quotation.text)
        assert {passage.key for passage in found} == runs.documents_with(quotation.words), quotation
        assert all(is_shared(passage, quotation.words, documents) for passage in found), quotation
        assert any(quotation.is_at(p.key, p.words, p.in_document) for p in found), quotation


def is_shared(passage: ts.Passage, words: list[str], documents: dict[str, list[str]]) -> bool:
    """Say whether the text and the document have the words of a passage."""
    key, count, in_text, in_document = passage[:4]
    document = documents[key][in_document : in_document + count]
    return words[in_text : in_text + count] == document and count >= WORDS
