"""Results without copies are those of the plain definition, in SQL, in Python and in memory."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.expiry import expire
from tests.support.guarded_texts import GUARD_WORDS, guard_of, guarded_texts
from tests.support.reference import similarity
from textsim_db.results import Distinct

Pairs = Mapping[tuple[str, str], float]
"""The similarities of pairs, either document first."""
KINDS: tuple[dict[str, Any], ...] = (
    {"shingle": "word:3", "threshold": 0.6},
    {"shingle": "word:1", "threshold": 0.75, "guards": ("numbers", "negations")},
    {"shingle": "word:2", "threshold": 0.5, "recall": 1, "scoped": True},
    {"shingle": "word:4", "threshold": 0.4, "recall": 1, "guards": ("words",)},
    {"shingle": "char:4", "threshold": 0.5, "keep_for": "30 days", "guards": ("numbers",)},
    {"shingle": "word:1", "threshold": 0.5, "is_unique": True, "unique_from": 0.8},
)


def expected(keys: Sequence[str], merges: Pairs) -> list[Distinct[str]]:
    """Go through the keys in order of rank; a copy goes to the most similar key that is kept."""
    copies: dict[str, list[str]] = {}
    for key in dict.fromkeys(keys):
        similar = [kept for kept in copies if (key, kept) in merges]
        if similar:
            copies[max(similar, key=lambda kept: merges[key, kept])].append(key)  # ties: the first
        else:
            copies[key] = []
    return [Distinct(key, keys.index(key) + 1, tuple(copies[key])) for key in copies]


def matches_of(
    texts: Mapping[str, str], shingle: str, threshold: float
) -> dict[tuple[str, str], float]:
    unit, n = shingle.split(":")
    both = {(a, b): similarity(texts[a], texts[b], unit, int(n)) for a, b in combinations(texts, 2)}
    reached = {pair: value for pair, value in both.items() if value >= threshold}
    return reached | {(b, a): value for (a, b), value in reached.items()}


def in_sql(connection: Connection, *arguments: object, **named: object) -> list[Any]:
    """Return the rows of distinct_of('c', ...), in the order in which it returns them."""
    values = {f"p{number}": value for number, value in enumerate(arguments)} | named
    given = [f"%({name})s" for name in list(values)[: len(arguments)]]
    given += [f"{name} => %({name})s" for name in named]
    query = f"SELECT * FROM textsim.distinct_of('c', {', '.join(given)})"
    rows = connection.execute(query.encode(), values).fetchall()
    return [Distinct(key, rank, tuple(copies)) for key, rank, copies in rows]


def random_texts(rng: random.Random) -> dict[str, str]:
    texts = guarded_texts(rng, 60)
    return {**texts, "no words": "", "also none": "...", "long": " ".join(texts.values()) * 2}


@pytest.mark.both_servers
@pytest.mark.parametrize("settings", KINDS, ids=lambda kind: f"{kind['shingle']} {len(kind)}")
def test_results_are_those_of_the_definition(
    db: ts.Database, connection: Connection, rng: random.Random, settings: dict[str, Any]
) -> None:
    guards = settings.get("guards", ())
    if "words" in guards:
        settings = {**settings, "guard_words": GUARD_WORDS}
    corpus = db.create_corpus("c", **settings)
    texts = random_texts(rng)
    scopes = {key: rng.choice("xy") if corpus.config.scoped else None for key in texts}
    any_twin = math.inf if corpus.config.is_unique else None
    for key, text in texts.items():  # the words of some have no ids
        if rng.random() < 0.8:
            corpus.add(key, text, scopes[key], unique_from=any_twin)
        else:
            add = "SELECT textsim.add('c', %s, %s, %s, unique_from => %s)"
            connection.execute(add, [key, text, scopes[key], any_twin])
    keys = rng.choices([*texts], k=90)
    gone = set(rng.sample(sorted(texts), 5)) if corpus.config.keep_for else set()
    expire(connection, corpus, *gone)
    for limit in (None, 0.3, 1.0):
        matches = {
            (a, b): value
            for (a, b), value in matches_of(texts, settings["shingle"], limit or 0.3).items()
            if scopes[a] == scopes[b] and not gone & {a, b}
        }
        twins = {
            (a, b): value
            for (a, b), value in matches.items()
            if value >= (limit or corpus.config.twins_from)
            and guard_of(texts[a], guards) == guard_of(texts[b], guards)
        }
        for a, b in rng.sample([pair for pair in sorted(twins) if pair[0] < pair[1]], 3):
            corpus.judge(a, b, "different")
            del twins[a, b], twins[b, a]
        least = limit or corpus.config.threshold
        matches = {pair: value for pair, value in matches.items() if value >= least}
        for is_guarded, pairs in ((True, twins), (False, matches)):
            results = expected(keys, pairs)
            options: dict[str, Any] = {"guards": is_guarded, "missing": "keep"}
            assert in_sql(connection, keys, threshold=limit, **options) == results
            assert corpus.distinct(keys, threshold=limit, **options) == results
            most = rng.randint(1, len(results))
            assert in_sql(connection, keys, most, threshold=limit, **options) == results[:most]
            assert corpus.distinct(keys, most, limit, **options) == results[:most]
        for judgement in list(corpus.judgements()):
            corpus.unjudge(judgement.a, judgement.b)


@pytest.mark.parametrize("settings", KINDS, ids=lambda kind: f"{kind['shingle']} {len(kind)}")
def test_texts_in_memory_are_compared_alike(rng: random.Random, settings: dict[str, Any]) -> None:
    names = {"shingle", "threshold", "guards"}
    chosen: dict[str, Any] = {name: value for name, value in settings.items() if name in names}
    guards = chosen.get("guards", ())
    if "words" in guards:
        chosen["guard_words"] = GUARD_WORDS
    texts = random_texts(rng)
    keys = rng.sample([*texts], len(texts))
    matches = matches_of(texts, chosen["shingle"], chosen["threshold"])
    twins = {
        (a, b): value
        for (a, b), value in matches.items()
        if guard_of(texts[a], guards) == guard_of(texts[b], guards)
    }
    results = expected(keys, twins)
    assert any(each.copies for each in results)
    assert ts.distinct({key: texts[key] for key in keys}, **chosen) == results
    by_place = [
        Distinct(each.rank - 1, each.rank, tuple(map(keys.index, each.copies))) for each in results
    ]
    assert ts.distinct([texts[key] for key in keys], 7, **chosen) == by_place[:7]
    assert ts.distinct([]) == []


@pytest.fixture
def small(db: ts.Database) -> ts.Corpus:
    corpus = db.create_corpus("c", shingle="word:1", threshold=0.6)
    corpus.add_many([("a", "one two three"), ("b", "one two three four"), ("c", "five six")])
    return corpus


def test_a_key_without_a_document_is_named_or_kept(
    small: ts.Corpus, connection: Connection
) -> None:
    keys = ["none", "b", "a", "none", "c"]
    with pytest.raises(ts.DocumentNotFound, match="corpus \"c\" has no document 'none'"):
        small.distinct(keys)
    with pytest.raises(psycopg.errors.NoDataFound, match="has no document 'none'\n"):
        in_sql(connection, keys)
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    small.attach("t", "id", "body")
    with pytest.raises(ts.DocumentNotFound, match="'none'; if its row stands, it waits for"):
        small.distinct(keys)
    kept = [("none", 1, ()), ("b", 2, ("a",)), ("c", 5, ())]
    assert small.distinct(keys, missing="keep") == kept
    assert small.distinct(keys, 2, missing="keep") == kept[:2]
    assert small.distinct(keys, 2**31, missing="keep") == kept
    assert small.distinct([]) == in_sql(connection, []) == []
    assert small.distinct(["x", "y"], missing="keep") == [("x", 1, ()), ("y", 2, ())]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keys": None}, "keys is NULL"),
        ({"keys": ["a", None]}, "a key is NULL"),
        ({"guards": None}, "guards is NULL"),
        ({"missing": None}, "missing is NULL; expected refuse or keep"),
        ({"missing": "drop"}, "missing is 'drop'; expected refuse or keep"),
        ({"max_results": 0}, "max_results is 0; expected 1 or more, or NULL for all"),
        ({"threshold": 0}, "threshold is 0; expected above 0, at most 1"),
        ({"threshold": float("nan")}, "threshold is NaN; expected above 0, at most 1"),
    ],
)
@pytest.mark.usefixtures("small")
def test_sql_refuses_what_has_no_meaning(
    connection: Connection, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
        in_sql(connection, **{"keys": ["a"], **arguments})


def test_python_refuses_what_has_no_meaning(small: ts.Corpus) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"keys": "ab"}, "takes several keys"),
        ({"missing": "drop"}, "missing is 'drop'; expected refuse or keep"),
        ({"max_results": 0}, "max_results is 0"),
        ({"threshold": 2}, "threshold is 2"),
        ({"guards": 1}, "guards is 1; expected True or False"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ts.ConfigurationError, match=message):
            small.distinct(**{"keys": ["a"], **arguments})
    with pytest.raises(ts.ConfigurationError, match="max_results is 0"):
        ts.distinct(["a"], 0)
