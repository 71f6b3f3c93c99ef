"""A function of SQL has the arguments, the defaults and the results of the method with the same name.

The catalog and the class are the table: a new method that has a function needs no line here.
"""

from __future__ import annotations

import inspect
import random
from datetime import timedelta

import psycopg
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import Connection
from tests.support.readers import NO_READERS, draws, functions, python_rows, sql_rows
from textsim_db.settings.named_values import Verdict

pytestmark = pytest.mark.both_servers

ONLY_SQL = {
    "clusters": set(),
    "duplicates": {"keep"},
    "attach": set(),
    "judge": {"hashes"},
}
"""Arguments that only the function has, where a method has an argument of another kind instead."""
ONLY_PYTHON = {"measure", "rank", "progress", "later", "any_text"}
"""Arguments that only methods have: the other measures, functions, and a rebuild at once or later."""


def test_arguments_and_defaults_are_those_of_the_method(connection: Connection) -> None:
    compared = functions(connection)
    assert len(compared) > 20
    for function in compared:
        parameters = dict(inspect.signature(function.method).parameters)
        own = {*parameters} - {"self"} - ONLY_PYTHON
        assert set(function.arguments) - ONLY_SQL.get(function.name, set()) == own, function.name
        for name, expression in zip(function.arguments, function.defaults, strict=True):
            if name not in own:
                continue
            default = parameters[name].default
            if expression is None:
                assert default is inspect.Parameter.empty, (function.name, name)
            else:
                ((value,),) = connection.execute(f"SELECT {expression}".encode()).fetchall()
                assert value == default, (function.name, name)


def test_every_reader_returns_the_same_in_both_languages(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    shingle = rng.choice(["word:3", "word:1", "char:5"])
    corpus = db.create_corpus(
        "c",
        shingle=shingle,
        threshold=0.5,
        recall=rng.choice([0.95, 1]),
        passages=40 if shingle == "char:5" else 6,  # nearly all texts share six characters
        scoped=rng.random() < 0.3,
    )
    texts = dict(documents(80, words=25, planted=0.5, seed=rng.randrange(10**6)))
    texts |= {"empty": "", "short": "word", "Zoë": "漢字 word กิ่ง"}
    for key, text in texts.items():  # the words of some have no ids
        scope = rng.choice("xy") if corpus.config.scoped else None
        if rng.random() < 0.7:
            corpus.add(key, text, scope)
        else:
            connection.execute("SELECT textsim.add('c', %s, %s, %s)", [key, text, scope])
    corpus.track(mode="queue", keep_events=timedelta(days=1))
    corpus.update_clusters()
    for a, b in zip(sorted(texts), sorted(texts)[1:4], strict=False):
        if not corpus.config.scoped:
            corpus.judge(a, b, rng.choice([*Verdict]))
    readers = [f for f in functions(connection) if f.columns and f.name not in NO_READERS]
    assert len(readers) > 14
    found = dict.fromkeys((each.name for each in readers), 0)
    for _ in range(8):
        values = draws(corpus, texts, rng)
        for function in readers:
            parameters = inspect.signature(function.method).parameters
            arguments = {
                name: values[name]
                for name in function.arguments
                if name in parameters
                and (parameters[name].default is inspect.Parameter.empty or rng.random() < 0.5)
            }
            expected = python_rows(function, corpus, arguments)
            rows = sql_rows(function, connection, arguments)
            if isinstance(expected, type):
                is_refused = rows == [] or isinstance(rows, psycopg.Error)
                assert is_refused, (function.name, arguments, expected)
                continue
            assert not isinstance(rows, psycopg.Error), (function.name, arguments, rows)
            if not inspect.signature(function.method).return_annotation.startswith("list"):
                expected, rows = sorted(expected, key=repr), sorted(rows, key=repr)
            assert rows == expected, (function.name, arguments)
            found[function.name] += len(rows)
    assert sum(found.values()) > 500, found
