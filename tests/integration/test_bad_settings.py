"""Impossible names, settings and thresholds, and damaged stored settings, are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import textsim_db as ts


def execute(url: str, statement: str, *parameters: object) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []


def test_an_unknown_corpus_is_reported_with_the_nearest_name(db: ts.Database) -> None:
    db.create_corpus("newspapers")
    with pytest.raises(ts.CorpusNotFound, match='did you mean "newspapers"'):
        db.corpus("newspaper")
    with pytest.raises(ts.CorpusNotFound, match=r'"something else" does not exist$'):
        db.corpus("something else")
    for name in ("", "a\0", "\ud800", "x" * 10_000, "newspapers'--"):
        with pytest.raises(ts.CorpusNotFound):
            db.corpus(name)


@pytest.mark.parametrize("name", ["", " ", "a\0", "\ud800", "x" * 201, None, 5])
def test_impossible_names_of_corpora_are_refused(shared_db: ts.Database, name: Any) -> None:
    with pytest.raises(ts.ConfigurationError, match="name of the corpus"):
        shared_db.create_corpus(name)
    assert shared_db.corpora() == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 0}, "threshold is 0; expected above 0, at most 1"),
        ({"threshold": 1.01}, "threshold is 1.01"),
        ({"threshold": -1}, "threshold is -1"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"threshold": "0.8"}, "threshold is '0.8'"),
        ({"threshold": True}, "threshold is True"),
        ({"recall": 0}, "recall is 0"),
        ({"recall": 1.5}, "recall is 1.5"),
        ({"recall": 1 - 2**-53, "num_hashes": 8}, "no bands of 8 hashes reach recall 0.999"),
        ({"threshold": 0.001, "recall": 0.99}, "no bands of 128 hashes reach recall 0.99"),
        ({"num_hashes": 1}, "num_hashes is 1; expected 2 to"),
        ({"bands": 128, "rows": 1}, "rows is 1; expected 2 or more"),
        ({"num_hashes": 1.5}, "num_hashes is 1.5; expected a whole number"),
        ({"num_hashes": 10**6}, "num_hashes is 1000000"),
        ({"bands": 18, "rows": 8}, "need 144 hashes; num_hashes is 128"),
        ({"bands": 18}, "rows"),
        ({"rows": 7}, "bands"),
        ({"bands": 0, "rows": 7}, "bands is 0"),
        ({"bands": 7, "rows": -1}, "rows is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**63}, "seed is"),
        ({"seed": "x"}, "seed is 'x'"),
        ({"shingle": "word:0"}, "shingle length is 0"),
        ({"shingle": "line:3"}, 'shingle is "line:3"'),
        ({"shingle": None}, "shingle is"),
        (
            {"shingle": "word:³"},
            'expected "word:N" or "char:N", such as "word:3"; did you mean "word:3"?',
        ),
        ({"shingle": "char:５"}, 'did you mean "char:5"?'),
        ({"shingle": "wrod:4 "}, 'did you mean "word:4"?'),
    ],
)
def test_impossible_settings_are_refused(
    shared_db: ts.Database, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ts.ConfigurationError) as caught:
        shared_db.create_corpus("c", **settings)
    assert message in str(caught.value)
    assert shared_db.corpora() == []


@pytest.mark.parametrize("threshold", [0, -0.5, 1.5, float("nan"), float("inf"), "0.5", True])
def test_impossible_thresholds_are_refused(corpus: ts.Corpus, threshold: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: corpus.query("text", threshold=threshold),
        lambda: corpus.query_many(["text"], threshold=threshold),
        lambda: corpus.neighbours("a", threshold=threshold),
        lambda: corpus.pairs(threshold=threshold),
        lambda: corpus.clusters(threshold=threshold),
    ]
    for call in calls:
        with pytest.raises(ts.ConfigurationError, match="threshold is"):
            call()


def test_one_str_instead_of_several_is_refused(corpus: ts.Corpus) -> None:
    with pytest.raises(ts.ConfigurationError, match="it got one str"):
        corpus.query_many("text")
    with pytest.raises(ts.ConfigurationError, match="it got one str"):
        corpus.remove("key")


def test_a_damaged_configuration_is_refused(db: ts.Database) -> None:
    damages = [
        "golden_signature[5] = golden_signature[5] + 1",
        "golden_buckets[1] = 0",
        "golden_signature = '{}'",
        "golden_buckets = '{}'",
        "seed = seed + 1",
        "unit = 'char'",
        "shingle_length = 4",
        "rows = 6",
        "bands = 17",
        "num_hashes = 127, golden_signature = golden_signature[:127]",
    ]
    for name, damage in enumerate(damages):
        db.create_corpus(f"{name}")
        execute(db.url, f"UPDATE textsim.corpus SET {damage} WHERE name = %s", f"{name}")
        with pytest.raises(ts.RecipeError, match="stored golden signature"):
            db.corpus(f"{name}")


def test_a_corpus_of_another_recipe_can_be_dropped(db: ts.Database) -> None:
    db.create_corpus("old")
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE textsim.corpus SET recipe = 99")
    with pytest.raises(ts.RecipeError, match=r"built by recipe 99.*computes recipe 2"):
        db.corpus("old")
    with pytest.raises(ts.TextsimError):
        db.create_corpus("old", exist_ok=True)
    db.drop_corpus("old")
    assert db.corpora() == []
    with pytest.raises(ts.CorpusNotFound):
        db.drop_corpus("old")
