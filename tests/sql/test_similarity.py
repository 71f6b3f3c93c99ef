"""Measures of texts in SQL are Python's, to the last bit."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import LiteralString

import psycopg
import pytest

from tests.support.connections import Connection
from textsim_db import measures
from textsim_db.measures import shingles, words

MEASURES: dict[LiteralString, Callable[[str, str], float]] = {
    "measure('jaccard', a, b)": lambda a, b: measures.jaccard(words(a), words(b)),
    "measure('jaccard', a, b, 'word', 2)": lambda a, b: measures.jaccard(
        shingles(a, "word:2"), shingles(b, "word:2")
    ),
    "measure('containment', a, b)": lambda a, b: measures.containment(words(a), words(b)),
    "measure('containment', b, a, 'char', 4)": lambda a, b: measures.containment(
        shingles(b, "char:4"), shingles(a, "char:4")
    ),
    "measure('overlap', a, b)": lambda a, b: measures.overlap(words(a), words(b)),
    "measure('overlap', a, b, 'char', 2)": lambda a, b: measures.overlap(
        shingles(a, "char:2"), shingles(b, "char:2")
    ),
    "measure('dice', a, b)": lambda a, b: measures.dice(words(a), words(b)),
    "measure('dice', a, b, n => 3)": lambda a, b: measures.dice(
        shingles(a, "word:3"), shingles(b, "word:3")
    ),
    "measure('jaccard_of_counts', a, b)": lambda a, b: measures.jaccard_of_counts(
        words(a), words(b)
    ),
    "measure('cosine_similarity', a, b)": lambda a, b: measures.cosine_similarity(
        words(a), words(b)
    ),
    "measure('cosine_distance', a, b)": lambda a, b: measures.cosine_distance(words(a), words(b)),
    "measure('euclidean', a, b)": lambda a, b: measures.euclidean(words(a), words(b)),
    "measure('manhattan', a, b)": lambda a, b: measures.manhattan(words(a), words(b)),
    "measure('lr_norm', a, b, r => 1)": lambda a, b: measures.lr_norm(words(a), words(b), 1),
    "measure('lr_norm', a, b, r => 3)": lambda a, b: measures.lr_norm(words(a), words(b), 3),
    "measure('lr_norm', a, b, r => 1.7)": lambda a, b: measures.lr_norm(words(a), words(b), 1.7),
    "measure('lr_norm', a, b, r => 5000)": lambda a, b: measures.lr_norm(words(a), words(b), 5000),
    "measure('lr_norm', a, b, r => 'Infinity')": lambda a, b: measures.lr_norm(
        words(a), words(b), math.inf
    ),
    "levenshtein(a, b)": measures.levenshtein,
    "levenshtein(a, b, 1, 1, 2)": lambda a, b: measures.levenshtein(a, b, substitution=2),
    "levenshtein(a, b, 0.1, 0.7, 0.3)": lambda a, b: measures.levenshtein(a, b, 0.1, 0.7, 0.3),
    "levenshtein(a, b, unit => 'word')": lambda a, b: measures.levenshtein(words(a), words(b)),
    "levenshtein(a, b, 1, 2.5, 3, 'word')": lambda a, b: measures.levenshtein(
        words(a), words(b), 1, 2.5, 3
    ),
}
"""Each measure of SQL, and the same of Python."""


def assert_equal_measures(connection: Connection, pairs: list[tuple[str, str]]) -> None:
    left, right = map(list, zip(*pairs, strict=True))
    for call, measure in MEASURES.items():
        rows = connection.execute(
            b"SELECT textsim.%s FROM unnest(%%s::text[], %%s::text[]) WITH ORDINALITY t (a, b, i) "
            b"ORDER BY i" % call.encode(),
            [left, right],
        ).fetchall()
        for (a, b), (value,) in zip(pairs, rows, strict=True):
            assert value == measure(a, b), (call, a, b)


def random_text(rng: random.Random) -> str:
    items = [f"W{i}é" for i in range(rng.choice([1, 2, 5, 20]))] + ["漢字", "?", "Straße", "𝔘x"]
    weights = [rng.random() ** 4 for _ in items]
    return rng.choice([" ", " ", ", ", "\n"]).join(rng.choices(items, weights, k=rng.randrange(9)))


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.long)])
def test_measures_of_random_texts_equal_pythons(
    shared_connection: Connection, rng: random.Random, count: int
) -> None:
    pairs = [("", ""), ("", "a b"), ("a b", ""), ("?!", "a"), ("a A a", "a"), ("a " * 999, "a b")]
    while len(pairs) < count:
        text = random_text(rng)
        if rng.random() < 0.1:  # a near-duplicate, in which some words occur often
            text *= rng.choice([1, 2, 30])
            pairs.append((text, text.replace("W1é", rng.choice(["", "W2é", "Wé1"]))))
        else:
            pairs.append((text, random_text(rng)))
    assert_equal_measures(shared_connection, pairs)


def test_each_measure_of_a_corpus_has_its_function(shared_connection: Connection) -> None:
    names = {call.split("'")[1] for call in MEASURES if call.startswith("measure")}
    assert set(measures.MEASURES) - {"levenshtein", "levenshtein_similarity"} <= names
    properties = shared_connection.execute(
        "SELECT DISTINCT provolatile, proisstrict, proparallel FROM pg_proc "
        "WHERE pronamespace = 'textsim'::regnamespace AND proname IN ('measure', 'levenshtein')"
    ).fetchall()
    assert properties == [("i", True, "s")]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "textsim.measure('containment', 'a', 'b', 'line')",
            'unit is "line"; expected "word" or "char"',
        ),
        ("textsim.measure('dice', 'a', 'b', 'word', 0)", "shingle length is 0; expected 1 to 1000"),
        ("textsim.measure('lr_norm', 'a', 'b', r => 0.5)", "r is 0.5; expected 1 or more"),
        ("textsim.measure('lr_norm', 'a', 'b', r => 'NaN')", "r is NaN; expected 1 or more"),
        (
            "textsim.levenshtein('a', 'b', -1, unit => 'word')",
            "costs are -1, 1 and 1; expected 0 to 2",
        ),
        ("textsim.levenshtein('a', 'b', 1, 'NaN')", "costs are 1, NaN and 1; expected 0 to"),
        ("textsim.levenshtein('a', 'b', unit => 'line')", "unit is 'line'; expected word or char"),
        ("textsim.measure('euclid', 'a', 'b')", 'there is no measure "euclid"'),
        ("textsim.measure('manhattan', 'a', 'b', 'char', 3)", 'measure "manhattan" counts words'),
        (
            "textsim.levenshtein(repeat('a ', 6000), repeat('b ', 6000), unit => 'word')",
            "texts of 6000 and 6000 items are too long to be compared item by item",
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
        "SELECT textsim.measure('cosine_similarity', NULL, 'a'), textsim.levenshtein('a', NULL), "
        "textsim.measure(NULL, 'a', 'b')"
    ).fetchone()
    assert row == (None, None, None)


def test_jaccard_has_the_shingles_of_a_corpus(connection: Connection) -> None:
    connection.execute("SELECT textsim.create_corpus('c', shingle => 'word:2')")
    calls: list[tuple[LiteralString, float]] = [
        ("textsim.jaccard('c', 'a b c', 'a b d')", 1 / 3),
        ("textsim.jaccard('c', 'a b c', 'a b d', NULL)", 1 / 3),
        ("textsim.jaccard('c'::text, 'a b c'::text, 'a b d'::text, NULL::text)", 1 / 3),
    ]
    for call, value in calls:
        assert connection.execute("SELECT " + call).fetchone() == (value,), call
