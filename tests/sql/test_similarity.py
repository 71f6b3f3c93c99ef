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
    "jaccard(a, b)": lambda a, b: measures.jaccard(words(a), words(b)),
    "jaccard(a, b, 'word', 2)": lambda a, b: measures.jaccard(
        shingles(a, "word:2"), shingles(b, "word:2")
    ),
    "containment(a, b)": lambda a, b: measures.containment(words(a), words(b)),
    "containment(b, a, 'char', 4)": lambda a, b: measures.containment(
        shingles(b, "char:4"), shingles(a, "char:4")
    ),
    "overlap(a, b)": lambda a, b: measures.overlap(words(a), words(b)),
    "overlap(a, b, 'char', 2)": lambda a, b: measures.overlap(
        shingles(a, "char:2"), shingles(b, "char:2")
    ),
    "dice(a, b)": lambda a, b: measures.dice(words(a), words(b)),
    "dice(a, b, n => 3)": lambda a, b: measures.dice(shingles(a, "word:3"), shingles(b, "word:3")),
    "jaccard_of_counts(a, b)": lambda a, b: measures.jaccard_of_counts(words(a), words(b)),
    "cosine_similarity(a, b)": lambda a, b: measures.cosine_similarity(words(a), words(b)),
    "cosine_distance(a, b)": lambda a, b: measures.cosine_distance(words(a), words(b)),
    "euclidean(a, b)": lambda a, b: measures.euclidean(words(a), words(b)),
    "manhattan(a, b)": lambda a, b: measures.manhattan(words(a), words(b)),
    "lr_norm(a, b, 1)": lambda a, b: measures.lr_norm(words(a), words(b), 1),
    "lr_norm(a, b, 3)": lambda a, b: measures.lr_norm(words(a), words(b), 3),
    "lr_norm(a, b, 1.7)": lambda a, b: measures.lr_norm(words(a), words(b), 1.7),
    "lr_norm(a, b, 5000)": lambda a, b: measures.lr_norm(words(a), words(b), 5000),
    "lr_norm(a, b, 'Infinity')": lambda a, b: measures.lr_norm(words(a), words(b), math.inf),
    "levenshtein(a, b)": measures.levenshtein,
    "levenshtein(a, b, 1, 1, 2)": lambda a, b: measures.levenshtein(a, b, substitution=2),
    "levenshtein(a, b, 0.1, 0.7, 0.3)": lambda a, b: measures.levenshtein(a, b, 0.1, 0.7, 0.3),
    "levenshtein_words(a, b)": lambda a, b: measures.levenshtein(words(a), words(b)),
    "levenshtein_words(a, b, 1, 2.5, 3)": lambda a, b: measures.levenshtein(
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
    names = {call.partition("(")[0] for call in MEASURES}
    assert set(measures.MEASURES) - {"levenshtein_similarity"} <= names
    properties = shared_connection.execute(
        "SELECT DISTINCT provolatile, proisstrict, proparallel FROM pg_proc "
        "WHERE pronamespace = 'textsim'::regnamespace AND proname = ANY (%s) AND proargnames[1] = 'a'",
        [[*names]],
    ).fetchall()
    assert properties == [("i", True, "s")]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("textsim.containment('a', 'b', 'line')", 'unit is "line"; expected "word" or "char"'),
        ("textsim.dice('a', 'b', 'word', 0)", "shingle length is 0; expected 1 to 1000"),
        ("textsim.lr_norm('a', 'b', 0.5)", "r is 0.5; expected 1 or more"),
        ("textsim.lr_norm('a', 'b', 'NaN')", "r is NaN; expected 1 or more"),
        ("textsim.levenshtein_words('a', 'b', -1)", "costs are -1, 1 and 1; expected 0 to 2"),
        ("textsim.levenshtein('a', 'b', 1, 'NaN')", "costs are 1, NaN and 1; expected 0 to"),
        (
            "textsim.levenshtein_words(repeat('a ', 6000), repeat('b ', 6000))",
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
        "SELECT textsim.cosine_similarity(NULL, 'a'), textsim.containment('a', NULL), "
        "textsim.levenshtein_words(NULL, NULL)"
    ).fetchone()
    assert row == (None, None, None)


def test_two_texts_and_a_corpus_with_two_texts_have_functions_of_one_name(
    connection: Connection,
) -> None:
    connection.execute("SELECT textsim.create_corpus('c', shingle => 'word:2')")
    calls: list[tuple[LiteralString, float]] = [
        ("textsim.jaccard('a b c', 'a b d')", 0.5),
        ("textsim.jaccard('a b c', 'a b d', 'char', 1)", 3 / 5),
        ("textsim.jaccard('c', 'a b c', 'a b d')", 1 / 3),
        ("textsim.jaccard('c', 'a b c', 'a b d', NULL)", 1 / 3),
        ("textsim.jaccard('c'::text, 'a b c'::text, 'a b d'::text, NULL::text)", 1 / 3),
    ]
    for call, value in calls:
        assert connection.execute("SELECT " + call).fetchone() == (value,), call
