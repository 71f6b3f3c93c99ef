"""Similarities and measures of texts in SQL are Python's, also while words wait for ids."""

from __future__ import annotations

import random
from typing import LiteralString

import psycopg
import pytest

from tests.support.connections import Connection
from textsim_db import measures
from textsim_db.measures import shingles, words

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
