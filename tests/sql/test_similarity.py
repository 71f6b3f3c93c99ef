"""Similarities and measures of texts in SQL are Python's, also while words wait for ids."""

from __future__ import annotations

import random
from typing import Any, LiteralString

import psycopg
import pytest

import textsim_db as ts
from tests.support import reference
from tests.support.connections import Connection, value
from tests.support.real_corpora import records
from tests.support.sampling import sample
from textsim_db import measures
from textsim_db.measures import shingles, words

pytestmark = pytest.mark.both_servers

SIMILARITY = """
SELECT textsim._similarity(
    -- As in a search: a text whose words have numbers is spelled for a document that has none.
    a.ids, textsim._compared_shingles(
        CASE WHEN a.form IS NULL OR b.ids IS NOT NULL THEN a.ids END, a.form, 'word', s.n), a.count,
    b.ids, textsim._compared_shingles(b.ids, b.form, 'word', s.n), b.count, s.n)
FROM (VALUES (%s::integer[], %s::text, %s::integer)) a (ids, form, count),
    (VALUES (%s::integer[], %s::text, %s::integer)) b (ids, form, count),
    (VALUES (%s::integer)) s (n)
"""


@pytest.mark.parametrize("n", sample([3, 1, 2, 4], 4))
def test_similarity_by_ids_equals_similarity_by_texts(
    db: ts.Database, connection: Connection, rng: random.Random, n: int
) -> None:
    """The documents have few, repeated and unknown words, with ids and without."""
    stored = db.create_corpus("c", shingle="word:1")
    stored.add("known", "a b c")
    texts = ["", "a", "x", "a a", "a b", "x y", "a b a", "b x a", "a a a a", "a b a b", "x a x a"]
    texts += [" ".join(rng.choices("abcxyz", k=rng.randrange(1, 12))) for _ in range(25)]
    numbers = "SELECT textsim._word_numbers(%s)"
    counts = """
        SELECT textsim._count_shingles(form, textsim._shingle_values(form, 'word', n), 'word', n)
        FROM (VALUES (%s::text, %s::integer)) v (form, n)
    """
    rows = []
    for text in texts:
        word_numbers = value(connection, numbers, [text])
        assert [word > 0 for word in word_numbers] == [word in "abc" for word in text.split()]
        count = value(connection, counts, [text, n])
        assert count == len(reference.shingles(text, "word", n))
        rows.append((text, word_numbers, count))
    for a, a_ids, a_count in rows:
        for b, b_ids, b_count in rows:
            if {"x", "y", "z"} & {*a.split()} and {"x", "y", "z"} & {*b.split()}:
                continue  # one document of a pair is stored, so its words all have ids
            expected = reference.jaccard(
                {*reference.shingles(a, "word", n)}, {*reference.shingles(b, "word", n)}
            )
            for left in ((a_ids, None, a_count), (None, a, a_count), (a_ids, a, a_count)):
                for right in ((b_ids, None, b_count), (None, b, b_count)):
                    if left[1] is None and min(a_ids, default=1) < 0:
                        continue  # numbers below 0 mark unknown words, which only a text can spell
                    if right[1] is None and min(b_ids, default=1) < 0:
                        continue
                    similarity = value(connection, SIMILARITY, [*left, *right, n])
                    assert similarity == pytest.approx(expected, abs=1e-15), (a, b, left, right)


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


@pytest.mark.parametrize("name", ["arxiv_revisions", "licences", "scripture", "languages"])
def test_measures_of_real_texts_equal_pythons(
    shared_connection: Connection, rng: random.Random, name: str
) -> None:
    texts = [record["text"][:600] for record in records(name, 400)]
    assert_equal_measures(
        shared_connection, [(rng.choice(texts), rng.choice(texts)) for _ in range(40)]
    )


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
