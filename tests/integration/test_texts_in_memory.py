"""pairs() and clusters() of texts in memory: the result of a corpus, without a database."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest

import textsim_db as ts

WORDS = [
    f"{a}{b}" for a in ("rain", "sun", "sea", "ночь", "जल", "日") for b in ("", "a", "b", "c", "d")
]
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "exact": {"shingle": "word:2", "threshold": 0.5, "recall": 1},
    "chars": {"shingle": "char:4", "threshold": 0.6},
    "words": {"shingle": "word:1", "threshold": 0.7, "stop_words": ["raina"]},
    "guards": {"shingle": "word:1", "threshold": 0.6, "guards": ["numbers", "negations"]},
    "exact guards": {"shingle": "word:1", "threshold": 0.6, "guards": "numbers", "recall": 1},
}


def texts_of(rng: random.Random) -> list[str]:
    """Return copies, variants, siblings, a template of many texts, and texts without words."""
    texts = ["", "...", "7"]
    for _ in range(40):
        base = rng.choices(WORDS, k=rng.choice([1, 3, 12, 40]))
        for _ in range(rng.choice([1, 2, 6])):
            words = [rng.choice(WORDS) if rng.random() < 0.07 else word for word in base]
            words += rng.choice([[], ["17"], ["18"], ["not", "now"]])
            texts += [" ".join(words)] * rng.choice([1, 1, 3])
    template = rng.choices(WORDS, k=15)
    texts += [" ".join([*template, f"n{number}", f"m{number % 7}"]) for number in range(400)]
    rng.shuffle(texts)
    return texts


@pytest.mark.parametrize("kind", SETTINGS)
def test_the_result_is_that_of_a_corpus(db: ts.Database, rng: random.Random, kind: str) -> None:
    settings = SETTINGS[kind]
    texts = texts_of(rng)
    corpus = db.create_corpus("c", **settings)
    corpus.add_many((f"{place:04d}", text) for place, text in enumerate(texts))
    expected = sorted((int(p.a), int(p.b), p.similarity) for p in corpus.pairs())
    pairs = ts.pairs(texts, **settings)
    assert sorted(map(tuple, pairs)) == expected
    assert [pair.similarity for pair in pairs] == sorted((s for *_, s in expected), reverse=True)
    for linkage in ("single", "complete", "kept"):
        clusters = ts.clusters(dict(enumerate(texts)), linkage, **settings)
        assert [tuple(c) for c in clusters] == [
            (tuple(map(int, c.keys)), c.weakest, None if c.kept is None else int(c.kept))
            for c in corpus.clusters(linkage=linkage)
        ]


def test_keys_are_any_texts_in_their_order() -> None:
    texts = {"z\0": "one two three", "a": "one two three!", "": "One two, three"}
    assert [pair[:2] for pair in ts.pairs(texts)] == [("", "a"), ("", "z\0"), ("a", "z\0")]
    assert ts.clusters(texts, "kept") == [ts.Cluster(("", "a", "z\0"), 1.0, "")]
    for none in ([], ["", ""], ["a"]):
        assert ts.pairs(none) == []
        assert ts.clusters(none) == []


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", None], "text 1: the text is null"),
        ({"k": 3}, "text 'k': the text is of type int"),
        (iter(["a", "b\0"]), "text 1: the text has a NUL"),
    ],
)
def test_a_text_that_cannot_be_compared_is_named(texts: Any, message: str) -> None:
    with pytest.raises(ts.DocumentError, match=message):
        ts.pairs(texts)


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(ts.ConfigurationError, match="threshold"):
        ts.pairs(["a"], threshold=2)
    with pytest.raises(ts.ConfigurationError, match="linkage"):
        ts.clusters(["a"], "some")


def test_no_database_is_opened() -> None:
    code = """
import sys, textsim_db
assert len(textsim_db.pairs(["one two three", "one two three!"])) == 1
assert "sqlalchemy" not in sys.modules, "SQLAlchemy was imported"
assert not any(name.startswith("postgresql") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
