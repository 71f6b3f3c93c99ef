"""Similarities and measures of texts in SQL are Python's, also while words wait for ids."""

from __future__ import annotations

import random
from typing import Any, LiteralString

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sampling import sample
from textsim_db import measures
from textsim_db.measures import shingles, words

pytestmark = pytest.mark.both_servers


@pytest.mark.parametrize("shingle", sample(["word:2", "word:1", "word:3", "char:3", "word:4"], 5))
def test_searches_find_documents_whose_words_wait_for_ids(
    db: ts.Database, connection: Connection, shingle: str
) -> None:
    """Matches and similarities are the same whether the words of a document have ids or not."""
    texts = {
        "none": "",
        "one": "alpha",
        "two": "alpha beta",
        "repeated": "alpha alpha alpha alpha",
        "three": "alpha beta gamma",
        "four": "alpha beta gamma delta",
        "many": "alpha beta gamma delta epsilon zeta eta theta",
        "changed": "alpha beta gamma delta epsilon zeta eta iota",
    }
    settings: dict[str, Any] = {"shingle": shingle, "threshold": 0.3, "bands": 256, "rows": 2}
    settings["num_hashes"] = 512
    ready = db.create_corpus("ready", **settings)
    ready.add_many(list(texts.items())[::2])
    db.create_corpus("waiting", **settings)
    db.create_corpus("mixed", **settings).add_many(list(texts.items())[::2])
    for key, text in texts.items():
        for name in ("waiting", "mixed"):
            connection.execute("SELECT textsim.add(%s, %s, %s)", [name, key, text])
    ready.add_many(texts.items())
    queries = [*texts.values(), "unknown", "unknown words alpha beta gamma", "zeta zeta unknown"]

    def answers(name: str) -> list[Any]:
        results = [
            connection.execute(
                "SELECT * FROM textsim.matches(%s, %s, 0.05)", [name, text]
            ).fetchall()
            for text in queries
        ]
        results += [
            connection.execute(
                "SELECT * FROM textsim.neighbours(%s, %s, 0.05)", [name, key]
            ).fetchall()
            for key in texts
        ]
        pairs = connection.execute("SELECT * FROM textsim.pairs(%s, 0.05)", [name]).fetchall()
        corpus = db.corpus(name)
        assert corpus.query_many(queries, 0.05) == [corpus.query(text, 0.05) for text in queries]
        return [
            *results,
            sorted(pairs),
            sorted(corpus.pairs(0.05)),
            list(corpus.clusters(0.05)),
            corpus.query_many(queries, 0.05),
            [corpus.neighbours(key, 0.05) for key in texts],
            [corpus.candidates(text) for text in queries],
        ]

    expected = answers("ready")
    assert sum(map(len, expected)) > 20
    assert db.corpus("waiting").status().as_text == len(texts) - 1  # one has no words
    assert answers("waiting") == answers("mixed") == expected
    for text, matches in zip(queries, expected[: len(queries)], strict=True):
        assert matches == [match[:2] for match in ready.query(text, 0.05)]
    assert db.worker().run(until_idle=True).completed > len(texts)
    assert answers("waiting") == answers("mixed") == expected
    assert db.corpus("waiting").check() == db.corpus("mixed").check() == []


_MEASURES = """
SELECT textsim.containment(a, b), textsim.containment(a, b, 'char', 4),
    textsim.containment(b, a, 'word', 2), textsim.cosine_similarity(a, b),
    textsim.levenshtein_words(a, b), textsim.levenshtein_words(a, b, 1, 2.5, 3)
FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY t (a, b, i) ORDER BY i
"""


def assert_equal_measures(connection: Connection, pairs: list[tuple[str, str]]) -> None:
    left, right = map(list, zip(*pairs, strict=True))
    rows = connection.execute(_MEASURES, [left, right]).fetchall()
    for (a, b), row in zip(pairs, rows, strict=True):
        assert list(row) == pytest.approx(
            [
                measures.containment(words(a), words(b)),
                measures.containment(shingles(a, "char:4"), shingles(b, "char:4")),
                measures.containment(shingles(b, "word:2"), shingles(a, "word:2")),
                measures.cosine_similarity(words(a), words(b)),
                measures.levenshtein(words(a), words(b)),
                measures.levenshtein(words(a), words(b), 1, 2.5, 3),
            ],
            rel=0,
            abs=1e-12,
        )


def test_measures_of_random_texts_equal_pythons(
    shared_connection: Connection, rng: random.Random
) -> None:
    pairs = [("", ""), ("", "a b"), ("a b", ""), ("?!", "a"), ("a A a", "a")]
    for _ in range(500):
        items = [f"W{i}é" for i in range(rng.choice([2, 5, 20]))] + ["漢字", "?", "Straße"]
        pairs.append(
            (
                " ".join(rng.choices(items, k=rng.randrange(20))),
                " ".join(rng.choices(items, k=rng.randrange(20))),
            )
        )
    assert_equal_measures(shared_connection, pairs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("textsim.containment('a', 'b', 'line')", 'unit is "line"; expected "word" or "char"'),
        ("textsim.levenshtein_words('a', 'b', -1)", "costs are -1, 1 and 1; expected 0 to 2"),
        ("textsim.levenshtein_words('a', 'b', 1, 'NaN')", "costs are 1, NaN and 1; expected 0 to"),
        (
            "textsim.levenshtein_words(repeat('a ', 6000), repeat('b ', 6000))",
            "texts of 6000 and 6000 words are too long to be compared word by word",
        ),
    ],
)
def test_wrong_arguments_are_refused_with_a_message(
    shared_connection: Connection, call: LiteralString, message: str
) -> None:
    with pytest.raises(psycopg.Error, match=message.replace("^", r"\^")):
        shared_connection.execute("SELECT " + call)


def test_measures_of_null_are_null(shared_connection: Connection) -> None:
    row = shared_connection.execute(
        "SELECT textsim.cosine_similarity(NULL, 'a'), textsim.containment('a', NULL), "
        "textsim.levenshtein_words(NULL, NULL)"
    ).fetchone()
    assert row == (None, None, None)
