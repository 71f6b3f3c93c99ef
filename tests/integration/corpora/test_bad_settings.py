"""Impossible names, settings and values of wrong types are refused, and so are damaged settings."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import psycopg
import pytest
import sqlalchemy

import textsim_db as ts
from tests.support.connections import Connection, execute
from textsim_db.errors import MeasureError, RecipeError


def test_an_unknown_corpus_is_reported_with_the_nearest_name(db: ts.Database) -> None:
    db.create_corpus("newspapers")
    with pytest.raises(ts.CorpusNotFound, match='did you mean "newspapers"'):
        db.corpus("newspaper")
    with pytest.raises(ts.CorpusNotFound, match=r'"something else" does not exist$'):
        db.corpus("something else")
    for name in ("", "a\0", "\ud800", "x" * 10_000, "newspapers'--"):
        with pytest.raises(ts.CorpusNotFound):
            db.corpus(name)


def test_impossible_names_of_corpora_are_refused(shared_db: ts.Database) -> None:
    names: list[Any] = ["", " ", "a\0", "\ud800", "x" * 201, None, 5]
    for name in names:
        with pytest.raises(ts.ConfigurationError, match="name of the corpus"):
            shared_db.create_corpus(name)
    assert list(shared_db.corpora()) == []


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"threshold": 0}, "threshold is 0; expected above 0, at most 1"),
    ({"threshold": 1.01}, "threshold is 1.01"),
    ({"threshold": -1}, "threshold is -1"),
    ({"threshold": float("nan")}, "threshold is nan; expected above 0, at most 1"),
    ({"recall": 0}, "recall is 0"),
    ({"recall": 1.5}, "recall is 1.5"),
    ({"recall": 1 - 2**-53, "num_hashes": 8}, "no bands of 8 hashes reach recall 0.999"),
    ({"threshold": 0.001, "recall": 0.99}, "no bands of 128 hashes reach recall 0.99"),
    ({"num_hashes": 1}, "num_hashes is 1; expected 2 to"),
    ({"num_hashes": 10**6}, "num_hashes is 1000000"),
    ({"bands": 128, "rows": 1}, "rows is 1; expected 2 or more"),
    ({"bands": 18, "rows": 8}, "18 bands of 8 rows"),
    ({"bands": 1, "rows": 128, "threshold": 1e-9}, "1 bands of 128 rows find nothing"),
    ({"bands": 18}, "bands and rows go together"),
    ({"rows": 7}, "bands and rows go together"),
    ({"bands": 0, "rows": 7}, "bands"),
    ({"bands": 7, "rows": -1}, "rows"),
    ({"seed": -1}, "seed is -1"),
    ({"shingle": "word:0"}, "expected"),
    ({"shingle": "word"}, "shingle is"),
    ({"shingle": "line:3"}, "shingle is"),
    ({"shingle": None}, "shingle is"),
    ({"boilerplate": 1}, "expected above 0, below 1"),
    ({"boilerplate": 0.1, "shingle": "char:5"}, "boilerplate needs shingles of words"),
    (
        {"unique_from": 0.7, "is_unique": True},
        "unique_from is 0.7; expected the threshold, which is",
    ),
    ({"unique_from": 0.9}, "unique_from is 0.9, and the corpus is not unique"),
    ({"guards": ["words"]}, "go together"),
    ({"guards": ["words"], "guard_words": ["?!", "\u200b"]}, "set both, with at least one word"),
    ({"guards": ["numbers"], "guard_words": ["x"]}, "go together"),
    ({"guards": ["numbers"], "guard_fillers": ["my"]}, "guard_fillers needs the guard"),
]
ONLY_IN_PYTHON: list[tuple[dict[str, Any], str]] = [
    ({"threshold": "0.8"}, "threshold is 0.8"),
    ({"threshold": True}, "threshold is true"),
    ({"num_hashes": 1.5}, "num_hashes is 1.5; expected a whole number"),
    ({"seed": 2**63}, "seed is"),
    ({"seed": "x"}, "seed is x"),
    ({"shingle": "word:³"}, 'such as "word:3"; did you mean "word:3"?'),
    ({"shingle": "char:５"}, 'did you mean "char:5"?'),
    ({"shingle": "char:٣"}, "shingle is"),
    ({"shingle": "wrod:4 "}, 'did you mean "word:4"?'),
    ({"shingle": "word:-1"}, "shingle is"),
    ({"shingle": "word:1001"}, "shingle length is 1001; expected 1 to 1000"),
    ({"shingle": "word:" + "9" * 5000}, "shingle length is 99999999999999999999; expected"),
    ({"guards": "numbrs"}, "expected one of numbers, "),
]


@pytest.mark.parametrize("engine", ["python", "sql"])
def test_impossible_settings_are_refused(
    shared_db: ts.Database, shared_connection: Connection, engine: str
) -> None:
    def create(settings: dict[str, Any]) -> None:
        if engine == "python":
            shared_db.create_corpus("c", **settings)
            return
        names = ", ".join(f"{name} => %s" for name in settings)
        statement = f"SELECT textsim.create_corpus('c', {names})"
        shared_connection.execute(statement.encode(), [*settings.values()])

    for settings, message in IMPOSSIBLE + (ONLY_IN_PYTHON if engine == "python" else []):
        with pytest.raises((ts.ConfigurationError, psycopg.errors.InvalidParameterValue)) as caught:
            create(settings)
        assert message in str(caught.value).replace("'", "").lower(), settings
    assert list(shared_db.corpora()) == []


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
        with pytest.raises(RecipeError, match="stored golden signature"):
            db.corpus(f"{name}")


def test_a_corpus_of_another_recipe_can_be_dropped(db: ts.Database) -> None:
    db.create_corpus("old")
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE textsim.corpus SET recipe = 99")
    with pytest.raises(RecipeError, match=r"built by recipe 99.*computes recipe 3"):
        db.corpus("old")
    with pytest.raises(ts.TextsimError):
        db.create_corpus("old", exist_ok=True)
    db.drop_corpus("old")
    assert list(db.corpora()) == []
    with pytest.raises(ts.CorpusNotFound):
        db.drop_corpus("old")


WRONG_VALUES: list[Any] = [
    True,
    b"x",
    -1,
    float("nan"),
    10**400,
    Path("a"),
    [["a"]],
    object(),
    "x\0",
    "\udc00",
    uuid.UUID(int=1),
]
NO_FUNCTIONS: list[Any] = [5, "id", b"x", [print]]


@pytest.fixture
def corpus(corpus_db: ts.Database) -> ts.Corpus:
    corpus = corpus_db.create_corpus("c", shingle="word:1")
    corpus.add_many({"a": "one two three", "b": "one two three four"})
    return corpus


NUMBERS: dict[str, Callable[[ts.Corpus, Any], object]] = {
    "threshold": lambda corpus, value: corpus.query("one", value),
    "threshold of a count": lambda corpus, value: corpus.query("a", value, measure="levenshtein"),
    "threshold of many": lambda corpus, value: corpus.query_many(["one"], value),
    "threshold of neighbours": lambda corpus, value: corpus.neighbours("a", value),
    "threshold of pairs": lambda corpus, value: corpus.pairs(value),
    "threshold of clusters": lambda corpus, value: corpus.clusters(value),
    "max_results": lambda corpus, value: corpus.query("one", max_results=value),
    "max_results of many": lambda corpus, value: corpus.query_many(["one"], max_results=value),
    "max_results of neighbours": lambda corpus, value: corpus.neighbours("a", max_results=value),
    "last": lambda corpus, value: corpus.pending(last=value),
    "sample": lambda corpus, value: corpus.measure_recall(sample=value),
    "recall": lambda corpus, value: ts.plan(recall=value),
    "words": lambda corpus, value: corpus.statistics(words=value),
    "rebuild": lambda corpus, value: corpus.rebuild(threshold=value),
    "words of a plan": lambda corpus, value: ts.plan(words=value),
}


def test_numbers_of_wrong_types_are_refused_by_name(corpus: ts.Corpus) -> None:
    for name, call in NUMBERS.items():
        for value in WRONG_VALUES:
            with pytest.raises(
                (ts.ConfigurationError, MeasureError), match=f"{name.split()[0]}|is "
            ):
                call(corpus, value)
        if name.startswith("threshold of a"):
            continue
        for value in (0, 1.5, float("inf"), "0.5") if name.startswith("threshold") else ():
            with pytest.raises(ts.ConfigurationError, match="threshold is"):
                call(corpus, value)


def test_numbers_of_numpy_and_fractions_are_accepted(corpus: ts.Corpus, db: ts.Database) -> None:
    thresholds: list[Any] = [np.float32(0.5), np.float64(0.5), Fraction(1, 2)]
    for threshold in thresholds:
        assert [m.key for m in corpus.query("one two three", threshold)] == ["a", "b"]
        assert db.create_corpus("d", threshold=threshold).config.threshold == 0.5
        db.drop_corpus("d")
    one, half = cast(int, np.int64(1)), cast(float, np.float32(0.5))
    assert len(corpus.query("one two three", 0.5, max_results=one)) == 1
    assert db.worker(poll=half).run(until_idle=True).written == 0


FUNCTIONS: dict[str, Callable[[ts.Corpus, Any], object]] = {
    "progress": lambda corpus, value: corpus.add_many([("z", "z")], value),
    "progress of attach": lambda corpus, value: corpus.attach("t", "id", "body", progress=value),
    "progress of recall": lambda corpus, value: corpus.measure_recall(progress=value),
    "progress of statistics": lambda corpus, value: corpus.statistics(progress=value),
    "progress of check": lambda corpus, value: corpus.check(value),
    "progress of reconcile": lambda corpus, value: corpus.reconcile(value),
    "progress of rebuild": lambda corpus, value: corpus.rebuild(threshold=0.7, progress=value),
    "rank": lambda corpus, value: corpus.clusters(rank=value),
    "rank of duplicates": lambda corpus, value: corpus.duplicates(rank=value),
}


def test_values_that_are_no_functions_are_refused_by_name(
    corpus: ts.Corpus, db: ts.Database
) -> None:
    for name, call in FUNCTIONS.items():
        for value in NO_FUNCTIONS:
            with pytest.raises(ts.ConfigurationError, match=f"^{name.split()[0]} is .* a function"):
                call(corpus, value)
    with pytest.raises(ts.ConfigurationError, match="report is 'x'"):
        db.worker(report="x")  # type: ignore[arg-type]
    assert len(corpus) == 2


def test_ranks_that_cannot_be_compared_are_refused(corpus: ts.Corpus) -> None:
    corpus.add_many([("m", "one two three four"), ("n", "one two three four")])
    with pytest.raises(ts.ConfigurationError, match="the ranks cannot be compared: '<'"):
        list(corpus.duplicates(rank={"m": 1}.get))


def test_impossible_names_of_tables_are_refused(corpus: ts.Corpus) -> None:
    for name in ("\udc00", "a\0b"):
        with pytest.raises(ts.ConfigurationError, match="name of a"):
            corpus.attach(name, "id", "body")
        with pytest.raises(ts.ConfigurationError, match="name of a"):
            corpus.detach(name)


def test_an_address_may_be_a_url_of_sqlalchemy(database_url: str) -> None:
    url = sqlalchemy.make_url(database_url)
    with ts.connect(url) as db:
        assert list(db.corpora()) == []
    with ts.connect(url.set(drivername="postgresql+psycopg")) as db:
        assert list(db.corpora()) == []
