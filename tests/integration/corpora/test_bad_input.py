"""Texts, keys and items that cannot be stored are refused, and affect no other document."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import textsim_db as ts
from textsim_db.base.run_ahead import BATCH_DOCUMENTS

BAD_TEXTS = [
    ("ab\0c", "NUL character at character 3"),
    ("a\ud83d b", "lone surrogate U+D83D at character 2"),
    (None, "the text is null; leave it out, or give an empty text"),
    (float("nan"), "the text is null"),
    (np.float32("nan"), "the text is null"),
    (b"bytes", "type bytes; expected str"),
    (3.5, "type float; expected str"),
]


BAD_KEYS: list[tuple[Any, str]] = [
    ("a\0b", "the key has a NUL character"),
    ("\udc00", "the key has a lone surrogate"),
    ("k" * 1001, "the key is 1001 bytes long; at most 1000"),
    ("ü" * 501, "the key is 1002 bytes long; at most 1000"),
    (None, "the key is null; the text begins with 'text'"),
    (float("nan"), "the key is null"),
    (("a", "b"), "the key is of type tuple; expected str"),
    (True, "the key is of type bool; expected str"),
    (np.bool_(True), "the key is of type bool"),
    (1.0, "the key is of type float; expected str"),
    (b"a", "the key is of type bytes; expected str"),
    (10**1000, "the key is longer than 1000 digits"),
]
NO_PAIRS: list[Any] = [
    None,
    5,
    "ab",
    b"ab",
    "abc",
    ("a",),
    [],
    {"a": "b"},
    {"a": 1, "b": 2},
    {"a", "b"},
]
BAD_DOCUMENTS: list[tuple[Any, str]] = [
    *((("bad", text), reason) for text, reason in BAD_TEXTS),
    *(((key, "text"), reason) for key, reason in BAD_KEYS),
    *((item, "pair of key and text") for item in NO_PAIRS),
    (("a", "b", "c"), "scope"),
    (("a", "b", "c", "d"), "scope"),
]


def test_documents_that_cannot_be_stored_are_refused_alone(corpus: ts.Corpus) -> None:
    for item, reason in BAD_DOCUMENTS:
        report = corpus.add_many([("before", "good"), item, ("after", "good too")])
        assert (report.added + report.unchanged, report.received) == (2, 3), item
        (refusal,) = report.refused
        assert reason in refusal.reason, item
        if reason.startswith("the key"):
            assert refusal.reason.startswith(reason), item
            if "type" in reason or "null" in reason:
                with pytest.raises(ts.DocumentError, match="the key is"):
                    corpus.remove(item[:1])
            else:
                assert corpus.remove(item[:1]) == 0
        if isinstance(item, tuple) and len(item) == 2:
            expected = "the key" if reason.startswith("the key") else '"bad"'
            with pytest.raises(ts.DocumentError, match=expected):
                corpus.add(*item)
    assert len(corpus) == 2
    assert corpus.check() == []


def test_a_query_that_cannot_be_stored_is_refused_by_its_number(corpus: ts.Corpus) -> None:
    for text, reason in BAD_TEXTS:
        for function in (corpus.query, corpus.candidates):
            with pytest.raises(ts.DocumentError):
                function(text)  # type: ignore[arg-type]
        with pytest.raises(ts.DocumentError, match=r"\b2\b") as caught:
            corpus.query_many(["good", text])  # type: ignore[list-item]
        assert reason in str(caught.value)


def test_impossible_keys_are_not_found(corpus: ts.Corpus) -> None:
    for key in ("a\ud800b", "neighbours of a\0", "\udc00", "k" * 1001):
        for call in (lambda k: corpus.neighbours(k), lambda k: corpus.explain(k, "c")):
            with pytest.raises(ts.DocumentNotFound) as raised:
                call(key)
            assert key != "a\ud800b" or r"a\ud800b" in str(raised.value).encode().decode()
    assert str(ts.TextsimError("a\ud800b")).encode() == rb"a\ud800b"


def test_long_and_unusual_keys_are_stored(corpus: ts.Corpus) -> None:
    keys = ["", " ", "k" * 1000, "漢" * 333, "a'b\"c\\", "%s", "{}", "\n\t", "\U0001f98a", "NULL"]
    assert corpus.add_many((key, "the same few words") for key in keys).added == len(keys)
    assert all(key in corpus for key in keys)
    assert {m.key for m in corpus.query("the same few words")} == set(keys)
    assert corpus.remove(keys) == len(keys)


def test_the_last_of_duplicate_keys_in_a_batch_is_stored(corpus: ts.Corpus) -> None:
    report = corpus.add_many([("a", "first text"), ("b", "other"), ("a", "x"), ("a", "last text")])
    assert (report.added, report.repeated_keys, report.received) == (2, 2, 4)
    assert report.some_repeated == ["a"]
    assert [m.key for m in corpus.query("last text")] == ["a"]
    assert corpus.query("first text") == []
    again = corpus.add_many([("a", "last text"), ("a", "newer")])
    assert (again.replaced, again.repeated_keys, again.received) == (1, 1, 2)
    assert corpus.check() == []


def test_the_last_of_duplicate_keys_over_several_batches_is_stored(db: ts.Database) -> None:
    corpus = db.create_corpus("c", shingle="word:1", num_hashes=8)
    last = 2 * BATCH_DOCUMENTS
    texts = [(str(i), "some word") for i in range(last)]
    texts[3] = ("a", "first text")
    texts[BATCH_DOCUMENTS + 3] = ("a", "second text")
    texts += [("a", "last text"), ("0", "some word")]
    report = corpus.add_many(texts)
    assert (report.added, report.replaced, report.unchanged) == (last - 1, 0, 0)
    assert (report.repeated_keys, report.received) == (3, len(texts))
    assert sorted(report.some_repeated) == ["0", "a"]
    assert [m.key for m in corpus.query("last text")] == ["a"]
    assert len(corpus) == last - 1


def test_a_refused_duplicate_does_not_replace_the_first_document(corpus: ts.Corpus) -> None:
    report = corpus.add_many([("a", "good text"), ("a", "bad\0")])
    assert [refusal.key for refusal in report.refused] == ["a"]
    assert report.received == 2
    assert [m.key for m in corpus.query("good text")] == ["a"]


def test_empty_and_blank_texts_are_stored_and_never_match(corpus: ts.Corpus) -> None:
    blank = {"e": "", "s": " \n", "p": "... ?!", "u": "\u0378\U000e0000", "i": "\u200b\ufeff"}
    assert corpus.add_many(blank.items()).added == len(blank)
    assert all(key in corpus for key in blank)
    for key, text in blank.items():
        assert corpus.query(text, threshold=0.0001) == []
        assert corpus.candidates(text) == []
        assert corpus.neighbours(key, threshold=0.0001) == []
    assert corpus.query_many(list(blank.values())) == [[]] * len(blank)
    assert list(corpus.pairs(0.0001)) == []
    assert list(corpus.clusters(0.0001)) == []
    assert corpus.add("e", "now it has words").replaced == 1
    assert corpus.add("e", "").replaced == 1
    assert corpus.check() == []
    assert corpus.remove(blank) == len(blank)


@pytest.mark.parametrize("shingle", ["word:3", "char:5"])
def test_a_word_of_a_megabyte_is_stored(db: ts.Database, shingle: str) -> None:
    corpus = db.create_corpus("c", shingle=shingle)
    word = "ab" * (512 * 1024)
    assert corpus.add_many([("long", word), ("longer", word + "c"), ("other", "a b")]).added == 3
    assert [m.key for m in corpus.query(word, threshold=1.0)] == ["long"]
    assert corpus.check() == []


def test_a_document_over_the_limit_is_refused(corpus: ts.Corpus) -> None:
    report = corpus.add_many([("small", "a b c"), ("huge", "x" * (128 * 1024 * 1024 + 1))])
    assert report.added == 1
    assert "134217729 bytes long; at most 134217728" in report.refused[0].reason
